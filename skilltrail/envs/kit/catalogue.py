"""The catalogue of failure types that lets `rules` train without any optimizer model.

It is data: `rules.yaml` beside the environment's `env.py`. `reasons` are the scorer's words
that mean the type, `lines` are instruction lines that may help against it.

    failure_types:
      verbose:
        means: the right answer stands inside a longer one
        reasons: [verbose]
        lines:
          - "Give the answer alone, without a sentence around it."
          - {line: "Take the words of the context.", needs: context}

A line that `needs` a field of the input (or one of several) is for items that have it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.score import Score

UNKNOWN = "unknown"


@dataclass(frozen=True)
class FailureType:
    """One way to fail.

    Attributes:
        means: a sentence for people.
        reasons: reasons of the environment's scorer that stand for this type.
        lines: instruction lines that may help, most general first.
        needs: line -> fields of which an item's input must have one; absent = none needed.
    """

    name: str
    means: str
    reasons: tuple[str, ...]
    lines: tuple[str, ...]
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Catalogue:
    """The closed list of failure types of one environment, in the order of its file."""

    types: tuple[FailureType, ...]

    def type_of(self, score: Score) -> str:
        """Return the failure type that the score's reason stands for, or `unknown`."""
        for failure in self.types:
            if score.reason in failure.reasons:
                return failure.name
        return UNKNOWN

    def lines(self, failure_type: str, items: Iterable[Item]) -> dict[str, list[str]]:
        """Return the lines against a type that fit any of its failed items, with their ids."""
        kind = next((f for f in self.types if f.name == failure_type), None)
        if kind is None:
            return {}
        failed = list(items)
        fit = {
            line: [i.id for i in failed if _fits(i, kind.needs.get(line))]
            for line in kind.lines
        }
        return {line: ids for line, ids in fit.items() if ids}

    @property
    def all_lines(self) -> frozenset[str]:
        return frozenset(line for failure in self.types for line in failure.lines)


def load_catalogue(path: Path) -> Catalogue:
    """Read a `rules.yaml`.

    Raises:
        DataError: it is no catalogue; the message names the file and the failure type.
    """
    try:
        raw = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except YAMLError as error:
        raise DataError(f"the rule catalogue {path.name}", str(error)) from error
    types = raw.get("failure_types") if isinstance(raw, Mapping) else None
    if not isinstance(types, Mapping) or not types:
        raise DataError(
            f"the rule catalogue {path.name}",
            "no mapping 'failure_types'",
            "See skilltrail/envs/kit/catalogue.py for the form",
        )
    return Catalogue(tuple(_failure_type(path, name, spec) for name, spec in types.items()))


def _fits(item: Item, needed: tuple[str, ...] | None) -> bool:
    return needed is None or any(item.input.get(name) not in (None, "") for name in needed)


class _CatalogueLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line with the fields that it needs, as the file writes it."""

    line: str
    needs: str | list[str] = []


class _FailureTypeFile(msgspec.Struct, forbid_unknown_fields=True):
    """A failure type as the file writes it."""

    means: str = ""
    reasons: list[str] = []
    lines: list[str | _CatalogueLine] = []


def _failure_type(path: Path, name: str, spec: Any) -> FailureType:
    """Return one entry of the catalogue; see `load_catalogue`."""
    try:
        told = msgspec.convert(spec, _FailureTypeFile)
    except msgspec.ValidationError as error:
        raise DataError(
            f"the rule catalogue {path.name}, failure type {name!r}",
            f"{spec!r}: {error}",
            "Give it `means` (text), `reasons` and `lines` (lists)",
        ) from error
    lines = [_CatalogueLine(one) if isinstance(one, str) else one for one in told.lines]
    needs = {one.line: one.needs for one in lines if one.needs}
    return FailureType(
        name=str(name),
        means=told.means,
        reasons=tuple(told.reasons),
        lines=tuple(one.line for one in lines),
        needs={k: (v,) if isinstance(v, str) else tuple(v) for k, v in needs.items()},
    )
