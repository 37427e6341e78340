"""An instant model on loopback, which counts its calls and can misbehave.

    python benchmarks/stub.py [--faults]

Prints its port. `GET /count` answers how many calls came in. With `--faults`, of a hundred
calls five are refused with 429 and two are never answered, by their number, so that all who
are measured meet the same.
"""

from __future__ import annotations

import asyncio
import json
import sys

# Plain text to most, and an answer in the form that DSPy's prompts ask for.
TEXT = "[[ ## answer ## ]]\nan answer\n\n[[ ## completed ## ]]"
_MESSAGE = {"role": "assistant", "content": TEXT}
_REPLY = {
    "id": "c", "object": "chat.completion", "created": 0, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": _MESSAGE}],
    "usage": {"prompt_tokens": 300, "completion_tokens": 3, "total_tokens": 303},
}  # fmt: skip
_REFUSED, _NEVER = {7, 27, 47, 67, 87}, {13, 63}


def _answer(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nretry-after: 0\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


_GOOD = _answer("200 OK", json.dumps(_REPLY).encode())
_BUSY = _answer("429 Too Many Requests", b'{"error": {"message": "busy"}}')


class Stub(asyncio.Protocol):
    """One connection; requests may come in pieces and many after each other."""

    calls = 0
    misbehaves = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.data = transport, b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (head := self.data.find(b"\r\n\r\n")) >= 0:
            need = head + 4
            for line in self.data[:head].lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    need += int(line.split(b":")[1])
            if len(self.data) < need:
                return
            asked, self.data = self.data[:4], self.data[need:]
            if asked == b"GET ":
                self.transport.write(_answer("200 OK", str(Stub.calls).encode()))
            else:
                self.call()

    def call(self) -> None:
        Stub.calls += 1
        place = Stub.calls % 100 if Stub.misbehaves else 0
        if place not in _NEVER:
            self.transport.write(_BUSY if place in _REFUSED else _GOOD)


async def main() -> None:
    Stub.misbehaves = "--faults" in sys.argv
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stub, "127.0.0.1", 0, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
