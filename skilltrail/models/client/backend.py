"""What a backend has to do: send one request once. Everything else is done once for all.

A backend of your own is a class with these two methods (see docs/models/your-own.md).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path
from typing import Any, Protocol

from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Decoding, Part, Reply, Request

_THINKING = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
_THINKING_END = re.compile(r"\A.*?</think>\s*", re.DOTALL)


class Wire(Protocol):
    """One attempt at one call."""

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        """Send `request` with exactly `decoding` (None fields are left out).

        Raises:
            Refused: the provider declined the content.
            ModelError: see `skilltrail.models.errors`.
        """

    async def close(self) -> None:
        """Free connections and processes."""


def without_reasoning(text: str, open_tag_in_prompt: bool = False) -> str:
    """Return a reply's text without the reasoning block that stands before it.

    `open_tag_in_prompt`: the chat template wrote `<think>` itself, so only its end is seen.
    """
    if text.lstrip().startswith(("<think>", "<thinking>")):
        return _THINKING.sub("", text, count=1)
    if open_tag_in_prompt:
        return _THINKING_END.sub("", text, count=1)
    return text


def cut_at_stop(text: str, stop: tuple[str, ...]) -> str:
    """Return `text` up to the first stop string: for providers that know no stop setting."""
    cuts = [at for at in (text.find(mark) for mark in stop if mark) if at >= 0]
    return text[: min(cuts)] if cuts else text


def model_name(returned: Any) -> str:
    """Return the model's name as the provider gave it, a file's path reduced to its name;
    "" when it gave none."""
    if not isinstance(returned, str):
        return ""
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


def is_strict_schema(schema: Any) -> bool:
    """Return whether every object of the schema lists all its properties as required and
    allows no others: what strict structured output demands."""
    if isinstance(schema, list):
        return all(is_strict_schema(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    if "properties" in schema:
        required = set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False or required != set(
            schema["properties"]
        ):
            return False
    elif schema.get("type") == "object":
        return False
    return all(is_strict_schema(value) for value in schema.values())
