"""Experiments on several machines: one git server, one DVC remote, one place for facts.

The hosts are clones with a store, a queue and a home of their own. Git goes by `file://`, and
by ssh to loopback where sshd is installed.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_journeys import new_folder
from test_pipeline import clean_env, git
from test_sharing import clones, door, outcomes, train

from skilltrail.history.git.sharing import fetch, share
from tests.fault_server import FaultServer
from tests.skill_server import says

ROOT = Path(__file__).resolve().parents[1]
__all__ = ["clones"]


# --- git over ssh ---


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A git server that is reached by ssh on loopback; yields the start of its URLs."""
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(sshd).exists() or shutil.which("ssh") is None:
        pytest.skip("needs sshd and ssh: apt install openssh-server")
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o700)
    for name in ("host", "person"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)]
        subprocess.run(make, check=True)
    shutil.copyfile(keys / "person.pub", keys / "authorized_keys")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    options = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": keys / "host",
        "AuthorizedKeysFile": keys / "authorized_keys", "PidFile": "none",
        "PasswordAuthentication": "no", "StrictModes": "no", "UsePAM": "no",
    }  # fmt: skip
    (keys / "config").write_text(
        "".join(f"{name} {value}\n" for name, value in options.items()), encoding="utf-8"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([sshd, "-D", "-e", "-f", keys / "config"])
    known = f"-o UserKnownHostsFile={keys / 'known'} -o StrictHostKeyChecking=accept-new"
    monkeypatch.setenv("GIT_SSH_COMMAND", f"ssh -i {keys / 'person'} -F none {known}")
    for _ in range(100):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield f"ssh://{getpass.getuser()}@127.0.0.1:{port}"
    server.terminate()
    server.wait()


def test_runs_meet_on_a_git_server_that_is_reached_by_ssh(
    clones: tuple[Path, Path], tmp_path: Path, ssh: str
) -> None:
    anna, bob = clones
    for clone in clones:
        git(clone, "remote", "set-url", "origin", f"{ssh}{tmp_path / 'hub.git'}")
    hers = train(anna, "lr-1", tmp_path / "a", lr=1)
    his = train(bob, "lr-2", tmp_path / "b", lr=2)
    assert outcomes(share(door(anna), None, "anna")[1]) == {"lr-1": "new"}
    assert outcomes(share(door(bob), None, "bob")[1]) == {"lr-2": "new"}
    assert outcomes(fetch(door(anna), None)[1]) == {"bob/lr-2": "new"}
    assert outcomes(fetch(door(bob), None)[1]) == {"anna/lr-1": "new"}
    assert door(anna).refs("refs/evolution/bob/lr-2") == {"refs/evolution/bob/lr-2": his}
    assert door(bob).refs("refs/evolution/anna/lr-1") == {"refs/evolution/anna/lr-1": hers}


# --- queues of two hosts at once ---


class Host:
    """A machine: a clone of its own, and a home of its own for what programs keep."""

    def __init__(self, place: Path, name: str, url: str) -> None:
        self.folder = place / name / "work"
        home = place / name / "home"
        home.mkdir(parents=True)
        self._env = clean_env() | {
            "HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": f"{place / 'bin'}:{_path()}",
            "XDG_CACHE_HOME": str(home / "cache"), "DVC_SITE_CACHE_DIR": str(home / "site"),
        }  # fmt: skip
        git(place, "clone", "-q", url, str(self.folder))
        for key, value in (("user.name", name), ("user.email", f"{name}@example.org")):
            git(self.folder, "config", key, value)

    def begin(self, script: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-e", "-c", script], cwd=self.folder, env=self._env, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def type(self, script: str) -> str:
        return told(self.begin(script))


def told(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=900)
    assert process.returncode == 0, said
    return said


def _path() -> str:
    return os.environ["PATH"]


QUEUE = """
dvc exp run --quiet --queue --name {name} -S lr={lr}
dvc queue start --jobs 1
while dvc queue status | grep -qE 'Queued|Running'; do sleep 1; done
dvc queue status
skilltrail share origin --as {host}
dvc exp push --quiet origin {name}
"""


@pytest.mark.cluster
def test_two_hosts_run_their_queues_at_once_and_each_has_what_the_other_made(
    tmp_path: Path,
) -> None:
    (tmp_path / "bin").mkdir()
    for tool in ("skilltrail", "dvc"):
        script = f'#!/bin/sh\nexec "{sys.executable}" -m {tool} "$@"\n'
        (tmp_path / "bin" / tool).write_text(script, encoding="utf-8")
        (tmp_path / "bin" / tool).chmod(0o755)
    with FaultServer(say=says) as server:
        hub = _hub(tmp_path, f"{server.url}/v1")
        hosts = {name: Host(tmp_path, name, hub) for name in ("anna", "bob")}
        runs = {"anna": ("one", 1), "bob": ("two", 2)}
        began = {
            host: hosts[host].begin(QUEUE.format(name=name, lr=lr, host=host))
            for host, (name, lr) in runs.items()
        }
        for host, process in began.items():
            assert "Success" in told(process), host
        # Refs came by git, each under its host's name.
        assert "bob/two" in hosts["anna"].type("skilltrail fetch; skilltrail runs")
        assert "anna/one" in hosts["bob"].type("skilltrail fetch; skilltrail runs")
        paid = len(server.calls)
        # Facts came through the shared place: the other host's experiment costs nothing here,
        hosts["anna"].type("dvc exp run --quiet --name two-here -S lr=2")
        assert len(server.calls) == paid
        # and has the same log.
        hosts["bob"].type("dvc exp apply two")
        here, there = (hosts[name].folder / "skills/events.jsonl" for name in ("anna", "bob"))
        assert here.read_bytes() == there.read_bytes()
        # A third machine without the shared place has them by DVC.
        carol = Host(tmp_path, "carol", hub)
        carol.type("dvc exp pull --quiet origin one two")
        for name in ("one", "two"):
            carol.type(
                f"dvc exp apply {name}; sed -i 's|remote: file.*|remote: null|' params.yaml; "
                "dvc repro --quiet --force"
            )
        assert len(server.calls) == paid
        assert (carol.folder / "skills/events.jsonl").read_bytes() == there.read_bytes()


def _hub(place: Path, server: str) -> str:
    """Make the bare repository that the hosts clone; return its URL."""
    first = new_folder(place)
    env = clean_env() | {"PYTHONPATH": str(ROOT), "PATH": f"{place / 'bin'}:{_path()}"}
    script = f"""
git init --quiet --initial-branch=main
git config user.name first; git config user.email first@example.org
skilltrail init --data prices.csv --skill SKILL.md --target "openai:m@{server}"
sed -i 's|^  remote: null.*|  remote: {(place / "team").as_uri()}|' params.yaml
grep -q "remote: file" params.yaml
dvc remote add --quiet --default lab {place / "lab"}
git add .; git commit --quiet -m "A workspace"
git init --quiet --bare --initial-branch=main {place / "hub.git"}
git push --quiet {place / "hub.git"} main
"""
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=first, env=env, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return f"file://{place / 'hub.git'}"
