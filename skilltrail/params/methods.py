"""Which method trains, what each reads, and where a training ends.

Every method has a section of its own; what only others read is no part of a run's identity.
Defaults are those of the papers and of the public packages, but for what docs/methods.md says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skilltrail.params.knob import knob

METHODS = (
    "skillopt",
    "bootstrap",
    "gepa",
    "mipro",
    "opro",
    "promptbreeder",
    "random_search",
    "textgrad",
)
NEED_A_MODEL = ("mipro", "opro", "promptbreeder", "textgrad")
ASK = ("skillopt", "gepa", *NEED_A_MODEL)
_OF_THE_LOOP = (
    *("batch_size", "accumulation", "update_mode", "patience", "compaction"),
    *("lr", "lr_min", "lr_schedule", "lr_phase", "lr_rounding", "lr_bound", "lr_warmup"),
    *("slow_update", "meta_skill", "skill_aware"),
)

# Knobs and sections that only some methods read; what is not named here, all read.
READERS: Mapping[str, tuple[str, ...]] = {
    "epochs": ("skillopt", "gepa", "textgrad"),
    **dict.fromkeys(_OF_THE_LOOP, ("skillopt",)),
    "merge_batch_size": ("skillopt", "gepa"),
    "merge_ask": ("skillopt", "gepa"),
    "reflect.success_threshold": ("skillopt", "bootstrap", "gepa", "mipro", "promptbreeder"),
    "reflect.minibatch_size": ("skillopt", "gepa"),
    "reflect.success": ("skillopt", "gepa"),
    "reflect": ASK,
    "optimizer": ASK,
    **{f"methods.{name}": (name,) for name in METHODS if name != "skillopt"},
}


def reads(method: str, key: str) -> bool:
    """Return whether a method reads a knob; the longest name that is listed decides."""
    name = key
    while name and name not in READERS:
        name = name.rpartition(".")[0]
    return not name or method in READERS[name]


@dataclass(frozen=True)
class Stop:
    """Where a training ends in good order; `budget` is the brake for emergencies."""

    calls: int = knob(
        0,
        "Target calls of a training, recorded ones counted as if made; 0 = no end.",
        low=0,
        idle=0,
    )


@dataclass(frozen=True)
class Bootstrap:
    """Demonstrations (DSPy's BootstrapFewShotWithRandomSearch)."""

    candidates: int = knob(16, "Random sets of demonstrations tried.", low=0)
    max_bootstrapped: int = knob(4, "Most demonstrations that a rollout solved.", low=0)
    max_labelled: int = knob(16, "Most demonstrations in all.", low=0)


@dataclass(frozen=True)
class Gepa:
    """Reflective mutation of a per-item Pareto front."""

    minibatch: int = knob(3, "Train items that a candidate is first judged on.", low=1)
    merges: int = knob(5, "Most merges of two documents of the front.", low=0)


@dataclass(frozen=True)
class Mipro:
    """Proposed documents and demonstrations, put together by a search (DSPy's MIPROv2)."""

    proposals: int = knob(3, "Documents to choose from, the seed among them.", low=1)
    sets: int = knob(6, "Sets of demonstrations to choose from, none among them.", low=1)
    trials: int = knob(10, "Combinations tried on a minibatch.", low=1)
    minibatch: int = knob(35, "Selection items of a trial.", low=1)
    full_every: int = knob(5, "Trials between measurements in full.", low=1)
    max_bootstrapped: int = knob(4, "Most demonstrations that a rollout solved.", low=0)
    max_labelled: int = knob(4, "Most demonstrations in all.", low=0)


@dataclass(frozen=True)
class Opro:
    """A model that is shown past documents with their scores writes new ones."""

    rounds: int = knob(200, "Rounds, each with one question.", low=1)
    proposals: int = knob(8, "Documents written in a round.", low=1)
    shown: int = knob(20, "Most past documents shown, the best ones.", low=1)
    sample: int = knob(50, "Train items that give a document its score.", low=1)
    exemplars: int = knob(3, "Runs of train tasks shown.", low=0)


@dataclass(frozen=True)
class PromptBreeder:
    """A population of documents and of the instructions that change them."""

    population: int = knob(50, "Documents, each with its instruction.", low=2)
    generations: int = knob(20, "Generations; in each, all meet in pairs.", low=1)
    sample: int = knob(100, "Train items that give a document its fitness.", low=1)
    crossover: float = knob(0.1, "Chance that a child is another's document.", low=0, high=1)


@dataclass(frozen=True)
class RandomSearch:
    """The honest floor: random lines and worked examples."""

    candidates: int = knob(16, "Random documents tried.", low=1)
    most_edits: int = knob(8, "Most lines and worked examples in one.", low=1)


@dataclass(frozen=True)
class TextGrad:
    """Feedback in words on each run of a batch, and one rewriting by all of it."""

    batch: int = knob(3, "Train items of a step.", low=1)
    momentum: int = knob(0, "Earlier steps whose feedback is shown again.", low=0)
    revert: bool = knob(True, "Go back where the selection split did not improve.")


@dataclass(frozen=True)
class Methods:
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    gepa: Gepa = field(default_factory=Gepa)
    mipro: Mipro = field(default_factory=Mipro)
    opro: Opro = field(default_factory=Opro)
    promptbreeder: PromptBreeder = field(default_factory=PromptBreeder)
    random_search: RandomSearch = field(default_factory=RandomSearch)
    textgrad: TextGrad = field(default_factory=TextGrad)
