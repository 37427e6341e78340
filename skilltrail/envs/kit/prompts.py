"""Prompts as Markdown files beside the code, with `{{name}}` where a value goes.

Values are put in in one pass, so text of an item that looks like a place is left alone. The
digest of the files belongs to an environment's version: editing a prompt makes new facts.
"""

from __future__ import annotations

import re
from pathlib import Path

from skilltrail.core.canon import digest
from skilltrail.core.errors import DataError

_PLACE = re.compile(r"\{\{(\w+)\}\}")


class Prompts:
    """The named prompts of one folder, read once.

    Raises:
        DataError: a file is not there or is not UTF-8.
    """

    def __init__(self, folder: Path, *names: str) -> None:
        self._texts = {name: _read(folder / f"{name}.md") for name in names}

    @property
    def digest(self) -> str:
        """Digest of all the prompts' texts (64 hex digits)."""
        return digest("prompts/1", self._texts)

    def fill(self, name: str, **values: str) -> str:
        """Return one prompt with every place filled.

        Raises:
            DataError: the file has a place for which there is no value.
        """

        def value(place: re.Match[str]) -> str:
            if place[1] not in values:
                raise DataError(
                    f"The prompt {name}.md",
                    f"a place {place[0]}",
                    f"There are {', '.join(f'{{{{{key}}}}}' for key in sorted(values))}",
                )
            return values[place[1]]

        return _PLACE.sub(value, self._texts[name])


def versioned(name: str, *prompts: Prompts) -> str:
    """Return an environment's version: its own name and number, and a digest of its prompts."""
    return f"{name}+{digest('prompts/1', [one.digest for one in prompts])[:12]}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The prompt {path.name}", str(error), "It is a UTF-8 file") from error
