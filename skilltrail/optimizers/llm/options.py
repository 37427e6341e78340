"""What the prompted optimizer is told by params, apart from the models themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from skilltrail.optimizers.llm.setting import Setting
from skilltrail.params.model_options import STAGES, RoleOptions, StageOptions

CONTEXT_TOKENS = 128_000  # taken where neither params nor the backend say


@dataclass(frozen=True)
class LlmOptions:
    """Settings of the prompted optimizer.

    Attributes:
        minibatch_size: trajectories per analyst call, at least 1.
        success: which successes are asked about: `auto`, `always`, `never` (see `batching`).
        grouping, per_batch: which runs share a minibatch (see `batching`).
        most_edits: most edits of one analyst, told and enforced; 0 = no cap.
        merge_ask: `touching` patches are merged by the model, or any: `always`.
        guide_ask: guidance is asked for where it is `needed`, or `always`.
        past: of which earlier steps questions are told, `run` or `epoch`; `past_to` and
            `memory_to` are the stages whose questions are told them and the meta skill.
        workers: analyst calls in flight at once; changes no result.
        show: what analysts see of a trajectory besides its turns, of the param `reflect.show`.
        trajectory_chars: most characters of one trajectory; None = what the context holds.
        context_tokens: what a request and its reply may hold together.
        skill_aware: analysts tell defects of the skill from lapses in following it.
        notes_from: `both` analysts or `failure_only` may write notes on lapses.
        stages: what single stages do differently.
        judge_reasons: whether feedback holds what the judge said, for the record.
        setting: what every question is told of target, domain and scorer.
    """

    minibatch_size: int = 8
    success: str = "always"
    grouping: str = "cause"
    per_batch: bool = False
    most_edits: int = 0
    merge_ask: str = "touching"
    guide_ask: str = "needed"
    past: str = "run"
    past_to: tuple[str, ...] = STAGES
    memory_to: tuple[str, ...] = STAGES
    workers: int = 16
    show: tuple[str, ...] = ("prompt", "trace", "preview", "reference")
    trajectory_chars: int | None = None
    context_tokens: int = CONTEXT_TOKENS
    skill_aware: bool = False
    notes_from: str = "both"
    max_tokens: int | None = None
    stages: Mapping[str, StageOptions] = field(default_factory=dict)
    judge_reasons: bool = False
    setting: Setting = field(default_factory=Setting)

    def max_tokens_of(self, stage: str) -> int | None:
        """Return the most tokens of a reply of this stage; None = the provider's default."""
        own = self.stages[stage].max_tokens if stage in self.stages else None
        return self.max_tokens if own is None else own


def role_of_stage(role: RoleOptions, stage: str) -> RoleOptions:
    """Return how this stage reaches its model.

    The output limit is left out: requests carry it (`LlmOptions.max_tokens_of`), so that a
    reply that was cut can be asked for again with a larger one.
    """
    own: StageOptions = getattr(role.stages, stage)
    return replace(
        role,
        model=role.model if own.model is None else own.model,
        effort=role.effort if own.effort is None else own.effort,
        max_tokens=None,
    )
