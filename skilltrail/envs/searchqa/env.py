"""`searchqa`: a trivia clue and search snippets; the answer is a name or a few words.

    {"id": "5093b6d997674d25be29a4c94fcd5185", "question": "Ferdinand VII,Juan Carlos",
     "context": "[DOC] [TLE] … [PAR] … [DOC] [TLE] … [PAR] …", "answers": ["Spain"]}

Official scorer: SQuAD v1.1 (`envs.kit.qa_scoring`): exact match is `hard`, token F1 `soft`.
Departures from SkillOpt's environment: F1 of two empty texts is 0, as officially; its
sub-string match is the named metric `reference_sub_em` only, since an empty answer passes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.asking import REVIEW
from skilltrail.envs.kit.passages import SquadQa
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.kit.qa_scoring import normalize, token_f1

PROMPTS = Prompts(Path(__file__).parent / "prompts", "completion", "chat")


class SearchQa(SquadQa):
    """The environment; its id is `id`, or `key` in the published table."""

    name: ClassVar[str] = "searchqa"
    version: ClassVar[str] = versioned("searchqa/1", PROMPTS, REVIEW)
    prompts: ClassVar[Prompts] = PROMPTS
    id_fields: ClassVar[tuple[str, ...]] = ("id", "key")

    def metrics(self, item: Item, trajectory: Trajectory) -> dict[str, float]:
        """Return SkillOpt's sub-string match, and its F1, in which two empty texts agree."""
        said = normalize(trajectory.answer)
        golds = [normalize(gold) for gold in item.gold]
        both_empty = not said and "" in golds
        return {
            "reference_sub_em": float(any(said in gold or gold in said for gold in golds)),
            "reference_f1": 1.0 if both_empty else token_f1(trajectory.answer, item.gold),
        }


ENVIRONMENT = SearchQa
