"""What a run paid for and what it reused: `.skilltrail/usage.json`.

    {"train": {"target": {...}, "optimizer": {...}}, "evaluate": {...}, "total": {...},
     "run": ..., "dvc_run": ...}

The role `judge` is there when one was asked. Each role counts calls `made`, `reused` and
`failed`, `tokens` (paid) and `tokens_reused`, each `{"input", "output"}`, and `cost` in US
dollars, null once a call's price is unknown. `total` has the same for both stages by role, and
summed over the roles beside that. `run` is the id of the last event of the training log that
the counts are about, null until that log is finished.

The file tells of one `dvc` run: train begins it anew, evaluate goes on with the train section
only if the same `dvc` process wrote it. An experiment in a workspace of its own counts in
`.skilltrail/usage/<experiment>.json`, which nobody else writes, and copies that.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from skilltrail.core.canon import loaded
from skilltrail.core.errors import FaultError
from skilltrail.core.files import write_atomic
from skilltrail.store.place import Place, dvc_run

SECTIONS = ("train", "evaluate")
ROLES = ("target", "optimizer", "judge")
_FLUSH_EVERY_S = 0.25


def read_usage(path: Path) -> dict[str, Any] | None:
    """Return the counts in a usage file; None where there is none.

    Raises:
        FaultError: the file is torn, or holds something else.
    """
    try:
        data = loaded(path.read_bytes())
        for section in SECTIONS:
            for counts in data[section].values():
                Tally.of(counts)
        Tally.of(data["total"])
        return {"dvc_run": None, **data}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise FaultError(
            f"The counts in {path} cannot be read",
            f"damaged ({type(error).__name__}: {error})",
            "Delete the file: the next `dvc repro` counts anew, and nothing else reads it",
        ) from error


def _tokens(usage: Mapping[str, int]) -> Counter[str]:
    return Counter({name: int(usage.get(name, 0)) for name in ("input", "output")})


@dataclass
class Tally:
    """Counts of one role in one stage; `cost` is None once a call's price is unknown."""

    made: int = 0
    reused: int = 0
    failed: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    tokens_reused: Counter[str] = field(default_factory=Counter)
    cost: Fraction | None = Fraction(0)

    @staticmethod
    def of(data: Mapping[str, Any]) -> Tally:
        """Return the counts that `to_json` wrote."""
        made, reused, failed = (int(data.get(n, 0)) for n in ("made", "reused", "failed"))
        paid, spared = (_tokens(data.get(name, {})) for name in ("tokens", "tokens_reused"))
        cost = data.get("cost", 0.0)
        known = None if cost is None else Fraction(cost)
        return Tally(made, reused, failed, paid, spared, known)

    def __add__(self, other: Tally) -> Tally:
        known = self.cost is not None and other.cost is not None
        return Tally(
            self.made + other.made,
            self.reused + other.reused,
            self.failed + other.failed,
            self.tokens + other.tokens,
            self.tokens_reused + other.tokens_reused,
            self.cost + other.cost if known else None,  # type: ignore[operator]
        )

    @property
    def is_idle(self) -> bool:
        return not (self.made or self.reused or self.failed)

    def to_json(self) -> dict[str, Any]:
        tokens = {name: dict(_tokens(vars(self)[name])) for name in ("tokens", "tokens_reused")}
        return {**vars(self), **tokens, "cost": None if self.cost is None else float(self.cost)}


Tallies = dict[str, dict[str, Tally]]


class Meter:
    """Counts the calls of one stage, from any task and thread; a killed run leaves its counts.

    Counts reach the file at the first call after a quarter of a second, and at `close`.
    """

    def __init__(self, place: Place, section: str, *, apart: str | None = None) -> None:
        """Count `section`; `apart` names a file of its own under `.skilltrail/usage/`."""
        if section not in SECTIONS:
            raise ValueError(f"a section is one of {', '.join(SECTIONS)}, found {section!r}")
        self._section = section
        self._paths = [place.state / "usage.json"]
        if apart is not None:
            self._paths = [place.state / "usage" / f"{apart}.json"]
        elif place.is_temporary:
            name = f"{place.experiment}.json".replace("/", "-")
            self._paths.insert(0, place.state / "usage" / name)
        self._dvc_run = dvc_run()
        self._run: str | None = None
        self._tallies = self._begun()
        self._guard = threading.Lock()
        self._flushed_at = time.monotonic()
        self.flush()

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.flush()

    def made(self, role: str, usage: Mapping[str, int], cost: float | None) -> None:
        """Count a paid call with its tokens; `cost` in US dollars, None when unknown."""
        known = None if cost is None else Fraction(cost)
        self._count(role, Tally(made=1, tokens=_tokens(usage), cost=known))

    def reused(self, role: str, usage: Mapping[str, int]) -> None:
        """Count a call that a stored fact made unnecessary, with the tokens it once took."""
        self._count(role, Tally(reused=1, tokens_reused=_tokens(usage)))

    def failed(self, role: str) -> None:
        """Count a call that brought no usable reply."""
        self._count(role, Tally(failed=1))

    def belongs_to(self, run: str) -> None:
        """Say whose calls these are: `run` is the id of its training log's last event."""
        self._run = run
        self.flush()

    def counts(self) -> dict[str, Tally]:
        """Return this stage's counts so far by role."""
        with self._guard:
            return dict(self._tallies[self._section])

    def snapshot(self) -> dict[str, Any]:
        """Return the counts so far, in the shape of the file."""
        with self._guard:
            return usage_json(self._tallies, self._dvc_run) | {"run": self._run}

    def flush(self) -> None:
        """Write the counts.

        Raises:
            SkilltrailError: the file cannot be written.
        """
        text = json.dumps(self.snapshot(), indent=2) + "\n"
        for path in self._paths:
            write_atomic(path, text, synced=False)
        self._flushed_at = time.monotonic()

    def _count(self, role: str, more: Tally) -> None:
        with self._guard:
            self._tallies[self._section][role] += more
        if time.monotonic() - self._flushed_at >= _FLUSH_EVERY_S:
            self.flush()

    def _begun(self) -> Tallies:
        """Return the counts to start from: the other section's where this run wrote them."""
        tallies = {section: {role: Tally() for role in ROLES} for section in SECTIONS}
        if self._section == "evaluate":
            with suppress(FaultError):  # figures of a file that tells nothing begin anew
                before = read_usage(self._paths[0])
                if before is not None and before["dvc_run"] == self._dvc_run:
                    train = before["train"]
                    tallies["train"] = {role: Tally.of(train.get(role, {})) for role in ROLES}
        return tallies


def shown(role: str, tally: Tally) -> bool:
    """Return whether a role stands in the file: the judge does where one was asked."""
    return role != "judge" or not tally.is_idle


def usage_json(tallies: Tallies, run: str | None) -> dict[str, Any]:
    """Return the counts in the shape of the file."""
    by_role = {role: tallies["train"][role] + tallies["evaluate"][role] for role in ROLES}
    data: dict[str, Any] = {
        section: {role: tally.to_json() for role, tally in counts.items() if shown(role, tally)}
        for section, counts in (*tallies.items(), ("total", by_role))
    }
    data["total"].update(sum(by_role.values(), Tally()).to_json())
    data["dvc_run"] = run
    return data
