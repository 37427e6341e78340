"""The local model's reply is a function of the request, whatever happened before."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.errors import ParamError
from skilltrail.models.backends.llama import Instance, chain, pin_boundary
from skilltrail.models.backends.local import LocalModel, _reply, joined
from skilltrail.models.backends.openvino import engine_of
from skilltrail.models.backends.weights import EMBEDDED, PACKAGE, find_weights
from skilltrail.models.errors import LostText, ModelConfigError, TooLong
from skilltrail.models.protocol import Decoding, Message, Part, Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import EMBEDDED_BACKENDS, RoleOptions

needs_model = pytest.mark.skipif(
    not any(
        all((Path(folder) / name).is_dir() for name in (PACKAGE, "xllamacpp", "openvino"))
        for folder in sys.path
    ),
    reason="the embedded model, xllamacpp or openvino is not installed: run `make test`",
)

SKILLS = (
    "",
    "Answer the question with the shortest exact phrase of the context, and add nothing to it.",
    "Answer with a phrase of the context.\n\nContext: The mill burnt down in 1837.\n"
    "Question: When did the mill burn down?\nAnswer: 1837\n",
)
FACTS = (
    ("The ferry to Arran leaves at nine.", "When does the ferry leave?"),
    ("The ferry to Mull leaves from Oban.", "Where does the ferry leave from?"),
    ("Der Turm ist 41 m hoch, sagt Jörg. 🗼", "How high is the tower?"),
)
SHORT = Decoding(max_tokens=4, stop=("\n",))
UNSET = Decoding()


def opened(
    backend: str, style: str = "completion", workers: int = 1, decoding: Decoding = UNSET
) -> LocalModel:
    """Open a model that has answered nothing yet."""
    engine_of.cache_clear()
    options = RoleOptions(
        backend=backend, model=EMBEDDED, style=style, workers=workers, n_ctx=1024
    )
    model = open_model("target", replace(options, **vars(decoding)))
    assert isinstance(model, LocalModel)
    return model


def asked(skill: str, fact: tuple[str, str]) -> Request:
    prompt = f"Context: {fact[0]}\nQuestion: {fact[1]}\nAnswer:"
    return Request(system=skill, prompt=prompt, decoding=SHORT)


def replies(model: LocalModel, requests: list[Request]) -> list[Reply]:
    async def all_of_them() -> list[Reply]:
        return list(await asyncio.gather(*map(model.complete, requests)))

    return asyncio.run(all_of_them())


@pytest.fixture(scope="module", params=EMBEDDED_BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(backend: str) -> Iterator[LocalModel]:
    model = opened(backend)
    yield model
    asyncio.run(model.close())


@pytest.fixture(scope="module")
def llama() -> Iterator[LocalModel]:
    model = opened("local")
    yield model
    asyncio.run(model.close())


@needs_model
@pytest.mark.parametrize(("style", "n_facts"), [("completion", 3), ("chat", 2)])
def test_replies_depend_on_nothing_but_the_request(
    backend: str, style: str, n_facts: int
) -> None:
    requests = [asked(skill, fact) for skill in SKILLS[1:] for fact in FACTS[:n_facts]]
    shuffled = random.Random(5).sample(requests, len(requests))
    one = opened(backend, style)
    in_order = dict(zip(map(id, requests), replies(one, requests), strict=True))
    two = opened(backend, style, workers=2)
    try:
        mixed = dict(zip(map(id, shuffled), replies(two, shuffled), strict=True))
    finally:
        asyncio.run(one.close())
        asyncio.run(two.close())
    assert mixed == in_order


@needs_model
def test_a_used_instance_answers_as_a_fresh_one(backend: str, model: LocalModel) -> None:
    request = asked(SKILLS[2], FACTS[0])
    replies(model, [asked(SKILLS[1], FACTS[2]), asked(SKILLS[2], FACTS[1])])
    fresh = opened(backend)
    expected = replies(fresh, [request])
    asyncio.run(fresh.close())
    assert replies(model, [request]) == expected


PARTS = [
    f"Context: Mill {n} burnt down in 18{n}7, on a wet day in the month of May."
    for n in range(3)
]
LONG = "\n\n".join(
    f"{part} It was built anew.\nQuestion: When?\nAnswer: 18" for part in PARTS * 2
)


@needs_model
def test_going_on_from_a_common_start_gives_the_bits_of_a_fresh_start(
    backend: str, model: LocalModel
) -> None:
    grown, turned = LONG + "\n\n" + PARTS[0], LONG.replace("Mill 1", "Inn 5", 1)
    replies(model, [asked(text, FACTS[0]) for text in (LONG, grown, turned, LONG)])
    for text in (grown, turned):
        fresh = opened(backend)
        expected = replies(fresh, [asked(text, FACTS[1])])
        asyncio.run(fresh.close())
        assert replies(model, [asked(text, FACTS[1])]) == expected


def test_texts_with_a_common_start_share_their_first_links() -> None:
    one, two = chain(LONG), chain(LONG + "\n\nmore text at the end")
    assert len(one) > 2
    assert two[: len(one) - 1] == one[:-1]
    assert one[-1] == LONG


@needs_model
def test_the_skill_is_evaluated_once_and_then_held(model: LocalModel) -> None:
    first, second = replies(model, [asked(SKILLS[2], fact) for fact in FACTS[:2]])
    assert first.usage["cached"] == second.usage["cached"] > 0


@needs_model
def test_a_head_that_is_no_token_prefix_is_noticed_and_not_used() -> None:
    # This head ends inside a special token, which the whole prompt reads as one.
    head = "x" * 70 + " a<|im_"
    body = {"prompt": head + "start|> b", "max_tokens": 4, "temperature": 0.0}
    instance = Instance(find_weights(EMBEDDED).path, n_ctx=512)
    with_head, without = instance.complete(head, body), instance.complete("", body)
    assert with_head["usage"] == without["usage"]
    assert with_head["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert with_head["choices"] == without["choices"]


@needs_model
def test_stop_ends_a_reply_and_length_says_that_it_was_cut(llama: LocalModel) -> None:
    count = Request(prompt="One, two, three,", decoding=Decoding(max_tokens=12, stop=("five",)))
    stopped, cut = replies(llama, [count, replace(count, decoding=Decoding(max_tokens=2))])
    assert (stopped.finish, "five" in stopped.text) == ("stop", False)
    assert (cut.finish, cut.usage["output"]) == ("length", 2)


@needs_model
def test_a_schema_constrains_completions_and_chats(llama: LocalModel) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["n"],
        "additionalProperties": False,
    }
    decoding = Decoding(max_tokens=20)
    plain = Request(prompt="A digit:", schema=schema, decoding=decoding)
    chat = Request(
        messages=(Message.text("user", "A digit, please."),), schema=schema, decoding=decoding
    )
    for reply in replies(llama, [plain, chat]):
        assert list(json.loads(reply.text)) == ["n"]


@needs_model
def test_a_prompt_beyond_the_context_is_too_long_and_harms_nothing(model: LocalModel) -> None:
    request = asked(SKILLS[1], FACTS[0])
    before = replies(model, [request])
    for long in (
        Request(prompt="word " * 1200),
        Request(system="word " * 1200, prompt="Go on:"),
        Request(messages=(Message.text("user", "word " * 1200),)),
    ):
        with pytest.raises(TooLong, match="n_ctx"):
            replies(model, [long])
    assert replies(model, [request]) == before


@needs_model
def test_sampling_repeats_with_its_seed_and_varies_with_it(model: LocalModel) -> None:
    def sampled(seed: int | None, repeat: int = 0) -> Request:
        decoding = Decoding(max_tokens=12, temperature=1.0, seed=seed)
        return Request(prompt="Once upon a time", decoding=decoding, repeat=repeat)

    some = [sampled(1), sampled(1), sampled(2), sampled(None), sampled(None), sampled(None, 1)]
    one, again, two, unseeded, unseeded_again, repeated = (r.text for r in replies(model, some))
    assert one == again != two
    assert unseeded == unseeded_again != repeated


@needs_model
def test_cancelled_calls_leave_every_instance_free(model: LocalModel) -> None:
    async def cancel_some() -> Reply:
        calls = [asyncio.create_task(model.complete(asked("", fact))) for fact in FACTS]
        await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await calls[0]
        return await model.complete(asked("", FACTS[0]))

    assert asyncio.run(cancel_some()) == replies(model, [asked("", FACTS[0])])[0]


@needs_model
def test_decoding_set_by_params_wins_and_is_part_of_the_identity(backend: str) -> None:
    model = opened(backend, decoding=Decoding(max_tokens=3))
    reply = replies(model, [Request(prompt="One, two,", decoding=Decoding(max_tokens=9))])[0]
    asyncio.run(model.close())
    assert reply.usage["output"] == 3
    plain = opened(backend)
    assert model.identity != plain.identity
    assert plain.identity == opened(backend, workers=2).identity


@needs_model
def test_nothing_is_written_to_the_terminal(
    backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    model = opened(backend)
    replies(model, [asked(SKILLS[1], FACTS[0])])
    asyncio.run(model.close())
    assert capfd.readouterr() == ("", "")


@needs_model
@pytest.mark.parametrize(
    "request_",
    [
        Request(prompt=""),
        Request(prompt="x", tools=({"name": "f", "parameters": {}},)),
        Request(prompt="x", decoding=Decoding(effort="high")),
        Request(prompt="x", schema={"type": "nothing-known"}),
        Request(messages=(Message("user", (Part(image="0" * 64),)),)),
    ],
    ids=["empty", "tools", "effort", "broken schema", "image"],
)
def test_what_it_cannot_do_is_refused_by_name(model: LocalModel, request_: Request) -> None:
    with pytest.raises(ModelConfigError):
        replies(model, [request_])


@pytest.mark.parametrize("wrong", [{"style": "prose"}, {"workers": -1}, {"n_ctx": 0}])
def test_values_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParamError, match=next(iter(wrong))):
        open_model("target", RoleOptions(**wrong))


def test_reasoning_of_a_model_in_this_process_is_no_answer_either() -> None:
    def answer(**message: Any) -> dict[str, Any]:
        counts = {"prompt_tokens": 9, "completion_tokens": 9,
                  "prompt_tokens_details": {"cached_tokens": 0}}  # fmt: skip
        return {"usage": counts, "choices": [{"finish_reason": "stop", "message": message}]}

    assert _reply(answer(content="<think>Perhaps 3.</think>\n4"), "m").text == "4"
    assert _reply(answer(content=None), "m").text == ""
    for alone in ({"content": "<think>4</think>"}, {"content": "", "reasoning_content": "4"}):
        with pytest.raises(LostText):
            _reply(answer(**alone), "m")


@given(st.text(alphabet="ab \n.", max_size=200))
def test_the_pin_ends_a_word_that_a_blank_follows(front: str) -> None:
    pin = pin_boundary(front)
    assert front.startswith(pin)
    if pin:
        assert not pin[-1].isspace()
        assert front[len(pin)] == " "


@given(st.text(alphabet="ab \n"), st.text(alphabet="ab \n"))
def test_one_blank_line_stands_between_front_and_prompt(front: str, prompt: str) -> None:
    text = joined(front, prompt)
    assert text == prompt or text == front.rstrip("\n") + "\n\n" + prompt.lstrip("\n")
