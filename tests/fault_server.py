"""A loopback server that speaks four model protocols and can misbehave in every way.

    with FaultServer(lambda call: Fault(status=429) if call.number == 1 else None) as server:
        ...  # server.url, server.calls

What it is not told to spoil it answers, by default with the text `ok`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """One request as it came in; `number` counts from 1."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Fault:
    """What goes wrong.

    Attributes:
        delay_s: wait before anything else.
        together: wait until this many calls have been in at once.
        status, headers, body: answer with this; None = the usual answer.
        raw: send these bytes as the body (of a 200 where no status is named).
        cut: send half of the usual answer's bytes, then close.
        hang: take the request and never answer.
        drip_s: send the usual answer a byte at a time, this far apart.
    """

    delay_s: float = 0.0
    together: int = 0
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    raw: bytes | None = None
    cut: bool = False
    hang: bool = False
    drip_s: float = 0.0


@dataclass(frozen=True)
class Answer:
    """What the model says. `finish` is stop, length, tool or refusal."""

    text: str = "ok"
    finish: str = "stop"
    tool: tuple[str, Mapping[str, Any]] | None = None
    input: int = 10
    output: int = 2
    cached: int = 0
    written: int = 0
    reasoning: int = 0


Spoil = Callable[[Call], "Fault | None"]
Say = Callable[[Call], Answer]


class FaultServer:
    """The server, on its own thread and loop; a context manager."""

    def __init__(self, spoil: Spoil = lambda _: None, say: Say = lambda _: Answer()) -> None:
        self.calls: list[Call] = []
        self.most_at_once = 0
        self._at_once = 0
        self._spoil, self._say = spoil, say
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FaultServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while (call := await self._read(reader)) is not None:
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
                try:
                    keep = await self._answer(call, writer)
                finally:
                    self._at_once -= 1
                if not keep:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Call | None:
        first = await reader.readline()
        if not first:
            return None
        method, path, _ = first.decode("latin-1").split(" ", 2)
        headers: dict[str, str] = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        body = json.loads(raw) if raw else None
        call = Call(len(self.calls) + 1, method, path, headers, body)
        self.calls.append(call)
        return call

    async def _answer(self, call: Call, writer: asyncio.StreamWriter) -> bool:
        """Answer, or spoil it; return whether the connection stays open."""
        fault = self._spoil(call) or Fault()
        await asyncio.sleep(fault.delay_s)
        while self.most_at_once < fault.together:
            await asyncio.sleep(0.005)
        if fault.hang:
            await asyncio.sleep(3600)
        if fault.status is not None and fault.raw is None:
            body = json.dumps(fault.body if fault.body is not None else _error(fault.status))
            await _send(writer, fault.status, body.encode(), fault.headers)
            return True
        if fault.raw is not None:
            status = 200 if fault.status is None else fault.status
            await _send(writer, status, fault.raw, fault.headers)
            return True
        if call.method == "HEAD":
            await _send(writer, 200, b"")
            return True
        if isinstance(call.body, dict) and call.body.get("stream"):
            text = event_stream(call, self._say(call))
            await _send(writer, 200, text.encode(), {"content-type": "text/event-stream"})
            return True
        data = json.dumps(answer_body(call, self._say(call))).encode()
        if fault.cut:
            await _send(writer, 200, data[: len(data) // 2], length=len(data))
            return False
        if fault.drip_s:
            await _send(writer, 200, b"", length=len(data))
            for byte in data:
                writer.write(bytes((byte,)))
                await writer.drain()
                await asyncio.sleep(fault.drip_s)
            return True
        await _send(writer, 200, data)
        return True


async def _send(
    writer: asyncio.StreamWriter,
    status: int,
    data: bytes,
    headers: Mapping[str, str] | None = None,
    length: int | None = None,
) -> None:
    headers = {"content-type": "application/json", **(headers or {})}
    lines = [
        f"HTTP/1.1 {status} X",
        f"content-length: {len(data) if length is None else length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    await writer.drain()


def _error(status: int) -> dict[str, Any]:
    return {"error": {"message": f"made to fail with {status}", "type": "test_error"}}


def answer_body(call: Call, answer: Answer) -> dict[str, Any]:
    """Return the body of an answer in the protocol of the call's path."""
    model = (call.body or {}).get("model", "m")
    path = call.path.split("?")[0]
    if path.endswith("/chat/completions"):
        return _chat(model, answer)
    if path.endswith("/completions"):
        choice = {"index": 0, "text": answer.text, "finish_reason": answer.finish}
        return {"id": "c", "object": "text_completion", "created": 0, "model": model,
                "choices": [choice], "usage": _chat_usage(answer)}  # fmt: skip
    if path.endswith("/responses"):
        return _responses(model, answer)
    if path.endswith("/messages"):
        return _messages(model, answer)
    return {"path": call.path}


def _chat_usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.input,
        "completion_tokens": answer.output,
        "total_tokens": answer.input + answer.output,
        "prompt_tokens_details": {"cached_tokens": answer.cached},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning},
    }


def _chat(model: str, answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    finish = {"tool": "tool_calls", "refusal": "content_filter"}.get(
        answer.finish, answer.finish
    )
    if answer.tool is not None:
        name, arguments = answer.tool
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": model,
            "choices": [choice], "usage": _chat_usage(answer)}  # fmt: skip


def _responses(model: str, answer: Answer) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": answer.text, "annotations": []}
    if answer.finish == "refusal":
        part = {"type": "refusal", "refusal": answer.text}
    output: list[dict[str, Any]] = [
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }  # fmt: skip
    ]
    if answer.tool is not None:
        name, arguments = answer.tool
        output.append({"type": "function_call", "id": "f", "call_id": "call_1", "name": name,
                       "arguments": json.dumps(arguments), "status": "completed"})  # fmt: skip
    cut = answer.finish == "length"
    return {
        "id": "r", "object": "response", "created_at": 0, "model": model, "output": output,
        "status": "incomplete" if cut else "completed", "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "usage": {
            "input_tokens": answer.input, "output_tokens": answer.output,
            "total_tokens": answer.input + answer.output,
            "input_tokens_details": {"cached_tokens": answer.cached},
            "output_tokens_details": {"reasoning_tokens": answer.reasoning},
        },
    }  # fmt: skip


def _messages(model: str, answer: Answer) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}]
    if answer.tool is not None:
        name, arguments = answer.tool
        content.append(
            {"type": "tool_use", "id": "call_1", "name": name, "input": dict(arguments)}
        )
    stop = {"stop": "end_turn", "length": "max_tokens", "tool": "tool_use"}
    return {
        "id": "m", "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop.get(answer.finish, answer.finish), "stop_sequence": None,
        "usage": {
            "input_tokens": answer.input - answer.cached - answer.written,
            "output_tokens": answer.output,
            "cache_read_input_tokens": answer.cached,
            "cache_creation_input_tokens": answer.written,
        },
    }  # fmt: skip


def event_stream(call: Call, answer: Answer) -> str:
    """Return the same answer as server-sent events (responses and messages protocols)."""
    body = answer_body(call, answer)
    if "output" in body:
        events = [{"type": "response.created", "response": {**body, "output": []}}]
        for index, item in enumerate(body["output"]):
            events.append(
                {"type": "response.output_item.done", "output_index": index, "item": item}
            )
        events.append({"type": "response.completed", "response": body})
    else:
        events = _message_events(body)
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)


def _message_events(body: dict[str, Any]) -> list[dict[str, Any]]:
    start = {**body, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(body["content"]):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if block["type"] == "text"
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": body["usage"]["output_tokens"]}
    events.append({"type": "message_delta", "delta": stop, "usage": usage})
    return [*events, {"type": "message_stop"}]
