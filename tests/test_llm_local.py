"""The prompted optimizer on the real embedded model: poor edits are fine, crashes are not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from llm_script import MemoryFacts, ScriptedModel, observation, step_view

from skilltrail.core.errors import SkilltrailError
from skilltrail.optimizers.llm.optimizer import open_llm
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.protocol import Answer
from skilltrail.params.model_options import STAGES, RoleOptions, StageOptions, StagesOptions
from skilltrail.skill.edit import Patch

pytest.importorskip("xllamacpp")


@pytest.fixture(scope="module")
def answer() -> Answer:
    """What one analyst said; its reply is capped, for the prompt alone takes seconds."""
    role = RoleOptions(backend="local", style="chat", n_ctx=4096, workers=1)
    limits = dict.fromkeys(STAGES, StageOptions(max_tokens=16))
    options = LlmOptions(stages=limits, trajectory_chars=600)
    try:
        optimizer = open_llm(role, options, MemoryFacts(), "toy")
    except SkilltrailError as error:
        pytest.skip(f"the embedded model is not here: {error}")

    async def go() -> Answer:
        try:
            return await optimizer.reflect(step_view([observation("a")], budget=1))
        finally:
            await optimizer.close()

    return asyncio.run(go())


def test_what_a_tiny_model_says_is_valid_or_named(answer: Answer) -> None:
    assert all(isinstance(patch, Patch) for patch in answer.value)
    assert answer.value or answer.rejected
    assert all(one.reply is not None and one.message and one.then for one in answer.rejected)


def test_a_stage_may_have_a_model_of_its_own() -> None:
    opened: list[RoleOptions] = []
    stages = StagesOptions(rank=StageOptions(model="larger"), merge=StageOptions(max_tokens=9))
    role = RoleOptions(backend="local", max_tokens=5, stages=stages)
    open_llm(role, LlmOptions(), MemoryFacts(), "toy", opener=_remember(opened))
    assert [options.model for options in opened] == [role.model, "larger"]
    assert all(options.max_tokens is None for options in opened)


def _remember(opened: list[RoleOptions]) -> Callable[[RoleOptions], ScriptedModel]:
    def opener(options: RoleOptions) -> ScriptedModel:
        opened.append(options)
        return ScriptedModel([])

    return opener
