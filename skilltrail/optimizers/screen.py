"""Refusals before anything is paid for: what an edit may not carry, whoever proposes it.

    web_address, shell_command, credential   not in the tasks (`optimizers.injection`)
    copies_item, copies_answer               of train items (`optimizers.leakage`)
    repeats_skill                            every line of it stands in the skill already

Worked examples (kind `example`, with the item they show) may quote items; nothing else is
waived for them. All pure: the loop may screen any optimizer's edits with the same result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from skilltrail.core.canon import texts_in
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.optimizers.injection import TaskText, foreign_text, procedures
from skilltrail.optimizers.leakage import TrainTexts, quoted
from skilltrail.optimizers.protocol import Observation, StepView
from skilltrail.skill.document import split_lines
from skilltrail.skill.edit import Edit

TAG = "screen/1"

_BULLET = re.compile(r"^\s*(?:[-*+>]\s+|\d+[.)]\s+|#+\s+)*")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_FILLERS = frozenset(
    ("a", "an", "the", "please", "always", "make", "sure", "that", "be", "to", "you", "your")
)
_LEAST_WORDS = 2


@dataclass(frozen=True)
class Screen:
    """Everything an edit is held against.

    Attributes:
        skill: the current skill document.
        tasks: the text of the tasks: items' inputs and the first prompt of each rollout.
        train: the train items seen so far.
        agent: what the agent can do; commands of that kind may be told it.
    """

    skill: str
    tasks: TaskText
    train: TrainTexts
    agent: tuple[str, ...] = ()

    @staticmethod
    def of(
        skill: str,
        observations: Iterable[Observation],
        items: Iterable[Item] = (),
        agent: tuple[str, ...] = (),
    ) -> Screen:
        """Return the screen of a step; `items` are train items seen before it."""
        seen = list(observations)
        texts = [text for o in seen for text in texts_in(o.item.input)]
        texts += [text for o in seen for text in _first_prompt(o.trajectory)]
        train = {item.id: item for item in (*items, *(o.item for o in seen))}
        return Screen(skill, TaskText([skill, *texts]), TrainTexts(train.values()), agent)

    @staticmethod
    def of_step(view: StepView, agent: tuple[str, ...] = ()) -> Screen:
        """Return the screen of a step's view."""
        items = [o.item for o in view.pool.values()]
        return Screen.of(view.skill, view.observations, items, agent)

    def refusal(self, edit: Edit) -> str | None:
        """Return why an edit is refused ("code: sentence"), or None when it may pass."""
        if not edit.content.strip():
            return None
        foreign = foreign_text(edit.content, self.tasks, self.agent)
        if foreign is not None:
            return foreign
        if not (edit.kind == "example" and edit.items):
            copied = self.train.copied(edit.content, self.skill)
            if copied is not None:
                return copied
        return repetition(edit, self.skill)

    def text_refusal(self, text: str, *, examples: bool = False) -> str | None:
        """Return why a text of its own (guidance, memory, a note) is refused, or None.

        `examples` True lets it quote train items.
        """
        foreign = foreign_text(text, self.tasks, self.agent)
        if foreign is not None or examples:
            return foreign
        return self.train.copied(text, self.skill)

    def procedures(self, edits: Iterable[Edit]) -> list[str]:
        """Return the commands that pass only because of what the agent can do."""
        return [
            found
            for edit in edits
            for found in procedures(edit.content, self.tasks, self.agent)
        ]


def repetition(edit: Edit, skill: str) -> str | None:
    """Return why an edit that says only what the skill says already is refused, or None."""
    if edit.op not in ("append", "insert_after", "replace"):
        return None
    gone = set()
    if edit.op == "replace":
        gone = {line.strip() for line in split_lines(edit.target)}
    kept = [line for line in split_lines(skill) if line.strip() not in gone]
    said = {same: line for line in reversed(kept) if (same := normalized_words(line))}
    lines = [line for line in split_lines(edit.content) if normalized_words(line)]
    if not lines or any(normalized_words(line) not in said for line in lines):
        return None
    return f"repeats_skill: the skill has the line {quoted(said[normalized_words(lines[0])])}"


@lru_cache(maxsize=4096)
def normalized_words(line: str) -> tuple[str, ...]:
    """Return what a line says, apart from marks, case, fillers and endings of words.

    Order and every word that could turn the meaning stay, so `always` and `never` differ.
    A line of fewer than `_LEAST_WORDS` words has no sense of its own: ().
    """
    words = [word.casefold() for word in _WORD.findall(_BULLET.sub("", line))]
    kept = tuple(_stem(word) for word in words if word not in _FILLERS)
    return kept if len(kept) >= _LEAST_WORDS else ()


def _stem(word: str) -> str:
    for ending in ("ing", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _first_prompt(trajectory: Trajectory) -> Iterable[str]:
    """Yield what the agent was sent first: the task, before any tool or page answered."""
    if not trajectory.turns:
        return ()
    return texts_in(trajectory.turns[0].sent)
