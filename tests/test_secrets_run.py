"""Keys planted everywhere, a whole run, and not one of them in any file it leaves."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skilltrail.cli.main import run
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.redact import HIDDEN
from skilltrail.models.environ import redactor
from skilltrail.runtime.console import complain
from skilltrail.runtime.workspace import load_params
from skilltrail.store.facts import FactStore
from stages.train import main as train
from tests.fault_server import Answer, Call, Fault, FaultServer
from tests.model_world import Learner, project, run_stages, set_params

KEY = "plain-looking-9f21c0"  # no key's shape: known from the environment alone
FROM_FILE = "dotenv-looking-4471aa"
SHAPED = "sk-proj-abcdefghijklmnop123456"
PLANTED = (KEY, FROM_FILE, SHAPED)
ALL = " ".join(PLANTED)
_ITEM = re.compile(r"[a-z]+-[0-9a-f]{10}-[a-z]+")


def role(url: str, model: str) -> dict[str, Any]:
    return {"backend": "openai", "api": "chat", "model": model, "provider": "lab",
            "base_url": f"{url}/v1", "key_env": "LAB_KEY", "max_tokens": 400}  # fmt: skip


class Leaky(Learner):
    """A provider that puts keys into answers, into proposed edits and into every error."""

    def __call__(self, call: Call) -> Answer:
        if call.body["model"] == "weak":
            answer = super().__call__(call)
            return Answer(answer.text.replace(">no<", f">no {ALL}<"), input=20)
        system, told = (message["content"] for message in call.body["messages"][:2])
        if system.startswith("You improve"):
            item = _ITEM.findall(told)[0]
            edit = {"op": "append", "content": f"- Be brief. {ALL}", "items": [item]}
            return Answer(json.dumps({"edits": [edit], "reasoning": ALL}), input=50)
        return Answer(f"{ALL}, no JSON", input=50)


def fail_first(call: Call) -> Fault | None:
    if call.number % 9 == 1:
        sent = f"{ALL} {call.headers.get('authorization')}"
        return Fault(status=500, body={"error": {"message": sent}})
    return None


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (where, text) of everything below `folder` but the planted `.env` itself."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".env":
            data = path.read_bytes()
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            yield str(path.relative_to(folder)), data.decode("utf-8", "replace")
    with FactStore.open(folder) as store:
        keys = [key for (key,) in store.query("SELECT key FROM facts")]
        for key, value in store.get_many(keys).items():
            yield f"fact {key[:8]}", json.dumps(value)


def leaks(texts: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(where, key) for where, text in texts for key in PLANTED if key in text]


def test_no_planted_key_is_in_any_file_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    leaky = Leaky()
    with FaultServer(fail_first, leaky) as server:
        target, optimizer = role(server.url, "weak"), role(server.url, "strong")
        optimizer["max_tokens"] = 4000
        leaky.learn(project(tmp_path, target, items=6, optimizer=optimizer))
        (tmp_path / ".env").write_text(f"OTHER_TOKEN={FROM_FILE}\n", "utf-8", newline="\n")
        run_stages(tmp_path, monkeypatch)
        assert run(["verify", "--allow-absent", "anchored"]) == 0
        assert run(["log"]) == run(["audit", "--version", "0"]) == 0
    found = list(texts_of(tmp_path))
    assert leaks(iter(found)) == []
    told = "".join(text for _, text in found)
    assert f"Be brief. {HIDDEN}" in told  # the plants did arrive
    assert f"no {HIDDEN}" in told
    assert len([name for name, _ in found if name.startswith("fact")]) > 12
    shown = capfd.readouterr()
    assert leaks(iter([("out", shown.out), ("err", shown.err)])) == []


def test_a_fact_holds_no_key_whoever_made_it_and_nobody_gets_one(tmp_path: Path) -> None:
    """The embedded model's replies, a tool's output, a judge's words: all pass this door."""
    hide = redactor({"ODD_NAME": KEY}, ["ODD_NAME"]).sure_value
    said = {"trajectory": {"answer": f"it is {KEY}", "extra": [SHAPED]}, "skill": "a" * 64}

    async def make() -> dict[str, Any]:
        return said

    with FactStore.open(tmp_path, hide=hide) as store:
        made = asyncio.run(store.get_or_make("rollout", "a1", make))
        put = asyncio.run(store.put("call", "a2", said))
        kept = store.get_many(["a1", "a2"])
    assert [made.value, put] == [kept["a1"], kept["a2"]]
    assert kept["a1"]["trajectory"] == {"answer": f"it is {HIDDEN}", "extra": [HIDDEN]}


def test_no_planted_key_is_in_what_a_failing_run_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    refused = Fault(status=401, body={"error": {"message": f"bad key {ALL}"}})
    with FaultServer() as server:
        project(tmp_path, role(server.url, "weak"), items=4)
        (tmp_path / ".env").write_text(f"OTHER_TOKEN={FROM_FILE}\n", "utf-8", newline="\n")
        run_stages(tmp_path, monkeypatch)
    with FaultServer(lambda _: refused) as server:
        set_params(tmp_path, role(server.url, "other"))
        with pytest.raises(SkilltrailError) as caught:
            asyncio.run(train())
    chain: BaseException | None = caught.value
    while chain is not None:
        assert leaks(iter([(type(chain).__name__, str(chain))])) == []
        chain = chain.__cause__
    assert leaks(texts_of(tmp_path)) == []


def test_the_one_message_of_an_error_holds_no_key_of_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"OTHER_TOKEN={FROM_FILE}\n", "utf-8", newline="\n")
    complain(SkilltrailError("Asked", f"found {FROM_FILE}"))
    (tmp_path / ".env").write_text("not a line\n", "utf-8", newline="\n")
    complain(SkilltrailError("Asked", f"found {SHAPED}"))
    shown = capfd.readouterr().err
    assert shown.count("error: Asked") == 2
    assert leaks(iter([("err", shown)])) == []


def test_a_key_in_params_is_refused_and_not_repeated(tmp_path: Path) -> None:
    project(tmp_path, {"backend": "openai", "model": "m", "key_env": SHAPED})
    with pytest.raises(SkilltrailError, match=r"target\.key_env") as caught:
        load_params(tmp_path)
    assert SHAPED not in str(caught.value)
