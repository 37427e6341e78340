"""`textqa`: a question about a text, answered by a span of it, in SearchQA's item shape.

    {"id": "trains-0a6bf46c69-driver", "question": "Who drives the train?",
     "context": "The morning train runs to Ebbhaven. It is driven by Ada Fenmark. …",
     "answers": ["Ada Fenmark"], "task_type": "person", "group": "trains-0a6bf46c69"}

Official scorer: SQuAD v1.1 (`envs.kit.qa_scoring`): exact match is `hard`, token F1 `soft`.
SearchQA and SQuAD questions in this shape load the same way. Departures from SkillOpt's own
SearchQA environment stand in `README.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.envs.kit.asking import REVIEW
from skilltrail.envs.kit.fields import optional_text
from skilltrail.envs.kit.passages import PassageParams, SquadQa
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.kit.reasons import form
from skilltrail.envs.protocol import Where
from skilltrail.params.knob import knob

PROMPTS = Prompts(Path(__file__).parent / "prompts", "completion", "chat")


@dataclass(frozen=True)
class TextQaParams(PassageParams):
    """Options of `textqa`."""

    example_chars: int = knob(600, "Longest context inside a worked example.", low=1)


class TextQa(SquadQa):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "textqa"
    version: ClassVar[str] = versioned("textqa/2", PROMPTS, REVIEW)
    Params: ClassVar[type] = TextQaParams
    prompts: ClassVar[Prompts] = PROMPTS
    fields: ClassVar[tuple[str, ...]] = (*SquadQa.fields, "group")

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; fields beyond the known ones are kept in `extra`."""
        extra = {key: value for key, value in record.items() if key not in self.fields}
        group = optional_text(record, "group", where)
        return replace(super().parse(record, where), group=group, extra=extra)

    def traits(self, item: Item) -> frozenset[str]:
        """Return the question's common words, and the form of the answer in brackets."""
        words = super().traits(replace(item, task_type=None))
        return words | {f"<{form(str(item.gold[0]))}>"}


ENVIRONMENT = TextQa
