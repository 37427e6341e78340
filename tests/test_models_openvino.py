"""The model compiled by OpenVINO, beyond what `test_models_local.py` asks of it and `local`."""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skilltrail.models.backends.openvino import OpenVinoModel, engine_of
from skilltrail.models.backends.weights import EMBEDDED, PACKAGE
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import RoleOptions

pytestmark = pytest.mark.skipif(
    not all(
        any((Path(folder) / name).is_dir() for folder in sys.path)
        for name in (PACKAGE, "openvino", "openvino_genai", "openvino_tokenizers")
    ),
    reason="the embedded model or openvino is not installed: run `make test`",
)

SKILLS = (
    "",
    "Answer with a phrase of the context.",
    "Answer with a phrase of the context.\n\nContext: The mill burnt down in 1837.\n"
    "Question: When did the mill burn down?\nAnswer: 1837\n",
)
FACTS = (
    ("The ferry to Arran leaves at nine.", "When does the ferry leave?"),
    ("The ferry to Mull leaves from Oban.", "Where does the ferry leave from?"),
    ("Der Turm ist 41 m hoch, sagt Jörg. 🗼", "How high is the tower?"),
)
ALL = [(skill, fact) for skill in SKILLS for fact in FACTS]


def opened(style: str = "completion", workers: int = 1) -> OpenVinoModel:
    options = RoleOptions(
        backend="openvino", model=EMBEDDED, style=style, workers=workers, n_ctx=512
    )
    model = open_model("target", options)
    assert isinstance(model, OpenVinoModel)
    return model


def asked(skill: str, fact: tuple[str, str]) -> Request:
    prompt = f"Context: {fact[0]}\nQuestion: {fact[1]}\nAnswer:"
    return Request(system=skill, prompt=prompt, decoding=Decoding(max_tokens=6, stop=("\n",)))


def replies(model: OpenVinoModel, requests: list[Request]) -> list[Reply]:
    async def all_of_them() -> list[Reply]:
        return list(await asyncio.gather(*map(model.complete, requests)))

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("style", ["completion", "chat"])
def test_replies_depend_on_nothing_but_the_request(style: str) -> None:
    requests = [asked(*one) for one in ALL]
    in_order = replies(opened(style), requests)
    engine_of.cache_clear()
    order = random.Random(5).sample(range(len(ALL)), len(ALL))
    mixed = replies(opened(style, workers=2), [requests[at] for at in order])
    assert [mixed[order.index(at)] for at in range(len(ALL))] == in_order


def test_the_skill_is_evaluated_once_and_then_held() -> None:
    bare, first, second = replies(
        opened(), [asked("", FACTS[0]), asked(SKILLS[2], FACTS[0]), asked(SKILLS[2], FACTS[1])]
    )
    assert first.usage["cached"] == second.usage["cached"] > bare.usage["cached"] == 0


def test_a_skill_with_a_worked_example_gets_the_answer_out_of_the_text() -> None:
    request = asked(SKILLS[2], FACTS[1])
    longer = replace(request, decoding=Decoding(max_tokens=16, stop=("\n",)))
    reply = replies(opened(), [longer])[0]
    assert "Oban" in reply.text


def test_stop_ends_a_reply_and_length_says_that_it_was_cut() -> None:
    count = Request(prompt="1, 2, 3, 4,", decoding=Decoding(max_tokens=24, stop=("6",)))
    stopped, cut = replies(opened(), [count, replace(count, decoding=Decoding(max_tokens=2))])
    assert (stopped.finish, "6" in stopped.text) == ("stop", False)
    assert (cut.finish, cut.usage["output"]) == ("length", 2)


def test_it_is_another_model_than_local_and_holds_no_reply_to_a_schema() -> None:
    model = opened()
    local = open_model("target", RoleOptions(model=EMBEDDED, n_ctx=512))
    assert model.identity != local.identity
    with pytest.raises(ModelConfigError, match="local"):
        replies(model, [Request(prompt="x", schema={"type": "object"})])


def test_a_file_that_it_cannot_read_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 64)
    model = open_model("target", RoleOptions(backend="openvino", model=str(path)))
    with pytest.raises(ModelConfigError, match="local"):
        asyncio.run(model.complete(Request(prompt="x")))
