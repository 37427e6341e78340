"""`livemath`: which of several statements is the strongest true one?

    {"month": "900001", "no": 7, "paper_link": "…", "theorem": "…", "sketch": "…",
     "theorem_type": ["Implication"], "mcq": {"question": "Which statement about …?",
      "correct_choice": {"label": "A", "text": "…"}, "choices": [{"label": "B", "text": "…"}, …
      ], "meta": {"weaker_true_label": "C"}}}

Source and scorer: LiveMathematicianBench, accuracy of the label (chance 20 %), read as SkillOpt
reads it (`envs.kit.choices`); hard and soft are the same. The named metric `lenient` also
takes `(B)`, `**B**` and `\\boxed{B}`. Departure: an item's order is fixed by seed and id; the
reference shuffles anew in every epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.asking import REVIEW, OneTurn, Question, TurnLimits
from skilltrail.envs.kit.choices import lenient_label, read_label
from skilltrail.envs.kit.excerpts import fold
from skilltrail.envs.kit.fields import optional_text, text
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.livemath.records import id_of, mcq_of, options_of, theorem_types
from skilltrail.envs.protocol import ScoredBy, Where
from skilltrail.models.protocol import Part
from skilltrail.params.knob import knob

_HERE = Path(__file__).parent
PROMPTS = Prompts(_HERE / "prompts", "completion", "chat")


@dataclass(frozen=True)
class LiveMathParams:
    """Options of `livemath`."""

    shuffle_choices: bool = knob(True, "Shuffle the options; false leaves the right one first.")
    shuffle_seed: int = knob(42, "With the item's id it fixes the order of the options.")
    use_theorem: bool = knob(False, "Show the theorem that the question is made from.")
    use_sketch: bool = knob(False, "Show the sketch of its proof.")
    answer_tokens: int = knob(12, "Longest answer of a completion model.", low=1)
    limits: TurnLimits = field(default_factory=TurnLimits)


class LiveMath(OneTurn):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "livemath"
    version: ClassVar[str] = versioned("livemath/1", PROMPTS, REVIEW)
    fields: ClassVar[tuple[str, ...]] = (
        "month", "no", "mcq", "paper_link", "theorem", "sketch", "theorem_type",
    )  # fmt: skip
    id_fields: ClassVar[tuple[str, ...]] = ("id", "no")
    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER
    Params: ClassVar[type] = LiveMathParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record of a monthly file; see `records.py`."""
        id, mcq = id_of(record, where), mcq_of(record, where)
        seed = self.params.shuffle_seed if self.params.shuffle_choices else None
        options = options_of(mcq, id, seed, where)
        types = theorem_types(record, where)
        paper = optional_text(record, "paper_link", where)
        shown = {name: optional_text(record, name, where) for name in ("theorem", "sketch")}
        wanted = {"theorem": self.params.use_theorem, "sketch": self.params.use_sketch}
        return Item(
            id=id,
            input={
                "question": text(mcq, "question", where),
                "choices": [[label, words] for label, words in options.texts.items()],
                **{name: shown[name] for name, show in wanted.items() if show and shown[name]},
            },
            gold={"label": options.correct, "weaker": options.weaker},
            group=None if paper is None else f"paper:{paper}",
            task_type=types[0] if types else None,
            extra={"theorem_types": types} if types else {},
        )

    def content(self, item: Item) -> str:
        """Return the question and its options in a fixed order."""
        texts = sorted(words for _, words in item.input["choices"])
        return "\n".join([item.input["question"], *texts])

    def question(self, item: Item) -> Question:
        given = {"theorem": "Theorem", "sketch": "Sketch of the proof"}
        before = [
            f"{word}: {item.input[key]}" for key, word in given.items() if key in item.input
        ]
        values = {
            "question": "\n\n".join([*before, item.input["question"]]),
            "choices": "\n".join(f"{label}. {words}" for label, words in item.input["choices"]),
        }
        chat = (Part(PROMPTS.fill("chat", **values)),)
        return Question(PROMPTS.fill("completion", **values), chat, self.params.answer_tokens)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge by the label that the answer names."""
        label = read_label(trajectory.answer, dict(item.input["choices"]))
        if label == item.gold["label"]:
            return Score.scored(1.0, reason="correct")
        if not trajectory.answer:
            return Score.scored(0.0, reason="empty")
        if label is None:
            cut = trajectory.ending == "truncated"
            return Score.scored(0.0, reason="truncated" if cut else "unreadable")
        return Score.scored(0.0, reason="weaker" if label == item.gold["weaker"] else "wrong")

    def metrics(self, item: Item, trajectory: Trajectory) -> dict[str, float]:
        """Return the score of a lenient reader; published scores are not comparable."""
        label = lenient_label(trajectory.answer, dict(item.input["choices"]))
        return {"lenient": float(label == item.gold["label"])}

    def golds(self, item: Item) -> list[str]:
        """Return the right label."""
        return [str(item.gold["label"])]

    def example(self, item: Item) -> str | None:
        """Return the solved item as a paragraph of the skill document."""
        lines = self.question(item).completion.split("\n")
        folded = "\n".join(fold(line) for line in lines if line.strip())
        return f"{folded} {item.gold['label']}"


ENVIRONMENT = LiveMath
