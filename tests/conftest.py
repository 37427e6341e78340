"""What holds for every test: the same examples each time, no DVC around it, no network.

A connection to any address but loopback is an error. Programs that tests start inherit a proxy
at which nobody listens, and DVC's word that it reports nothing.
"""

from __future__ import annotations

import ipaddress
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from skilltrail.store.facts import FactStore

# A busy machine must not fail a law, and a failure must come again. To look for new examples:
# `pytest --hypothesis-profile=search`.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("default")

# Tests may be started from a stage of another project.
for _name in [name for name in os.environ if name.startswith("DVC_")]:
    del os.environ[_name]

for _name in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ[_name] = os.environ[_name.upper()] = "http://127.0.0.1:9"
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = "localhost,127.0.0.1,::1"
os.environ["DVC_NO_ANALYTICS"] = "1"

# Who commits where a test does, on a machine where git knows nobody.
for _name in ("GIT_AUTHOR", "GIT_COMMITTER"):
    os.environ.setdefault(f"{_name}_NAME", "A Person")
    os.environ.setdefault(f"{_name}_EMAIL", "person@example.com")


_BY_SOCKET = ("socket.connect", "socket.sendto", "socket.sendmsg")
_REACHING = (*_BY_SOCKET, "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return host in ("localhost", "")


def _refuse_the_world(event: str, args: tuple[Any, ...]) -> None:
    if event not in _REACHING:
        return
    address = args[1] if event in _BY_SOCKET else args[0]
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    is_path = event in _BY_SOCKET and not isinstance(address, tuple)
    if host is not None and not is_path and not _is_local(str(host)):
        raise PermissionError(f"tests may not reach beyond loopback, asked for {host}")


sys.addaudithook(_refuse_the_world)


@pytest.fixture
def reference_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a clone of what is committed, as a reader has it, on the branch `main`."""
    here = tmp_path / "clone"
    root = Path(__file__).resolve().parents[1]
    subprocess.run(["git", "clone", "-q", str(root), str(here)], check=True)
    subprocess.run(["git", "checkout", "-q", "-B", "main"], cwd=here, check=True)
    monkeypatch.chdir(here)
    return here


@pytest.fixture(scope="module", autouse=True)
def stores_are_closed() -> Iterator[None]:
    """Close what a file of tests opened: each store holds a thread and some open files."""
    opened: list[FactStore] = []
    begin = FactStore.__init__

    def noted(store: FactStore, *args: Any, **kwargs: Any) -> None:
        begin(store, *args, **kwargs)
        opened.append(store)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FactStore, "__init__", noted)
        yield
    for store in opened:
        store.close()
