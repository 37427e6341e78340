"""Prompts agree with their checks: every prompt of every environment, mode and option.

Each question's first request is rendered as it is asked, and its example, the fields that its
text names and the kinds it allows are held against the form that its reply must have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from llm_script import (
    SKILL,
    MemoryFacts,
    ScriptedModel,
    append,
    epoch_view,
    observation,
    run,
    step_view,
)

from skilltrail.envs.registry import environment_names
from skilltrail.optimizers.failure_types import domain_of, failure_types_of
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.prompts import Templates
from skilltrail.optimizers.llm.setting import Setting, size_of
from skilltrail.optimizers.protocol import Pair
from skilltrail.params.model_options import RoleOptions
from skilltrail.skill.edit import Edit, Patch

ENVS = sorted({*environment_names(), "_template"})
MODES = ("patch", "rewrite_from_suggestions", "full_rewrite_minibatch")
_JSON = re.compile(r'^(?:.*: )?(\{"reasoning".*\})$', re.MULTILINE)
_NAMED = re.compile(r"`([a-z_]+)`")
_MATERIAL = re.compile(r"==== BEGIN .*?==== END [^\n]*", re.DOTALL)
# Words in backticks that name no field of a reply: operations, categories, causes, what
# proposals carry.
_WORDS = {
    *("append", "insert_after", "replace", "delete", "defect", "lapse", "support", "failed"),
    *("improved", "regressed", "persistent_failure", "stable_success", "missing"),
}


def optimizer(env: str, **options: Any) -> tuple[LlmOptimizer, ScriptedModel]:
    """Return an optimizer whose model never says anything of use."""
    model = ScriptedModel(lambda request: "no json")
    told = {"setting": Setting(RoleOptions(), domain_of(env)), **options}
    return LlmOptimizer(lambda stage: model, MemoryFacts(), LlmOptions(**told), env), model


def edits_of(mode: str) -> tuple[Edit, Edit]:
    op = {"patch": "append", "full_rewrite_minibatch": "rewrite"}.get(mode, "suggest")
    texts = ("- Give short dates alone.", "- Give long dates alone.")
    if op == "rewrite":
        texts = (f"{SKILL}{texts[0]}\n", f"{SKILL}{texts[1]}\n")
    one, two = (
        Edit(op, content=text, id=f"5.{n}", items=("a",)) for n, text in enumerate(texts)
    )
    return one, two


def asked(env: str, mode: str, aware: bool) -> list[Any]:
    """Return the first request of every question of an environment, mode and option."""
    made, model = optimizer(env, skill_aware=aware)
    view = step_view([observation("a"), observation("b", 1)], update_mode=mode, budget=1)
    one, two = edits_of(mode)
    lost = [Patch("failure", ("a",), (edit,)) for edit in (one, two)]
    won = [Patch("success", ("b",), (edit,)) for edit in (one, two)]
    after = observation("a")
    ends = epoch_view([Pair(after.item, after, after, "persistent_failure")])
    run(made.reflect(view))
    for patches in (lost, won, [lost[0], won[1]]):
        run(made.merge(view, patches))
    run(made.rank(view, (one, two)))
    run(made.choose_budget(view, (one, two)))
    run(made.rewrite(view, (one, two)))
    run(made.consolidate(view, ["Give dates alone.", "Name the unit used."]))
    for verb in (made.slow_update, made.meta_skill, made.compact):
        run(verb(ends))
    return [request for request in model.requests if len(request.messages) == 1]


def names_in(form: Any) -> Iterator[str]:
    """Yield the names of all properties of a schema."""
    parts = form.values() if isinstance(form, dict) else form if isinstance(form, list) else ()
    if isinstance(form, dict):
        yield from form.get("properties", {})
    for part in parts:
        yield from names_in(part)


def with_open_ids(form: Any) -> Any:
    """Return a schema that takes any text where ids and types of this very step are listed."""
    if isinstance(form, list):
        return [with_open_ids(part) for part in form]
    if not isinstance(form, dict):
        return form
    kept = {name: with_open_ids(part) for name, part in form.items()}
    if not {"append", "rule", "defect"} & set(map(str, kept.get("enum", ("append",)))):
        del kept["enum"]
    return kept


@pytest.mark.parametrize("env", ENVS)
def test_every_prompt_agrees_with_the_form_that_its_reply_must_have(env: str) -> None:
    for mode, aware in product(MODES, (False, True)):
        requests = asked(env, mode, aware)
        assert len(requests) >= 9
        for request in requests:
            form, where = request.schema, (env, mode, aware, request.system[:90])
            (example,) = _JSON.findall(request.system)
            faults = Draft202012Validator(with_open_ids(form)).iter_errors(json.loads(example))
            assert [fault.message for fault in faults] == [], where
            own = _MATERIAL.sub("", request.system)
            known = {*names_in(form), *_WORDS, *failure_types_of(env)}
            assert set(_NAMED.findall(own)) - known == set(), where
            assert "kind" in set(names_in(form)) or '"kind"' not in own, where
            assert "{{" not in own, where


def test_guidance_is_promised_no_worked_example_that_its_check_refuses() -> None:
    values = dict.fromkeys(Templates().values("slow_update"), "-")
    text = Templates().fill("slow_update", values).system
    assert "No worked examples" in text
    assert "may quote" not in text


def test_an_append_has_no_target_in_what_mergers_and_rankers_are_shown() -> None:
    made, model = optimizer("textqa")
    run(made.rank(step_view([observation("a")], budget=1), edits_of("patch")))
    told = model.requests[0].messages[0].parts[0].text
    assert '"target": null' in told
    assert '"failed": 1' in told


def test_the_correction_speaks_only_of_what_the_form_has() -> None:
    made, model = optimizer("textqa")
    said = {"edits": [append("x", "a") | {"op": "replace", "target": "Answer briefly."}]}
    model.say = lambda request: json.dumps(said)
    run(made.reflect(step_view([observation("a")])))
    told = model.requests[1].messages[-1].parts[0].text
    assert "mid_line" in told
    assert "inline" not in told


@pytest.mark.parametrize("env", ENVS)
def test_every_environment_says_what_its_prompts_need(env: str) -> None:
    domain, types = domain_of(env), failure_types_of(env)
    assert 1 <= len(domain.about) <= 5
    assert len(domain.scoring) == 2
    assert all(meaning for name, meaning in types.items() if name != "unknown")
    assert list(types)[-2:] == ["leaked", "unknown"]
    # Causes, not the score in other words.
    assert not {"out_of_turns", "lost", "refused", "too_long", "wrong"} & set(types)


def test_a_small_target_is_told_of_and_a_large_one_is_not_called_small() -> None:
    small = Setting(RoleOptions(), domain_of("textqa")).text()
    large = Setting(RoleOptions(backend="openai", model="qwen2.5-72b"), domain_of("qa")).text()
    assert "Worked examples are the rule" in small
    assert "plain text completion" in small
    assert "about 72 billion" in large
    assert "small" not in large
    assert Setting().text() == ""
    assert [size_of(name) for name in ("gpt-4o-mini", "qwen2.5:7b", "SmolLM2-135M")] == [
        None,
        7.0,
        0.135,
    ]


def test_an_answer_out_of_the_document_is_pointed_out() -> None:
    made, model = optimizer("textqa")
    seen = [
        observation("a", answer="Oskar Thornmark", task="Who is it?"),
        observation("b", answer="Explain", task="Explain what?"),
    ]
    view = step_view(seen, skill=f"{SKILL}\nAnswer: Oskar Thornmark\n")
    run(made.reflect(view))
    told = model.requests[0].messages[0].parts[0].text
    assert told.count("not in the task (`leaked`)") == 1
