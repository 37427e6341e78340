"""The prompted optimizer: SkillOpt's verbs (arXiv 2605.23904), each put to a chat model, one
model per stage that asks for its own.

It keeps no state: a request is a function of the view, the prompts and the options, so resume
after a crash asks the same questions and finds the answers among the facts. What a model may
decide, and what a rule decides where its answer is of no use, is told in each verb's module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skilltrail.models.client.budget import Account
from skilltrail.models.client.facts import CountReply, Facts
from skilltrail.models.protocol import Model, Reply
from skilltrail.models.registry import open_model
from skilltrail.optimizers.failure_types import failure_types_of
from skilltrail.optimizers.llm import (
    choosing,
    compacting,
    composing,
    merging,
    reflecting,
    writing,
)
from skilltrail.optimizers.llm.ask import Asker
from skilltrail.optimizers.llm.options import LlmOptions, role_of_stage
from skilltrail.optimizers.llm.prompts import Templates
from skilltrail.optimizers.llm.proposals import ProposalContext
from skilltrail.optimizers.protocol import Answer, Brief, EpochView, StepRecord, StepView
from skilltrail.optimizers.screen import Screen
from skilltrail.params.model_options import STAGES, RoleOptions
from skilltrail.skill.edit import Edit, Patch


def uncounted(reply: Reply | None, *, reused: bool) -> None:
    """Count nothing."""


class LlmOptimizer:
    """An `Optimizer` over any chat model.

    Args:
        model_for: the model of a stage (`options.STAGES`).
        facts: where calls are kept and found again.
        env: the environment's name: its failure types, and its own prompts where it has any.
        count: told of each reply, made or recalled.
    """

    tag = "llm/1"

    def __init__(
        self,
        model_for: Callable[[str], Model],
        facts: Facts,
        options: LlmOptions,
        env: str,
        count: CountReply = uncounted,
    ) -> None:
        self._model_for = model_for
        self._types = failure_types_of(env)
        self._asker = Asker(model_for, facts, options, Templates(env), count)
        self._agent = options.setting.domain.agent

    def _ground(self, view: StepView) -> ProposalContext:
        screen = Screen.of_step(view, self._agent)
        return ProposalContext(
            view.skill,
            view.max_skill_tokens,
            screen,
            view.frozen,
            view.scripts,
            view.references,
        )

    async def reflect(self, view: StepView) -> Answer:
        return await reflecting.reflect(self._asker, view, self._ground(view), self._types)

    async def merge(self, view: StepView, patches: Sequence[Patch]) -> Answer:
        return await merging.merge(self._asker, view, self._ground(view), patches)

    async def choose_budget(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        return await choosing.choose_budget(self._asker, view, edits)

    async def rank(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        return await choosing.rank(self._asker, view, edits)

    async def rewrite(self, view: StepView, suggestions: Sequence[Edit]) -> Answer:
        return await writing.rewrite(self._asker, view, self._ground(view), suggestions)

    async def consolidate(self, view: StepView, notes: Sequence[str]) -> Answer:
        return await writing.consolidate(self._asker, view, self._ground(view), notes)

    async def slow_update(self, view: EpochView) -> Answer:
        return await writing.slow_update(self._asker, view)

    async def meta_skill(self, view: EpochView) -> Answer:
        return await writing.meta_skill(self._asker, view)

    async def compact(self, view: EpochView) -> Answer:
        return await compacting.compact(self._asker, view)

    async def compose(self, view: StepView, brief: Brief) -> Answer:
        return await composing.compose(self._asker, view, self._ground(view), brief)

    def is_done(self, history: Sequence[StepRecord]) -> bool:
        """Return False: a model may find a shorter document that does as well."""
        return False

    async def close(self) -> None:
        closed: list[Model] = []
        for model in map(self._model_for, STAGES):
            if not any(model is other for other in closed):
                closed.append(model)
                await model.close()


Opener = Callable[[RoleOptions], Model]


def open_optimizer_model(options: RoleOptions, account: Account | None = None) -> Model:
    """Open the model of one stage of the role `optimizer`; all stages draw on one account."""
    return open_model("optimizer", options, account=account)


def open_llm(
    role: RoleOptions,
    options: LlmOptions,
    facts: Facts,
    env: str,
    count: CountReply = uncounted,
    opener: Opener = open_optimizer_model,
) -> LlmOptimizer:
    """Return the prompted optimizer whose models `role` describes.

    Stages with the same settings share one model, hence its limits.

    Raises:
        ParamError: settings that cannot work.
        ModelConfigError: a key or program that is not there, named.
    """
    roles = {stage: role_of_stage(role, stage) for stage in STAGES}
    models: list[tuple[RoleOptions, Model]] = []
    for wanted in roles.values():
        if not any(wanted == known for known, _ in models):
            models.append((wanted, opener(wanted)))

    def model_for(stage: str) -> Model:
        return next(model for known, model in models if known == roles[stage])

    return LlmOptimizer(model_for, facts, options, env, count)
