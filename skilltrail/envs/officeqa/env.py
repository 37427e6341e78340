"""`officeqa`: a question about long financial documents, answered with a number or a few words.

    uid,question,answer,source_docs,source_files,difficulty
    OWN003,What was the total of receipts in 1961?,"4,318 million",
        https://own.invalid/bulletin?page=2,own_bulletin_1961.txt,easy

Official scorer: the publisher's `reward.py` at a tolerance (`official.py`); hard and soft are
the same. The metric of SkillOpt's own environment is kept under `reference_em` and
`reference_f1`. Departures: an answer in `<answer>` tags counts where the official tag is
absent; no web search, since a run must be repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.answers import tagged
from skilltrail.envs.kit.asking import REVIEW, Question, TurnLimits, ask
from skilltrail.envs.kit.excerpts import around, fold
from skilltrail.envs.kit.fields import ident, optional_text, text
from skilltrail.envs.kit.files import NamesFiles
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.officeqa import records
from skilltrail.envs.officeqa.agent import Loop, first_request, search
from skilltrail.envs.officeqa.official import bare_text, fault, score_answer
from skilltrail.envs.officeqa.reference_metric import reference_em, reference_f1
from skilltrail.envs.protocol import ScoredBy, Where
from skilltrail.models.protocol import Model, Part
from skilltrail.params.knob import knob, operational

_HERE = Path(__file__).parent
_FORMS = ("tools", "calls", "page", "closed")
PROMPTS = Prompts(
    _HERE / "prompts",
    *(f"chat_{form}" for form in _FORMS),
    *(f"completion_{form}" for form in _FORMS if form != "tools"),
)


@dataclass(frozen=True)
class OfficeQaLimits(TurnLimits):
    """Limits of the agent; `turns` counts where it has no tools."""

    tool_turns: int = knob(24, "Turns with tool calls; a further one scores 0.", low=0)
    item_s: float = knob(600.0, "Seconds that the agent's own tools may take per item.", low=0)


@dataclass(frozen=True)
class OfficeQaParams:
    """Options of `officeqa`."""

    oracle: bool = knob(False, "Show the page that holds the answer, instead of tools.")
    local_tools: bool = knob(True, "Give the agent tools over the item's files.")
    tool_protocol: str = knob(
        "auto",
        "How tools are called; auto = tool definitions where the model takes them, else text.",
        choices=("auto", "native", "text"),
    )
    queries_per_turn: int = knob(4, "Tool calls run in one turn.", low=1)
    tolerance: float = knob(
        0.0, "Largest error of a number, as a share of it.", low=0, high=1, scorer=True
    )
    oracle_chars: int = knob(24000, "Longest text of the oracle pages.", low=1)
    answer_tokens: int = knob(32, "Longest answer or step of a completion model.", low=1)
    example_chars: int = knob(400, "Longest page text inside a worked example.", low=1)
    data_dirs: tuple[str, ...] = operational(
        (), "Folders of the documents; none = data/officeqa and its like."
    )
    limits: OfficeQaLimits = field(default_factory=OfficeQaLimits)


class OfficeQa(NamesFiles):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "officeqa"
    version: ClassVar[str] = versioned("officeqa/1", PROMPTS, REVIEW)
    fields: ClassVar[tuple[str, ...]] = (
        "question", "answer", "ground_truth", "source_files", "source_docs", "difficulty",
        "category",
    )  # fmt: skip
    id_fields: ClassVar[tuple[str, ...]] = ("uid", "id")
    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER
    Params: ClassVar[type] = OfficeQaParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; see `records.py`."""
        names = records.source_files(record, where)
        shown: dict[str, Any] = {"question": text(record, "question", where)}
        if self.params.oracle:
            chars = self.params.oracle_chars
            shown["page"] = records.oracle_pages(record, names, self.folders, chars, where)
        elif self.params.local_tools:
            shown["files"] = records.digests_of(names, self.folders, where)
        answer = "answer" if record.get("answer") is not None else "ground_truth"
        level = "difficulty" if record.get("difficulty") is not None else "category"
        return Item(
            id=ident(record, self.id_fields, where),
            input=shown,
            gold=text(record, answer, where).strip(),
            group=f"file:{min(names)}",
            task_type=optional_text(record, level, where),
        )

    def content(self, item: Item) -> str:
        """Return the question: what may not stand in two splits."""
        return str(item.input["question"])

    def most_calls(self) -> int:
        limits = self.params.limits
        return int(max(limits.turns, limits.tool_turns + 1))

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Search the files with tools, or answer from the oracle page or from nothing."""
        if "files" in item.input:
            return await self._search(item, skill, target)
        form = "page" if "page" in item.input else "closed"
        completion = PROMPTS.fill(f"completion_{form}", **item.input)
        chat = (Part(PROMPTS.fill(f"chat_{form}", **item.input)),)
        question = Question(completion, chat, self.params.answer_tokens)
        return await ask(question, skill, target, self.params.limits.turns, read=answer_in)

    async def _search(self, item: Item, skill: str, target: Model) -> Trajectory:
        limits, protocol = self.params.limits, self.params.tool_protocol
        loop = Loop(
            files=records.texts_of(item.input["files"], self.folders),
            tool_turns=limits.tool_turns,
            calls_per_turn=self.params.queries_per_turn,
            item_s=limits.item_s,
            step_tokens=self.params.answer_tokens,
        )
        is_chat = target.style == "chat"
        able = is_chat and "tools" in target.abilities
        if protocol == "native" and not able:
            raise DataError(
                "envs.officeqa.tool_protocol: native",
                "the target takes no tool definitions",
                "Choose a target with tools, or tool_protocol: text",
            )
        native = able and protocol != "text"
        form = "completion_calls" if not is_chat else "chat_tools" if native else "chat_calls"
        files = "\n".join(sorted(loop.files))
        prompt = PROMPTS.fill(form, files=files, question=item.input["question"])
        request = first_request(prompt, skill, target, loop, native)
        return await search(request, target, loop)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge by the official scorer at the tolerance of the params."""
        said, gold = answer_in(trajectory.answer), item.gold
        right = score_answer(gold, said, self.params.tolerance)
        if right:
            return Score.scored(1.0, reason="correct")
        return Score.scored(0.0, reason=_reason(gold, said, trajectory.ending))

    def metrics(self, item: Item, trajectory: Trajectory) -> dict[str, float]:
        """Return the official score at usual tolerances, and SkillOpt's own metric."""
        said, gold = answer_in(trajectory.answer), item.gold
        return {
            "official_0": score_answer(gold, said, 0.0),
            "official_1pct": score_answer(gold, said, 0.01),
            "official_5pct": score_answer(gold, said, 0.05),
            "reference_em": reference_em(said, gold),
            "reference_f1": reference_f1(said, gold),
        }

    def reference(self, item: Item) -> str | None:
        """Return the expected answer."""
        return str(item.gold)

    def example(self, item: Item) -> str | None:
        """Return the solved item as a paragraph of the skill document; None with tools."""
        if "page" not in item.input:
            return None
        shown = around(fold(item.input["page"]), fold(item.gold), self.params.example_chars)
        if shown is None:
            return None
        values = {"page": shown, "question": fold(item.input["question"])}
        return f"{PROMPTS.fill('completion_page', **values)} {fold(item.gold)}"


ENVIRONMENT = OfficeQa


def answer_in(text: str) -> str:
    """Return the answer in a reply: of the official tag, else of `<answer>`, else all of it."""
    for tag in ("FINAL_ANSWER", "answer"):
        found = tagged(text, tag)
        if found is not None:
            return found
    return text.strip()


def _reason(gold: str, said: str, ending: str) -> str:
    """Return in which way an answer is wrong; types are in `rules.yaml`."""
    wrong = fault(gold, said)
    if wrong is not None:
        return "truncated" if ending == "truncated" and wrong != "empty" else wrong
    if score_answer(gold, said, 0.05):
        return "inexact"
    return "wrong" if bare_text(said) else "empty"
