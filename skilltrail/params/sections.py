"""The sections of `params.yaml` on items, gate, judge and evaluation: each a frozen dataclass.

To add a knob: one line here or in `skilltrail.params.fields`, one in `params.yaml`, one test
that it changes something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.item import SPLITS
from skilltrail.params.knob import derived, knob, operational
from skilltrail.params.model_options import BACKENDS, RoleOptions

NO_DATA = "data/none"

GATE_RULES = ("strict", "paired", "no_regression", "pareto")
METRICS = ("hard", "soft", "mixed")


@dataclass(frozen=True)
class Limit:
    train: int = operational(0, "Train items to use; 0 = all.", low=0)
    selection: int = operational(0, "Selection items to use; 0 = all.", low=0)
    test: int = operational(0, "Test items to use; 0 = all.", low=0)


@dataclass(frozen=True)
class Data:
    """Where items come from. What a run keys on is the items themselves, not these."""

    path: str = operational(
        NO_DATA, f"A file of items to split by ratio; {NO_DATA} = not given (then data/<env>)."
    )
    split_dir: str = operational(
        NO_DATA, f"A folder of ready-made splits; {NO_DATA} = not given."
    )
    ratio: str = operational("2:1:7", "train:selection:test, positive numbers.")
    split_seed: int = operational(42, "Seed of the assignment to splits.", low=0)
    group_key: str | None = operational(
        None, "Field whose equal values stay in one split; null = none."
    )
    allow_overlap: bool = operational(False, "Let the same content stand in two splits.")
    limit: Limit = field(default_factory=Limit)


@dataclass(frozen=True)
class JudgeOptions(RoleOptions):
    """Who scores what no rule can; see docs/models/judge.md."""

    backend: str = knob("none", "`none` = nobody.", choices=("none", *BACKENDS))
    rubric: str = operational(
        NO_DATA,
        f"File that tells the judge what a good answer is; {NO_DATA} = not given. Its text is "
        "part of fact keys.",
    )
    threshold: float = knob(1.0, "Least judged score that is a hard 1.", low=0, high=1)
    show_reasons: bool = knob(
        False, "Show analysts what the judge said of train rollouts; can be gamed."
    )


@dataclass(frozen=True)
class Gate:
    rule: str = knob("strict", "How a candidate is judged.", choices=GATE_RULES)
    metric: str = knob("hard", "Which score is compared.", choices=METRICS)
    mixed_weight: float = knob(
        0.5, "Share of soft in `mixed`.", low=0, high=1, read_when=("gate.metric", ("mixed",))
    )
    alpha: float = knob(
        0.05,
        "Level of the sign-flip test.",
        low=0,
        high=1,
        read_when=("gate.rule", ("paired",)),
    )
    tolerance: float = knob(
        0.0,
        "How far one item may fall (no_regression), and one of several targets.",
        low=0,
        high=1,
        read_when=("gate.rule", ("no_regression",)),
    )
    prefer_shorter: bool = knob(
        True,
        "Accept an equal mean with fewer tokens; the best skill moves with it.",
        read_when=("gate.rule", ("strict", "paired", "no_regression")),
    )
    min_coverage: float = knob(
        1.0,
        "Least share of items that must be scored; below 1 a run continues without them.",
        low=0,
        high=1,
    )
    repeats: int = knob(1, "Rollouts per selection item; their mean is its score.", low=1)
    min_items: int = knob(2, "Fewest item pairs a verdict may rest on.", low=1)


@dataclass(frozen=True)
class Evaluate:
    enabled: bool = operational(
        True, "Open the test split after training; false keeps it sealed."
    )
    skills: tuple[str, ...] = operational(
        (),
        "Skills measured: FILE, RUN:vN, seed, best, last; the first is what others gain over. "
        "None = seed, best and, where it differs, last.",
    )
    split: str = operational("test", "Items measured on.", choices=(*SPLITS, "all"))
    targets: Mapping[str, Any] = operational(
        {},
        "Further targets by name, each with the keys of `target`: what carries over to them.",
    )
    roles: Mapping[str, RoleOptions] = derived(dict)
