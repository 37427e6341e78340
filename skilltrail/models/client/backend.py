"""What a backend has to do: send one request once. Everything else is done once for all.

A backend of your own is a class with these two methods (see docs/models/your-own.md).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Decoding, Message, Part, Reply, Request


class Backend(Protocol):
    """One attempt at one call."""

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        """Send `request` with exactly `decoding` (None fields are left out).

        Raises:
            Refused: the provider declined the content.
            ModelError: see `skilltrail.models.errors`.
        """

    async def close(self) -> None:
        """Free connections and processes."""


def cut_at_stop(text: str, stop: tuple[str, ...]) -> str:
    """Return `text` up to the first stop string: for providers that know no stop setting."""
    cuts = [at for at in (text.find(mark) for mark in stop if mark) if at >= 0]
    return text[: min(cuts)] if cuts else text


def model_name(returned: str) -> str:
    """Return the model's name as the provider gave it, a file's path reduced to its name."""
    if returned.startswith(("/", "~")) or re.match(r"[A-Za-z]:\\", returned):
        return os.path.basename(returned.replace("\\", "/"))
    return returned


def bytes_at(asked: str, path: str | None, digest: str) -> bytes:
    """Return a file's bytes, checked against their SHA-256; `asked` is what messages call it.

    Raises:
        ModelConfigError: the file is gone or is not the one that was named.
    """
    if path is None:
        raise ModelConfigError(asked, "no path", "The environment must say where it lies")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelConfigError(asked, str(error), "Restore the file") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelConfigError(asked, f"{path} holds other bytes", "Load the items again")
    return data


def image_base64(part: Part) -> str:
    """Return the bytes of an image part; see `bytes_at`."""
    data = bytes_at(f"image {part.image}", part.path, str(part.image))
    return base64.b64encode(data).decode("ascii")


def image_url(part: Part) -> str:
    """Return the image as a data URL."""
    return f"data:{part.image_type};base64,{image_base64(part)}"


def content_of(message: Message, text_type: str, image: Callable[[Part], Any]) -> Any:
    """Return a message's content in a protocol's shape: a text, or parts where there is an
    image; `image` makes the part of one."""
    if all(part.image is None for part in message.parts):
        return "".join(part.text for part in message.parts)
    return [
        {"type": text_type, "text": part.text} if part.image is None else image(part)
        for part in message.parts
    ]
