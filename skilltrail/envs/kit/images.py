"""Images of items: a picture's kind is read from its first bytes, never from its name."""

from __future__ import annotations

from pathlib import Path

from skilltrail.core.errors import DataError
from skilltrail.envs.kit.files import file_digest
from skilltrail.models.protocol import Part

MAX_BYTES = 20_000_000  # what hosted models accept at most
DETAILS = ("auto", "low", "high")
_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_type(path: Path) -> str:
    """Return the media type of an image file.

    Raises:
        DataError: it is none of PNG, JPEG, GIF and WebP, or it is too large to be sent.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(16)
    if size > MAX_BYTES:
        raise DataError(
            f"The image {path.name}",
            f"{size / 1e6:.0f} MB",
            f"Models take at most {MAX_BYTES // 1_000_000} MB: save it smaller",
        )
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    for magic, kind in _KINDS:
        if head.startswith(magic):
            return kind
    raise DataError(
        f"The image {path.name}",
        "the file is empty" if not head else f"it begins with the bytes {head[:8].hex(' ')}",
        "Save it as PNG, JPEG, GIF or WebP",
    )


def image_part(path: Path, detail: str) -> Part:
    """Return the part of a message that shows an image, known by its digest."""
    return Part(
        image=file_digest(path),
        image_type=image_type(path),
        image_detail=detail,
        path=str(path),
    )
