"""Knobs of who proposes edits: what it sees, what it is told, what it writes at epoch ends."""

from __future__ import annotations

from dataclasses import dataclass

from skilltrail.params.knob import knob
from skilltrail.params.model_options import BACKENDS, STAGES, RoleOptions

SHOWN = ("prompt", "trace", "preview", "reference")


@dataclass(frozen=True)
class Reflect:
    """What analysts are shown. `rules` reads the threshold only."""

    success_threshold: float = knob(
        1.0, "A rollout whose hard score is at least this is a success.", low=0, high=1
    )
    minibatch_size: int = knob(8, "Trajectories per analyst call.", low=1)
    success: str = knob(
        "auto",
        "Which successes analysts are asked about; auto = unstable items, and task types that "
        "fail as often as they succeed.",
        choices=("auto", "always", "never"),
    )
    grouping: str = knob(
        "cause",
        "Which runs share a minibatch: those of one task type and reason, or as they fall.",
        choices=("cause", "shuffled"),
        idle="cause",
    )
    per_batch: bool = knob(
        False, "With accumulation: no minibatch holds runs of two batches.", idle=False
    )
    most_edits: int = knob(
        0, "Most edits an analyst may propose, told and enforced; 0 = no cap.", low=0, idle=0
    )
    show: tuple[str, ...] = knob(
        ("prompt", "trace", "reference"), "Of prompt, trace, preview, reference.", choices=SHOWN
    )
    trajectory_chars: int | None = knob(
        None,
        "Longest trajectory shown, cut turn by turn and marked; auto = what the optimizer's "
        "context holds.",
        low=200,
        auto=True,
    )


@dataclass(frozen=True)
class Optimizer(RoleOptions):
    """Who proposes edits: the embedded `rules`, or any model."""

    backend: str = knob("rules", "`rules` needs no model.", choices=("rules", *BACKENDS))
    context_tokens: int | None = knob(
        None,
        "Tokens that a request and its reply may hold together; auto = n_ctx of an embedded "
        "model, else 128000.",
        low=1024,
        auto=True,
    )
    past: str = knob(
        "run", "Whose earlier steps questions are told.", choices=("run", "epoch"), idle="run"
    )
    past_to: tuple[str, ...] = knob(
        STAGES, "Stages whose questions are told them.", choices=STAGES, idle=STAGES
    )


@dataclass(frozen=True)
class SlowUpdate:
    """At the end of an epoch, from the second: guidance in a protected region (momentum)."""

    enabled: bool | None = knob(
        None,
        "Compare epochs and write guidance; auto = where the optimizer is a model.",
        auto=True,
    )
    samples: int = knob(20, "Train items compared.", low=1)
    ask: str = knob(
        "needed",
        "needed = where a compared item regressed or still fails.",
        choices=("needed", "always"),
        idle="needed",
    )
    mode: str = knob(
        "gated", "`force` keeps the guidance whatever its scores.", choices=("gated", "force")
    )
    pairs: str = knob(
        "mixed", "Which compared items count.", choices=("mixed", "changed", "unchanged")
    )
    max_extra: int = knob(
        20, "Most rollouts to find more changed items.", low=0,
        read_when=("slow_update.pairs", ("changed",)),
    )  # fmt: skip


@dataclass(frozen=True)
class MetaSkill:
    enabled: bool | None = knob(
        None,
        "Keep an optimizer-side memory, written at the end of each epoch; auto = where the "
        "optimizer is a model.",
        auto=True,
    )
    from_epoch: int = knob(1, "First epoch at whose end it is written.", low=1, idle=1)
    told_to: tuple[str, ...] = knob(
        STAGES, "Stages whose questions are told it.", choices=STAGES, idle=STAGES
    )


@dataclass(frozen=True)
class SkillAware:
    """Tell a defect of the skill from a lapse in following it; lapses become short notes."""

    enabled: bool = knob(False, "Write notes into the protected appendix.")
    source: str = knob("both", "Whose notes count.", choices=("both", "failure_only"))
    consolidate_over: int = knob(
        0, "Consolidate when there are more notes than this; 0 = never.", low=0
    )
