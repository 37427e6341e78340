"""The catalogue of failure types that lets `rules` train without any optimizer model.

It is data: `rules.yaml` beside the environment's `env.py`. `reasons` are the scorer's words
that mean the type, `lines` are instruction lines that may help against it.

    failure_types:
      verbose:
        means: the right answer stands inside a longer one
        reasons: [verbose]
        lines: ["Give the answer alone, without a sentence around it."]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.core.errors import DataError
from skilltrail.core.score import Score

UNKNOWN = "unknown"


@dataclass(frozen=True)
class FailureType:
    """One way to fail.

    Attributes:
        means: a sentence for people.
        reasons: reasons of the environment's scorer that stand for this type.
        lines: instruction lines that may help, most general first.
    """

    name: str
    means: str
    reasons: tuple[str, ...]
    lines: tuple[str, ...]


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

    def lines(self, failure_type: str) -> tuple[str, ...]:
        """Return the instruction lines against a type; none for an unknown one."""
        return next((f.lines for f in self.types if f.name == failure_type), ())

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


def _failure_type(path: Path, name: str, spec: Any) -> FailureType:
    """Return one entry of the catalogue; see `load_catalogue`."""
    known = {"means": str, "reasons": list, "lines": list}
    if not isinstance(spec, Mapping) or not all(
        key in known and isinstance(value, known[key]) for key, value in spec.items()
    ):
        raise DataError(
            f"the rule catalogue {path.name}, failure type {name!r}",
            repr(spec),
            "Give it `means` (text), `reasons` and `lines` (lists)",
        )
    return FailureType(
        name=str(name),
        means=spec.get("means", ""),
        reasons=tuple(spec.get("reasons", ())),
        lines=tuple(spec.get("lines", ())),
    )
