"""Which code and prompts a run was made with, as one digest."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
COUNTED = {".py", ".md", ".yaml"}


@cache
def code_digest() -> str:
    """Return the SHA-256 over every code, prompt and rule file of the package."""
    total = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in COUNTED and "__pycache__" not in path.parts:
            total.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
            total.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return total.hexdigest()
