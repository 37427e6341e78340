"""A raw record: what a file says of one item before the environment has read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skilltrail.core.canon import cleaned
from skilltrail.core.errors import DataError
from skilltrail.envs.protocol import Where


@dataclass(frozen=True)
class Record:
    """One raw record and where it stands (its first line)."""

    data: Mapping[str, Any]
    where: Where


def record_of(value: Any, where: Where) -> Record:
    """Return the record of a JSON value, its text free of lone surrogates.

    Raises:
        DataError: the value is not an object.
    """
    if not isinstance(value, dict):
        raise DataError(
            str(where),
            f"expected an object, found {type(value).__name__}",
            "Write each record as an object with named fields",
        )
    return Record(cleaned(value), where)
