"""The single checks of the contract: each returns what it found or raises `Broken`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skilltrail.core.canon import canonical
from skilltrail.core.item import Item
from skilltrail.core.trajectory import ENDINGS, Trajectory
from skilltrail.envs.contract.fakes import (
    SENTINEL,
    STRANGE_ANSWERS,
    STRANGE_IDS,
    Broken,
    answer_always,
    opened_files,
    require,
    run,
    run_and_asked,
    useful_models,
)
from skilltrail.envs.contract.items import item_fault
from skilltrail.envs.protocol import Environment, case_of
from skilltrail.envs.scoring import by_rule, metric_means
from skilltrail.models.errors import ModelError, Transient
from skilltrail.models.protocol import Reply, Request

GOLD_FIELDS = frozenset(
    {
        "answer",
        "answers",
        "gold",
        "golds",
        "ground_truth",
        "correct_choice",
        "label",
        "solution",
    }
)


def check_items(environment: Environment, items: Sequence[Item]) -> str:
    """Check what `parse` returns: text ids, JSON, no field of the input that names the gold."""
    for item in items:
        require(
            isinstance(item.id, str) and bool(item.id.strip()), "an id is not text", "str it"
        )
        named = GOLD_FIELDS & {key.lower() for key in item.input}
        require(not named, f"the input of {item.id!r} has {sorted(named)}", "Move it to gold")
        try:
            again = Item.from_json(json.loads(canonical(item.to_json())))
        except (TypeError, ValueError) as error:
            raise Broken(
                f"item {item.id!r} is no JSON: {error}", "Keep JSON values only"
            ) from error
        require(
            again.content_digest == item.content_digest,
            f"item {item.id!r} changes in a file",
            "Keep JSON values only",
        )
        content = environment.content(item)
        require(bool(content.strip()), f"item {item.id!r} has no content", "Return its text")
    return f"{len(items)} items are plain data"


def check_rollouts(environment: Environment, items: Sequence[Item]) -> str:
    """Check that every kind of model gets a sound trajectory, told the skill each time."""
    made = 0
    for model in useful_models(environment, items[0]):
        for item in items:
            model.requests.clear()
            trajectory = run(environment, item, model)
            check_trajectory(trajectory)
            told = all(SENTINEL in _text(request) for request in model.requests)
            require(bool(model.requests), "a rollout made no call", "Ask the target")
            require(told, "a request lacks the skill", "Send the skill in Request.system")
            made += 1
    return f"{made} rollouts have valid trajectories"


def check_trajectory(trajectory: Trajectory) -> None:
    """Raise `Broken` unless a trajectory is whole, JSON, and ends in a known way."""
    require(
        trajectory.ending in ENDINGS,
        f"ending {trajectory.ending!r}",
        f"Use one of {', '.join(ENDINGS)}",
    )
    require(bool(trajectory.turns), "a trajectory without turns", "Record every turn")
    require(isinstance(trajectory.answer, str), "the answer is no text", "Return a str")
    again = Trajectory.from_json(json.loads(canonical(trajectory.to_json())))
    require(
        canonical(again.to_json()) == canonical(trajectory.to_json()),
        "a trajectory changes in a file",
        "Keep JSON values only",
    )


def check_repeatable(environment: Environment, items: Sequence[Item]) -> str:
    """Check that the same model gives the same requests, trajectory and score again."""
    for model in useful_models(environment, items[0]):
        for item in items:
            first, asked = run_and_asked(environment, item, model)
            second, asked_again = run_and_asked(environment, item, model)
            require(
                asked == asked_again, "two rollouts ask otherwise", "Use no chance, no clock"
            )
            require(first.to_json() == second.to_json(), "two rollouts differ", "Use no chance")
            scores = [environment.score(item, one) for one in (first, first, second)]
            require(scores[0] == scores[1] == scores[2], "two scores differ", "Make score pure")
    return "the same model gives the same rollout and score"


def check_no_leak(environment: Environment, items: Sequence[Item]) -> str:
    """Check that swapping the gold for other text changes no request."""
    for model in useful_models(environment, items[0]):
        for item in items:
            twin = replace(item, gold=_swapped(item.gold))
            _, asked = run_and_asked(environment, item, model)
            _, asked_of_twin = run_and_asked(environment, twin, model)
            require(
                asked == asked_of_twin,
                f"a request for item {item.id!r} depends on its gold",
                "Build prompts from item.input alone",
            )
    return "requests do not depend on the gold"


def check_scores(environment: Environment, items: Sequence[Item]) -> str:
    """Check that any answer is scored in [0, 1], however strange, and never invalid."""
    n_scores = 0
    for item in items:
        for trajectory in _trajectories(environment, item):
            if case_of(environment, item, trajectory) is not None:
                continue  # a model's to judge
            score = by_rule(environment, item, trajectory)
            require(bool(score.reason), "a score without a reason", "Say why in one word")
            for name, value in metric_means(environment, [(item, trajectory)]).items():
                require(0 <= value <= 1, f"metric {name} is {value}", "Keep it in [0, 1]")
            n_scores += 1
    return f"{n_scores} answers, strange ones too, score within [0, 1]"


def check_cases(environment: Environment, items: Sequence[Item]) -> str:
    """Check what a judge would be shown: texts, the same each time, the answer among them."""
    judged = [item for item in items if environment.needs_judge(item)]
    n_cases = 0
    for item in judged:
        for trajectory in _trajectories(environment, item):
            case, again = (case_of(environment, item, trajectory) for _ in range(2))
            require(case == again, "two cases of one answer differ", "Make case pure")
            if case is None:
                continue
            texts = (case.task, case.answer, case.reference)
            plain = all(text is None or isinstance(text, str) for text in texts)
            require(plain, f"a case of other than text: {case!r:.80}", "Use text")
            require(bool(case.task.strip()), "a case without its task", "Tell the task")
            n_cases += 1
    return f"{n_cases} answers are a judge's to score" if judged else "no item needs a judge"


def check_lessons(environment: Environment, items: Sequence[Item]) -> str:
    """Check what the optimizer `rules` uses: an example is one paragraph, traits are words."""
    if not environment.supports_rules:
        return "no catalogue, example and traits: training needs an optimizer model"
    examples = [environment.example(item) for item in items]
    for example in examples:
        sound = example is None or (
            bool(example.strip()) and all(line.strip() for line in example.split("\n"))
        )
        require(sound, f"an example with a blank line: {example!r:.80}", "Fold white space")
    for item in items:
        words = environment.traits(item)
        require(all(isinstance(word, str) for word in words), "a trait is no text", "Use words")
    made = sum(example is not None for example in examples)
    return f"{len(environment.catalogue.types)} failure types, {made} worked examples"


def check_known(environment: Environment, items: Sequence[Item]) -> str:
    """Check the contract of items where their scores follow from gold and answer."""
    known = [(item, environment.known_answers(item)) for item in items]
    for item, answers in known:
        fault = item_fault(environment, item, answers)
        require(fault is None, f"item {item.id!r}: {fault}", "Fix the item, or its scorer")
    unchecked = [one.unchecked.value for _, one in known if one.unchecked is not None]
    if unchecked:
        return f"not checked of {len(unchecked)} of {len(items)}: scored by {unchecked[0]}"
    n_right = sum(bool(answers.right) for _, answers in known)
    return f"{n_right} golds of {len(items)} score 1, doing nothing scores 0"


def check_failures(environment: Environment, item: Item) -> str:
    """Check that a failed call is passed on, and a refusal ends the rollout."""
    for model in useful_models(environment, item):
        model.requests.clear()
        model.fails = Transient("the contract check", "a failed call")
        try:
            run(environment, item, model)
        except ModelError:
            pass
        else:
            raise Broken("a failed call became an answer", "Let ModelError pass")
        model.fails, model.answer = None, answer_always(Reply("", finish="refusal"))
        ending = run(environment, item, model).ending
        require(ending == "refused", f"a refusal ends as {ending!r}", "End as 'refused'")
    return "failed calls are passed on, a refusal ends the rollout"


def check_limits(environment: Environment, item: Item) -> str:
    """Check that a model that never stops calling tools and never answers comes to an end."""
    call = {"id": "call-1", "name": "read", "arguments": {"path": "x"}}
    replies = (
        Reply("", finish="tool", tool_calls=(call,)),
        Reply("CALL read {}\n```python\npass\n```\n<action>look</action>"),
    )
    calls = 0
    for model in useful_models(environment, item):
        for reply in replies:
            model.requests.clear()
            model.answer = answer_always(reply)
            check_trajectory(run(environment, item, model))
            calls = max(calls, len(model.requests))
    return f"a model that never answers is stopped after {calls} calls at most"


def check_ids(environment: Environment, parse: Callable[[str], Item]) -> str:
    """Check that strange ids come through as they are and never name a file."""
    for id in STRANGE_IDS:
        with opened_files() as opened:
            item = parse(id)
            for model in useful_models(environment, item):
                environment.score(item, run(environment, item, model))
        require(item.id.endswith(id), f"id {id[:20]!r} became {item.id[:40]!r}", "Keep ids")
        bearing = [path for path in opened if id in path and len(id) > 3]
        require(not bearing, f"a file is named by an id: {bearing[:1]}", "Name files by digest")
    return f"{len(STRANGE_IDS)} strange ids are data and nothing else"


def _text(request: Request) -> str:
    return request.system + canonical(request.to_json())


def _swapped(gold: Any) -> Any:
    """Return a value of the same shape with other texts and numbers."""
    if isinstance(gold, str):
        return f"swapped-{len(gold)}"
    if isinstance(gold, bool) or gold is None:
        return gold
    if isinstance(gold, (int, float)):
        return gold + 1
    if isinstance(gold, Mapping):
        return {key: _swapped(value) for key, value in gold.items()}
    return [_swapped(value) for value in gold]


def _trajectories(environment: Environment, item: Item) -> Iterator[Trajectory]:
    """Yield what a scorer may meet: a real rollout, with strange answers put in."""
    for model in useful_models(environment, item):
        real = run(environment, item, model)
        for answer in STRANGE_ANSWERS:
            yield replace(real, answer=answer, ending="answered")
        yield replace(real, answer="cut of", ending="truncated")
        return
