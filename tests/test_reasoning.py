"""The answer in a reply's text: reasoning in any known form is none of it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.envs.kit.answers import extract_answer
from skilltrail.models.client.reasoning import final_answer
from skilltrail.models.errors import LostText
from skilltrail.models.protocol import Request
from skilltrail.models.registry import open_model
from skilltrail.optimizers.llm.reading.replies import ObjectFound, read_reply
from skilltrail.params.model_options import ExecOptions, RetryOptions, RoleOptions
from tests.fault_server import Answer, FaultServer
from tests.role_options import HTTP, KEYS, options_at

DRAFT = "Perhaps <answer>wrong</answer>."
FORMS = {
    "a think block": f"<think>\n{DRAFT}\n</think>\n\nGOLD",
    "a thinking block": f"<thinking>{DRAFT}</thinking>GOLD",
    "a block with an attribute": f'<think time="3s">{DRAFT}</think>GOLD',
    "a block closed by its sister": f"<thinking>{DRAFT}</think>\nGOLD",
    "two blocks": f"<think>{DRAFT}</think>\n<think>{DRAFT}</think>\nGOLD",
    "a block in a block": f"<think>a <think>{DRAFT}</think> no. {DRAFT}</think> GOLD",
    "a block after a word": f"Sure!\n<think>\n{DRAFT}\n</think>\nGOLD",
    "a block that is never closed": f"GOLD\n<think>\n{DRAFT}",
    "a lone closing tag": f"First I think it is {DRAFT} no.\n</think>\n\nGOLD",
    "a lone closing tag, twice": f"{DRAFT}</think>\n{DRAFT}\n</think>\nGOLD",
    "a lone closing tag after a mention": f"I see <think> tags. {DRAFT}\n</think>\nGOLD",
    "a block that another channel ends": (
        f"<|think|>{DRAFT}<|end|><|begin|>assistant<|content|>GOLD<|end|>"
    ),
    "a program's words around it": f"Thinking...\n{DRAFT}\n...done thinking.\n\nGOLD",
    "a mark of an end behind it": f"<think>{DRAFT}</think>GOLD<|im_end|>",
    "a channel and a mark of an end": f"<|channel>thought\n{DRAFT}<channel|>GOLD<turn|>",
    "a thought block": f"<thought>{DRAFT}</thought>GOLD",
    "a reasoning block": f"<reasoning>\n{DRAFT}\n</reasoning>\nGOLD",
    "a seed block": f"<seed:think>{DRAFT}</seed:think>GOLD",
    "a lone seed closing": f"{DRAFT}</seed:think>GOLD",
    "brackets": f"[THINK]{DRAFT}[/THINK]GOLD",
    "a lone closing bracket": f"{DRAFT}[/THINK]GOLD",
    "triangles": f"◁think▷{DRAFT}◁/think▷GOLD",
    "begin and end of thought": (
        f"<|begin_of_thought|>\n{DRAFT}\n<|end_of_thought|>\n\n"
        "<|begin_of_solution|>\nGOLD\n<|end_of_solution|>"
    ),
    "start and end of thinking": (
        f"<|START_THINKING|>{DRAFT}<|END_THINKING|><|START_RESPONSE|>GOLD<|END_RESPONSE|>"
    ),
    "start and end of thinking and text": (
        f"<|START_THINKING|>{DRAFT}<|END_THINKING|><|START_TEXT|>GOLD<|END_TEXT|>"
    ),
    "a lone end of thinking": f"{DRAFT}<|END_THINKING|><|START_TEXT|>GOLD",
    "a lone end of thinking at the start": "<|END_THINKING|>GOLD",
    "a lone end of thought": f"{DRAFT}\n<|end_of_thought|>GOLD",
    "a block of reasoning content": f"<reasoning_content>{DRAFT}</reasoning_content>GOLD",
    "a folded block": (
        f'<details type="reasoning" done="true">\n<summary>Thought</summary>\n> {DRAFT}\n'
        "</details>\nGOLD"
    ),
    "a channel of thought": f"<|channel>thought\n{DRAFT}<channel|>GOLD",
    "an unused token": f"<unused94>thought\n{DRAFT}<unused95>GOLD",
    "words": f"Here is my thought process:\n{DRAFT}\n\nHere is my response:\nGOLD",
    "reasoning steps in words": (
        f"Here are my reasoning steps:\n{DRAFT}\n"
        "[BEGIN FINAL RESPONSE]\nGOLD\n[END FINAL RESPONSE]"
    ),
    "a block and a response": f"<think>\n{DRAFT}\n</think>\n\n<response>\nGOLD\n</response>\n",
    "a block and an output": f"<thinking>{DRAFT}</thinking><output>GOLD</output>",
    "begin and end of reasoning": f"<|begin_of_reasoning|>{DRAFT}<|end_of_reasoning|>GOLD",
    "Harmony": (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant"
        "<|channel|>final<|message|>GOLD<|return|>"
    ),
    "Harmony without its first token": (
        f"analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>GOLD"
    ),
    "Harmony whose final is bare": f"<|channel|>analysis<|message|>{DRAFT}<|end|>GOLD",
    "Harmony with a preamble": (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>commentary"
        f"<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>GOLD<|return|>"
    ),
    "Harmony with a format": (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant"
        "<|channel|>final <|constrain|>text<|message|>GOLD<|return|>"
    ),
    "Harmony without its tokens": f"analysisWe need one word. {DRAFT}assistantfinalGOLD",
    "Harmony of which the prompt had the first word": f"One word. {DRAFT}assistantfinalGOLD",
    "a named block": f"<longcat_think>\n{DRAFT}\n</longcat_think>GOLD",
    "a block of a process": f"<thought_process>{DRAFT}</thought_process>\nGOLD",
    "a block of a process of thinking": f"<thinking_process>{DRAFT}</thinking_process>GOLD",
    "a block of one word": f"<antThinking>{DRAFT}</antThinking>GOLD",
    "a monologue": f"<internal_monologue>{DRAFT}</internal_monologue>GOLD",
    "a block and a second look": (
        f"<thinking>{DRAFT}</thinking><reflection>{DRAFT}</reflection><output>GOLD</output>"
    ),
    "an empty block": "<think>\n\n</think>\n\nGOLD",
    "a block that is its own end": "<think />GOLD",
    "a block after the text's own beginning": f"<s><think>{DRAFT}</think>GOLD</s>",
    "a block after a byte order mark": f"\ufeff<think>{DRAFT}</think>GOLD",
    "a block of begin and end": (
        f"<|plamo:begin_think:plamo|>{DRAFT}<|plamo:end_think:plamo|>GOLD<|plamo:tag|>"
    ),
    "a lone end of a block of begin and end": f"{DRAFT}<|plamo:end_think:plamo|>GOLD",
    "opened and closed by tokens": (
        f"<|open|>think<|sep|>{DRAFT}<|close|>think<|sep|>"
        "<|open|>response<|sep|>GOLD<|close|>response<|sep|>"
    ),
    "closed by tokens": f"{DRAFT}<|close|>think<|sep|><|open|>response<|sep|>GOLD",
    "blocks of kinds": (
        f"<|message_model|><|content_thinking|>{DRAFT}<|end_message|>"
        "<|message_model|><|content_text|>GOLD<|end_message|>"
    ),
    "a turn of thinking": (
        f"/think\n{DRAFT}<|im_end|>\n<|im_start|>assistant\nGOLD<|im_end|><|endofturn|>"
    ),
    "a turn to think and one to answer": (
        f"<|im_start|>think\n{DRAFT}<|im_end|>\n<|im_start|>answer\nGOLD<|im_end|>"
    ),
    "words in bold": (
        f"**Here is my thought process:**\n{DRAFT}\n**Here is my response:**\nGOLD"
    ),
    "a fold that its heading names": (
        f"<details>\n<summary>💭 Thought for 3 seconds</summary>\n\n{DRAFT}\n</details>\n\nGOLD"
    ),
    "a fence": f"```thinking\n{DRAFT}\n```\nGOLD",
    "an answer in a box": (
        f"<think>{DRAFT}</think>\n<|begin_of_box|>GOLD<|end_of_box|>[|endofturn|]"
    ),
}
NO_ANSWER = {
    "a block alone": f"<think>{DRAFT}</think>",
    "an unclosed block": f"<think>{DRAFT}",
    "a lone closing at the end": f"{DRAFT}\n</think>\n",
    "analysis alone": f"<|channel|>analysis<|message|>{DRAFT}<|end|>",
    "analysis that was cut": f"<|channel|>analysis<|message|>{DRAFT}",
    "a call to a tool in words": (
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
    ),
    "analysis without its tokens": f"analysisWe need one word. {DRAFT}",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_final_answer_is_the_reply_and_the_draft_is_not(form: str) -> None:
    """Cases reason-01 and reason-02."""
    answer, found = final_answer(FORMS[form])
    assert found
    assert extract_answer(answer) == "GOLD"
    assert "wrong" not in answer


@pytest.mark.parametrize("form", NO_ANSWER)
def test_reasoning_without_an_answer_is_no_text(form: str) -> None:
    assert final_answer(NO_ANSWER[form]) == ("", True)


@pytest.mark.parametrize(
    "mark",
    ["<|im_end|>", "<|eot_id|>\n", " <|endoftext|>", "<end_of_turn>", "<|end|><|endoftext|>",
     "<｜end▁of▁sentence｜>", "[|endofturn|]", "<SPECIAL_12>", "</s>", "<|endofturn|><|stop|>"],
)  # fmt: skip
def test_a_template_s_mark_of_an_end_is_no_part_of_the_answer(mark: str) -> None:
    assert final_answer(f"GOLD{mark}") == ("GOLD", False)
    kept = f"A turn ends with {mark.strip()} there."
    if "<|end|>" not in mark:  # of Harmony
        assert final_answer(kept) == (kept, False)


@pytest.mark.parametrize(
    "text",
    [
        "I <think> not</think>",
        "<s>old</s>",
        "Use `</think>` to end it.",
        "analysis of the text",
        "final answer: 4",
        " <answer>4</answer>\n",
        "[1] THINK",
        "<analysis>It fell.</analysis>\n<verdict>4</verdict>",
        "**Thinking:** it fell.\n\n**Answer:** 4",
        "<p>a <s n='1'>b</s>",
        "Put /think\n before it.",
        "The assistantfinal channel holds it.",
        "<reflection>4</reflection>",
        "Write `<think />` there.",
        "<details><summary>Reasoning</summary>\n4\n</details>\n",
        "```thinking\n4\n```",
        "<details><summary>Steps</summary>\n4\n</details>\n4",
        "",
        "\n",
    ],
)
def test_a_text_without_reasoning_comes_back_as_it_is(text: str) -> None:
    assert final_answer(text) == (text, False)


def test_a_box_is_opened_where_the_reasoning_came_apart() -> None:
    assert final_answer("It is <|begin_of_box|>GOLD<|end_of_box|>") == ("It is GOLD", False)


@given(st.text(st.characters(exclude_characters="<[◁")))
def test_a_text_without_marks_comes_back_as_it_is(text: str) -> None:
    if not text.lower().lstrip().startswith(("analysis", "here")):
        assert final_answer(text) == (text, False)


@pytest.mark.parametrize("name", HTTP)
@pytest.mark.parametrize("form", ["Harmony", "a lone closing tag", "brackets", "a think block"])
def test_it_is_so_on_every_backend(name: str, form: str) -> None:
    with FaultServer(say=lambda _: Answer(FORMS[form], output=40)) as server:
        model = open_model("target", options_at(name, server.url), environ=KEYS)
        assert asyncio.run(model.complete(Request(prompt="hi"))).text == "GOLD"
        assert len(server.calls) == 1


@pytest.mark.parametrize("form", ["Harmony", "a lone closing tag", "brackets"])
def test_it_is_so_for_agent_programs(form: str, tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(f"import sys; sys.stdout.write({FORMS[form]!r})", "utf-8")
    program.chmod(stat.S_IRWXU)
    options = RoleOptions(
        backend="exec", model="m", exec=ExecOptions(argv=(sys.executable, str(program))),
        retry=RetryOptions(attempts=1),
    )  # fmt: skip
    environ = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8"}
    model = open_model("target", options, environ=environ)
    assert asyncio.run(model.complete(Request(prompt="hi"))).text == "GOLD"


@pytest.mark.parametrize("name", HTTP)
def test_reasoning_alone_is_a_lost_answer_on_every_backend(name: str) -> None:
    text = NO_ANSWER["analysis alone"]
    with FaultServer(say=lambda _: Answer(text, output=40)) as server:
        options = options_at(name, server.url)
        once = replace(options, retry=replace(options.retry, attempts=1))
        with pytest.raises(LostText, match="reasoning in the text"):
            asyncio.run(open_model("target", once, environ=KEYS).complete(Request(prompt="hi")))


DRAFTS = {
    "Harmony": (
        '<|channel|>analysis<|message|>Maybe {"edits": []}.<|end|><|start|>assistant'
        '<|channel|>final<|message|>{"edits": [{"op": "append", "content": "- a"}]}<|return|>'
    ),
    "a lone closing tag": (
        'Maybe {"edits": []}.\n</think>\n{"edits": [{"op": "append", "content": "- a"}]}'
    ),
    "brackets": (
        '[THINK]Maybe {"edits": []}.[/THINK]{"edits": [{"op": "append", "content": "- a"}]}'
    ),
    "begin and end of thought": (
        '<|begin_of_thought|>Maybe {"edits": []}.<|end_of_thought|>'
        '{"edits": [{"op": "append", "content": "- a"}]}'
    ),
}


@pytest.mark.parametrize("form", DRAFTS)
def test_an_optimizer_s_draft_is_no_second_object(form: str) -> None:
    """Case reason-02: `multiple_objects`, and nothing was learnt."""
    with FaultServer(say=lambda _: Answer(DRAFTS[form])) as server:
        model = open_model("optimizer", options_at("chat", server.url), environ=KEYS)
        reply = asyncio.run(model.complete(Request(prompt="hi")))
    found = read_reply(reply, "patch")
    assert isinstance(found, ObjectFound)
    assert [edit["content"] for edit in found.value["edits"]] == ["- a"]


def test_a_reply_s_object_may_hold_a_closing_tag_in_a_string() -> None:
    edit = {"op": "append", "content": "- Never write </think> in an answer."}
    text = json.dumps({"edits": [edit]})
    for whole in (text, f"```json\n{text}\n```\n"):
        assert final_answer(whole) == (whole, False)
