"""`skilltrail ui` as a process with few descriptors, and clients that mean no good."""

from __future__ import annotations

import http.client
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HALF = b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@dataclass
class Server:
    """A server, its port, its token, and what it wrote to stderr."""

    process: subprocess.Popen[bytes]
    port: int
    token: str
    said: Path

    def get(self, path: str = "/api/state", timeout_s: float = 5.0) -> int:
        """Return the status of a request with the token."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            client.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = client.getresponse()
            answer.read()
            return answer.status
        finally:
            client.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)


@contextmanager
def serving(folder: Path, descriptors: int) -> Iterator[Server]:
    """Yield a server of a new project in `folder` that may open `descriptors` files."""
    (folder / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    (folder / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    said = folder / "said"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [sys.executable, "-m", "skilltrail", "ui", "--port", "0"]
    with said.open("wb") as errors:
        process = subprocess.Popen(command, cwd=folder, stderr=errors, preexec_fn=limited)
    try:
        file = waited_for(folder / ".skilltrail", process)
        told = json.loads(file.read_bytes())
        server = Server(process, int(file.stem.removeprefix("ui-")), told["token"], said)
        until_up(server)
        yield server
    finally:
        process.terminate()
        process.wait(20)


def waited_for(state: Path, process: subprocess.Popen[bytes]) -> Path:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for file in state.glob("ui-*.json"):
            if file.stat().st_size:
                return file
        time.sleep(0.05)
    raise AssertionError("the server did not start")


def until_up(server: Server) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            assert server.get() == 200
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
