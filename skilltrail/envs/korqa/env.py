"""`korqa`: a Korean question, answered by a span of the text; the worked example of the docs.

    {"id": "6548850-0-1", "question": "… 평양축전에 대표로 파견된 인물은?",
     "context": "… 6월 30일 평양축전에 임수경을 대표로 …", "answers": ["임수경"]}

Official scorer: KorQuAD 1.0's `evaluate-v1.0.py`: exact match is `hard`, F1 over characters is
`soft`. Files in SQuAD's layout are flattened to such records by the reader (`skilltrail.data`).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.asking import REVIEW
from skilltrail.envs.kit.passages import PassageParams, PassageQa
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.params.knob import knob

PROMPTS = Prompts(Path(__file__).parent / "prompts", "completion", "chat")
_MARKS = re.compile("['\"《》<>〈〉()‘’]")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(answer: str) -> str:
    """Return `answer` with brackets and quotes as blanks, lower case, no ASCII punctuation."""
    return " ".join(_MARKS.sub(" ", answer).lower().translate(_PUNCTUATION).split())


def character_f1(prediction: str, gold: str) -> float:
    """Return the F1 over bags of characters, white space left out, in [0, 1]."""
    said, wanted = (Counter("".join(normalize(one).split())) for one in (prediction, gold))
    common = (said & wanted).total()
    return 2 * common / (said.total() + wanted.total()) if common else 0.0


@dataclass(frozen=True)
class KorQaParams(PassageParams):
    """Options of `korqa`."""

    context_chars: int = knob(4000, "Longest text shown; what is over is cut off.", low=1)
    answer_tokens: int = knob(48, "Longest answer of a completion model.", low=1)
    example_chars: int = knob(200, "Longest text inside a worked example.", low=1)


class KorQa(PassageQa):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "korqa"
    version: ClassVar[str] = versioned("korqa/1", PROMPTS, REVIEW)
    Params: ClassVar[type] = KorQaParams
    prompts: ClassVar[Prompts] = PROMPTS

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge by KorQuAD; a wrong answer is `near` when it shares characters with a gold."""
        said = normalize(trajectory.answer)
        f1 = max(character_f1(said, gold) for gold in item.gold)
        if said in map(normalize, item.gold):
            return Score.scored(1.0, max(f1, float(not said)), "correct")
        reason = "wrong" if f1 == 0 else "near"
        return Score.scored(0.0, f1, reason if said else "empty")


ENVIRONMENT = KorQa
