"""Random search: the honest floor for every method.

    measure the seed document
    for each of `candidates`:
        draw a number of edits, then as many of all lines of the catalogue and all worked
        examples of train items; the seed with them is the candidate
        keep it if it beats the best so far on the selection split

It looks at no rollout and asks no optimizer: what it finds, luck and the gate found.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from skilltrail.core.errors import UsageError
from skilltrail.method.run import Run, State
from skilltrail.method.schedule import Step
from skilltrail.methods.demonstrations import labelled
from skilltrail.methods.draws import Draws
from skilltrail.methods.steps import build, choose_parents, judge, seed_of
from skilltrail.skill.edit import Edit, Patch


async def random_search(
    run: Run, state: State, draws: Draws | None = None
) -> AsyncGenerator[State, None]:
    """Yield the state after each random document."""
    settings = run.params.methods.random_search
    draws = Draws(run.params.seed) if draws is None else draws
    space = all_edits(run)
    for number in range(1, 1 + settings.candidates):
        step = Step(1, number, ())
        choose_parents(run, step, [seed_of(run)], "seed/1", "")
        size = 1 + draws.below(min(settings.most_edits, len(space)), number, "size")
        names = draws.sample(list(space), size, number, "edits")
        # Lines first: a document says what to do before it shows how.
        edits = sorted((space[name] for name in names), key=lambda edit: edit.kind != "rule")
        reasoning = f"{size} of {len(space)} lines and examples, at random"
        patch = Patch("success", (), tuple(edits), reasoning)
        tried = await build(run, state, step, run.seed_skill, patch)
        state = await judge(run, state, tried)
        yield state


def all_edits(run: Run) -> dict[str, Edit]:
    """Return everything that may be drawn, by name.

    Raises:
        UsageError: the environment has no catalogue and no form for a worked example.
    """
    env = run.rollouts.env
    found = {
        f"line {line}": Edit("append", content=f"- {line}", reason="a line of the catalogue")
        for line in env.catalogue.all_lines
    }
    for item in run.train:
        text = labelled(env, item)
        if text is not None:
            found[f"example {item.id}"] = Edit(
                "append", content=text, kind="example", reason="a solved item", items=(item.id,)
            )
    if not found:
        raise UsageError(
            f"method random_search with env {env.name!r}",
            "this environment has no rule catalogue and no worked examples",
            "Write its rules.yaml (docs/environments.md), or choose another method",
        )
    return found
