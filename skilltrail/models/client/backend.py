"""What a backend has to do: send one request once. Everything else is done once for all.

A backend of your own is a class with these two methods (see docs/models/your-own.md).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path
from typing import Protocol

from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Decoding, Part, Reply, Request


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


def image_base64(part: Part) -> str:
    """Return the bytes of an image part, checked against its digest.

    Raises:
        ModelConfigError: the file is gone or is not the one that was named.
    """
    asked = f"image {part.image}"
    if part.path is None:
        raise ModelConfigError(asked, "no path", "The environment must say where its bytes lie")
    try:
        data = Path(part.path).read_bytes()
    except OSError as error:
        raise ModelConfigError(asked, str(error), "Restore the image file") from error
    if hashlib.sha256(data).hexdigest() != part.image:
        raise ModelConfigError(asked, f"{part.path} holds other bytes", "Load the items again")
    return base64.b64encode(data).decode("ascii")


def image_url(part: Part) -> str:
    """Return the image as a data URL."""
    return f"data:{part.image_type};base64,{image_base64(part)}"
