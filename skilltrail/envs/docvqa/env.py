"""`docvqa`: a question about the image of one page, answered in the words of the page.

    {"questionId": 1004, "question": "What is the total?", "image": "documents/lxof0004_1.png",
     "docId": 4, "ucsf_document_id": "lxof0004", "ucsf_document_page_no": "1",
     "answers": ["$412.50", "412.50"]}

Official scorer: ANLS (`anls.py`) is `soft`; `hard` is ANLS >= 0.999, equality up to capitals
and white space (as SkillOpt has it). A vision model sees the image, a text model the text.
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
from skilltrail.envs.docvqa import records
from skilltrail.envs.docvqa.anls import anls, folded, script_anls
from skilltrail.envs.kit.asking import REVIEW, OneTurn, Question, TurnLimits, ask
from skilltrail.envs.kit.excerpts import around, fold
from skilltrail.envs.kit.fields import ident, texts
from skilltrail.envs.kit.files import NamesFiles, find_known
from skilltrail.envs.kit.images import DETAILS, image_part
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.protocol import ScoredBy, Where
from skilltrail.models.protocol import Model, Part
from skilltrail.params.knob import knob, operational

_HERE = Path(__file__).parent
PROMPTS = Prompts(_HERE / "prompts", "completion", "chat_text", "chat_image")


@dataclass(frozen=True)
class DocVqaParams:
    """Options of `docvqa`."""

    see: str = knob(
        "auto",
        "What the agent is shown; auto = the image where the model has vision, else the text.",
        choices=("auto", "image", "text"),
    )
    image_detail: str = knob("auto", "How closely a vision model looks.", choices=DETAILS)
    page_chars: int = knob(6000, "Longest page text shown; what is over is cut off.", low=1)
    answer_tokens: int = knob(24, "Longest answer of a completion model.", low=1)
    example_chars: int = knob(400, "Longest page text inside a worked example.", low=1)
    data_dirs: tuple[str, ...] = operational(
        (), "Folders of the images; none = data/docvqa and its like."
    )
    limits: TurnLimits = field(default_factory=TurnLimits)


class DocVqa(OneTurn, NamesFiles):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "docvqa"
    version: ClassVar[str] = versioned("docvqa/1", PROMPTS, REVIEW)
    fields: ClassVar[tuple[str, ...]] = (
        "question", "image", "image_path", "answers", "answer", "page_text", "topic",
        "docId", "ucsf_document_id",
    )  # fmt: skip
    id_fields: ClassVar[tuple[str, ...]] = ("questionId", "id")
    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER
    Params: ClassVar[type] = DocVqaParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record of either official layout; see `records.py`."""
        question, name, named_by = records.question_and_image(record, self.folders, where)
        page = records.page_of(record, name, named_by, self.folders, where)
        topics = records.topics_of(record, where)
        answers = "answers" if record.get("answers") is not None else "answer"
        return Item(
            id=ident(record, self.id_fields, where),
            input={"question": question, "image": page.sha256, "page_text": page.text},
            gold=texts(record, answers, where),
            group=records.group_of(record, where),
            task_type=topics[0] if topics else None,
            extra={"image_name": page.name} | ({"topics": topics} if topics else {}),
        )

    def content(self, item: Item) -> str:
        """Return question and image: what may not stand in two splits."""
        return f"{item.input['question']}\n{item.input['image']}"

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Ask about the page, shown as image or as text.

        Raises:
            DataError: this model cannot be shown this page.
        """
        see = self.params.see
        has_vision = "vision" in target.abilities
        if see == "image" and not has_vision:
            raise DataError(
                "envs.docvqa.see: image",
                "the target reads no images",
                "Choose a target with vision, or see: text",
            )
        shows_image = see == "image" or (see == "auto" and has_vision)
        question = self._image_question(item) if shows_image else self.question(item)
        return await ask(question, skill, target, self.params.limits.turns)

    def _image_question(self, item: Item) -> Question:
        path = find_known(item.extra["image_name"], item.input["image"], self.folders)
        words = PROMPTS.fill("chat_image", question=item.input["question"])
        parts = (image_part(path, self.params.image_detail), Part(words))
        return Question(words, parts, self.params.answer_tokens)

    def question(self, item: Item) -> Question:
        """Return the item as text, for a model that is not shown the image."""
        page = item.input["page_text"]
        if page is None:
            raise DataError(
                f"Item {item.id!r} for a target that reads text only",
                f"no page text beside the image {item.extra['image_name']!r}",
                "Write the page's text (by OCR, say) to a file beside the image, named like it "
                "with the suffix .txt, or choose a target with vision",
            )
        values = {
            "page": page[: self.params.page_chars].strip(),
            "question": item.input["question"],
        }
        chat = (Part(PROMPTS.fill("chat_text", **values)),)
        return Question(PROMPTS.fill("completion", **values), chat, self.params.answer_tokens)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge by ANLS."""
        answer = trajectory.answer
        soft = anls(answer, item.gold)
        hard = float(soft >= 0.999)
        return Score.scored(hard, soft, _reason(answer, item.gold, soft, trajectory.ending))

    def metrics(self, item: Item, trajectory: Trajectory) -> dict[str, float]:
        """Return ANLS under its own name, and as the competition's script computes it."""
        said, golds = trajectory.answer, item.gold
        return {"anls": anls(said, golds), "anls_script": script_anls(said, golds)}

    def example(self, item: Item) -> str | None:
        """Return the solved item as a paragraph of the skill document; None without text."""
        page, answer = item.input["page_text"], fold(self.reference(item) or "")
        if page is None or not answer:
            return None
        shown = around(fold(page), answer, self.params.example_chars)
        if shown is None:
            return None
        question = PROMPTS.fill("completion", page=shown, question=item.input["question"])
        return f"{question} {answer}"


ENVIRONMENT = DocVqa


def _reason(answer: str, golds: list[str], soft: float, ending: str) -> str:
    """Return in which way an answer is right or wrong; types are in `rules.yaml`."""
    said = folded(answer)
    if soft >= 0.999:
        return "correct"
    if not said:
        return "empty"
    if any(folded(gold) and folded(gold) in said for gold in golds):
        return "verbose"
    if ending == "truncated":
        return "truncated"
    if any(said in folded(gold) for gold in golds):
        return "partial"
    return "misspelt" if soft > 0 else "wrong"
