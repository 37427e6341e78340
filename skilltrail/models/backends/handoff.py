"""Backend `handoff`: requests are files, whoever sits in front of them writes the answers.

For a person, a colleague or another session as optimizer (or judge): no key, no network. Each
request is written as `<key>.md` into `<role>.handoff.folder`; its answer is read from
`<key>.reply.md` beside it, whole as it stands, and is a fact like any reply. The run waits
`handoff.wait_s` seconds (null = as long as it takes) and then stops with exit code 75; started
again it asks the same questions, finds what was answered meanwhile, and goes on.

Write an answer under another name and rename it, or all at once: a file is read when its size
has stayed the same for one look.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skilltrail.core.canon import clean
from skilltrail.core.errors import Interrupted
from skilltrail.models.client.identity import abilities_of, own_decoding
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Message, Reply, Request
from skilltrail.params.model_options import EMBEDDED_MODEL, RoleOptions

_LOOK_S = 0.3
_KEY_CHARS = 16
_WORKERS = 16
_MOST_BYTES = 4_000_000


class HandoffModel:
    """A `Model` that somebody answers through files."""

    style = "chat"

    def __init__(self, role: str, options: RoleOptions) -> None:
        self.abilities = abilities_of(options)
        self.workers = options.workers if options.workers else _WORKERS
        self._role, self._wait_s = role, options.handoff.wait_s
        self._folder = Path(os.environ.get("DVC_ROOT") or ".") / options.handoff.folder
        who = options.model if options.model != EMBEDDED_MODEL else "somebody"
        self._who = who if options.provider is None else f"{options.provider}: {who}"
        self.identity: Mapping[str, Any] = {
            "backend": "handoff",
            "model": self._who,
            "decoding": own_decoding(options).to_json(),
        }

    async def complete(self, request: Request) -> Reply:
        """Return the answer, once it is there.

        Raises:
            Interrupted: nobody answered within `handoff.wait_s`.
            ModelConfigError: the request has tools or files, or the folder cannot be used.
        """
        if request.tools or request.files:
            raise ModelConfigError(
                f"{self._role}.backend: handoff",
                "the request has tools or files",
                "Choose another backend for this role",
            )
        name = request.key(self.identity)[:_KEY_CHARS]
        asked, reply = self._folder / f"{name}.md", self._folder / f"{name}.reply.md"
        began = time.monotonic()
        try:
            if not reply.is_file():
                self._folder.mkdir(parents=True, exist_ok=True)
                write_whole(asked, asked_text(request, reply.name))
            text = await self._answer(reply, began)
            asked.unlink(missing_ok=True)
        except OSError as error:
            raise ModelConfigError(
                f"{self._role}.handoff.folder: {self._folder}", str(error), "Choose another"
            ) from error
        return Reply(clean(text), model=self._who)

    async def _answer(self, reply: Path, began: float) -> str:
        size = -1
        while True:
            now = reply.stat().st_size if reply.is_file() else -1
            if 0 < now == size:
                if now > _MOST_BYTES:
                    raise OSError(f"{reply.name} holds {now} bytes, at most {_MOST_BYTES}")
                return reply.read_text(encoding="utf-8", errors="replace")
            if (
                now < 0
                and self._wait_s is not None
                and time.monotonic() - began >= self._wait_s
            ):
                await asyncio.sleep(0)  # let the other requests of this round be written
                raise Interrupted(
                    f"{self._role}: a request waits for its answer",
                    f"no {reply.name} in {self._folder}",
                    "Answer the .md files there, each in the file it names, then run the same "
                    "command again",
                )
            size = now
            await asyncio.sleep(_LOOK_S)

    async def close(self) -> None:
        """Nothing is held."""


def asked_text(request: Request, reply_name: str) -> str:
    """Return a request as a page for whoever answers it."""
    parts = [f"<!-- Write the answer into {reply_name}, and nothing else into it. -->"]
    if request.system:
        parts.append(f"# Instructions\n\n{request.system}")
    parts += [
        f"# {message.role.capitalize()}\n\n{_text(message)}" for message in request.messages
    ]
    if request.prompt is not None:
        parts.append(f"# Text to go on from\n\n{request.prompt}")
    if request.schema is not None:
        shape = json.dumps(request.schema, ensure_ascii=False, indent=1)
        parts.append(f"# The answer's form (JSON Schema)\n\n```json\n{shape}\n```")
    return "\n\n".join(parts) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write a file that nobody sees half of."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8", newline="\n")
    part.replace(path)


def _text(message: Message) -> str:
    return "".join(
        part.text if part.image is None else f"[image {part.image[:12]}]"
        for part in message.parts
    )
