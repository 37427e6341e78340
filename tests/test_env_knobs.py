"""Every knob of an environment changes something: an item, a request, a rollout or a score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from env_world import OURS, ROOT, WHERE, env_of, own_items, roll, scripted

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.envs.registry import environment_class
from skilltrail.models.protocol import Reply
from skilltrail.params.knob import knobs_of

# Another value for each knob, and what must be set besides for it to count.
OTHER: Mapping[str, Mapping[str, tuple[Any, Mapping[str, Any]]]] = {
    "docvqa": {
        "see": ("text", {}),
        "image_detail": ("high", {}),
        "page_chars": (20, {}),
        "answer_tokens": (3, {}),
        "example_chars": (30, {}),
        "data_dirs": (("nowhere",), {}),
        "limits.turns": (2, {}),
    },
    "korqa": {
        "context_chars": (20, {}),
        "answer_tokens": (3, {}),
        "example_chars": (30, {}),
        "limits.turns": (2, {}),
    },
    "livemath": {
        "shuffle_choices": (False, {}),
        "shuffle_seed": (43, {}),
        "use_theorem": (True, {}),
        "use_sketch": (True, {}),
        "answer_tokens": (3, {}),
        "limits.turns": (2, {}),
    },
    "officeqa": {
        "oracle": (True, {}),
        "local_tools": (False, {}),
        "tool_protocol": ("text", {}),
        "queries_per_turn": (1, {}),
        "tolerance": (0.01, {}),
        "oracle_chars": (200, {"oracle": True}),
        "answer_tokens": (3, {}),
        "example_chars": (60, {"oracle": True}),
        "data_dirs": (("nowhere",), {}),
        "limits.tool_turns": (1, {}),
        "limits.item_s": (0.0, {}),
        "limits.turns": (2, {"oracle": True}),
    },
    "qa": {
        "scorer": ("contains", {}),
        "url": ("http://127.0.0.1:9/score", {"scorer": "http"}),
        "tolerance": (0.05, {}),
        "context_chars": (20, {}),
        "answer_tokens": (3, {}),
        "reply_tokens": (3, {}),
        "example_chars": (30, {}),
        "limits.turns": (2, {}),
    },
    "searchqa": {
        "context_chars": (20, {}),
        "answer_tokens": (3, {}),
        "example_chars": (30, {}),
        "limits.turns": (2, {}),
    },
}
CALL = {"name": "grep", "arguments": {"path": "own_bulletin_1951.txt", "pattern": "fund"}}
CALLS = tuple({"id": f"c{number}"} | CALL for number in range(2))
EVERYTHING = frozenset({"tools", "vision", "schema"})


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def environment(name: str, values: Mapping[str, Any]) -> Environment:
    """Return an environment with dotted knobs set."""
    params = environment_class(name).Params()
    for key, value in values.items():
        section, _, field = key.rpartition(".")
        if section:
            params = replace(params, limits=replace(params.limits, **{field: value}))
        else:
            params = replace(params, **{field: value})
    made: Environment = environment_class(name)(params)
    return made


def everything_it_does(name: str, values: Mapping[str, Any]) -> list[Any]:
    """Return items, requests, rollouts, examples and scores; or what it refuses."""
    env = environment(name, values)
    seen: list[Any] = []
    try:
        for record in [one.record for one in own_items(name)[:2]] + EXTRA.get(name, []):
            item = env.parse(record, WHERE)
            seen += [item.to_json(), env.example(item)]  # type: ignore[attr-defined]
            near = Trajectory((), _nearly(env.reference(item)))
            seen.append(env.score(item, near))
            for model in (
                scripted(["x"] * 9),
                scripted(["x"] * 9, style="chat"),
                scripted(
                    [Reply("", tool_calls=CALLS)] * 3 + ["x"] * 9,
                    style="chat",
                    abilities=EVERYTHING,
                ),
            ):
                trajectory = roll(env, item, model)
                seen += [request.to_json() for request in model.requests]
                seen.append(trajectory.to_json())
    except SkilltrailError as error:
        seen.append(str(error))
    return seen


# Items that the knobs of a scorer need.
EXTRA: Mapping[str, list[Mapping[str, Any]]] = {
    "qa": [
        {"id": "n", "question": "q", "answers": ["1000"], "scorer": "number"},
        {"id": "e", "question": "q", "answers": ["oak"]},
        {"id": "c", "question": "q", "checks": [{"op": "contains", "arg": "oak"}]},
    ]
}


def _nearly(reference: str | None) -> str:
    """Return an answer that is right for a lenient scorer and wrong for a strict one."""
    if reference is None:
        return "x"
    digits = "".join(sign for sign in reference if sign.isdigit())
    if not digits:
        return f"an old {reference}"
    return reference.replace(digits[-1], str((int(digits[-1]) + 1) % 10))


@pytest.mark.parametrize("name", OURS)
def test_every_knob_is_listed_here(name: str) -> None:
    assert {knob.key for knob in knobs_of(environment_class(name).Params)} == set(OTHER[name])


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, knobs in OTHER.items() for key in knobs]
)
def test_a_knob_changes_something(name: str, key: str) -> None:
    value, besides = OTHER[name][key]
    default = everything_it_does(name, besides)
    assert everything_it_does(name, {**besides, key: value}) != default


def test_what_is_compared_is_repeatable() -> None:
    for name in OURS:
        assert everything_it_does(name, {}) == everything_it_does(name, {})
        assert env_of(name).params == environment_class(name).Params()
