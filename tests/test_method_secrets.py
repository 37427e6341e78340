"""What no prompt of any method holds: texts and single outcomes of items that judge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from golden_runs import say
from llm_script import ScriptedModel
from methods_world import METHODS, run_method, write
from null_store import NullStore
from toy_world import WORDS, ToyModel, ToyRun, items_of
from verify_project import RIVALS as PROMPTS

from skilltrail.core.item import Item
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.params.methods import ASK

VEIL = "veiled"
HIDDEN = tuple(
    Item(f"{VEIL}-{n}", {"word": f"{VEIL}{word}"}, f"{VEIL}{word}")
    for n, word in enumerate(WORDS)
)


@dataclass
class Unveiling(ToyModel):
    """Does a selection item as the train item whose word it hides, or the one `turned` on."""

    turned: int = 0

    async def complete(self, request: Request) -> Reply:
        word = str(request.prompt)
        if not word.startswith(VEIL):
            return await super().complete(request)
        place = (WORDS.index(word.removeprefix(VEIL)) + self.turned) % len(WORDS)
        known = f"- know {WORDS[place]}" in request.system.split("\n")
        return Reply(word if known else "", usage={"input": 7, "output": 1})


def answer(request: Request) -> Any:
    return write(request) if request.system.startswith(PROMPTS) else say(request)


def prompts_of(folder: Path, method: str, turned: int = 0) -> tuple[list[str], ToyRun]:
    """Train with selection items whose words stand nowhere else; return all that was asked."""
    model = ScriptedModel(answer, jitter=True)
    optimizer = LlmOptimizer(lambda stage: model, NullStore(), LlmOptions(), "toy")
    done = run_method(
        folder,
        NullStore(),
        method,
        Unveiling(turned=turned),
        optimizer=optimizer,
        selection=HIDDEN,
        gate={"min_items": len(HIDDEN)},
    )
    return sorted(json.dumps(one.to_json()) for one in model.requests), done


@pytest.mark.parametrize("method", ASK)
def test_no_text_of_a_selection_item_is_in_any_prompt(tmp_path: Path, method: str) -> None:
    prompts, done = prompts_of(tmp_path, method)
    assert prompts
    assert all(word in " ".join(prompts) for word in ("train-", "know"))
    assert done.state.version
    keys = {
        row["key"]
        for data in done.events("rollouts.scored")
        for row in data["items"]
        if row["item"].startswith(VEIL)
    }
    told = "\n".join(prompts)
    assert VEIL not in told
    assert not [key for key in keys if key in told]


@pytest.mark.parametrize("method", ["skillopt", "opro", "promptbreeder", "textgrad"])
def test_which_selection_items_a_document_solves_changes_no_prompt(
    tmp_path: Path, method: str
) -> None:
    """Only how many: each document solves as many items, but others. (`gepa` and `mipro` choose
    by single items whom to ask about, so their prompts are other ones, of the same words.)"""
    one, ours = prompts_of(tmp_path / "one", method)
    two, theirs = prompts_of(tmp_path / "two", method, turned=3)
    assert one == two
    assert ours.log != theirs.log


def test_every_method_that_asks_is_in_this_suite() -> None:
    asks = [name for name, told in METHODS.items() if "optimizer" in told]
    assert set(asks) | {"skillopt", "gepa"} == set(ASK)
    assert not {item.id for item in HIDDEN} & {item.id for item in items_of("train")}
