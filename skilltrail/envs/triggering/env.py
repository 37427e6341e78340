"""`triggering`: whether an agent loads the skill for a request, by its name and description.

    {"id": "n-3", "prompt": "Write a template for a receipt", "should_trigger": false,
     "task_type": "near miss"}

What is trained is the `description` in the skill's frontmatter (`skill.frontmatter: train`); a
skill without one is described by its first paragraph, as agent programs do. Other skills are
offered beside it. Official scorer: none; right is loading it exactly where it should be.
Source of the form: https://agentskills.io/specification
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.order import order_key
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.answers import extract_answer
from skilltrail.envs.kit.asking import REVIEW, Question, TurnLimits, ask
from skilltrail.envs.kit.fields import ident, optional_text, shown, text
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.kit.transcript import Transcript, ending_of
from skilltrail.envs.protocol import Environment, ScoredBy, Where
from skilltrail.models.protocol import Message, Model, Part, Request
from skilltrail.params.knob import knob
from skilltrail.skill.skill_file import described, offered

PROMPTS = Prompts(Path(__file__).parent / "prompts", "list", "chat", "completion")
LOAD, NONE, OTHER = "load", "none", "other"
OTHERS = (
    "code-review: Reviews a change to program code. Use for diffs and pull requests.",
    "meeting-notes: Turns notes of a meeting into decisions and tasks.",
    "travel: Plans a journey: connections, times, places to stay.",
    "translation: Translates texts between languages and keeps their layout.",
)


@dataclass(frozen=True)
class TriggeringParams:
    """Options of `triggering`."""

    by: str = knob(
        "model",
        "model: it is asked which skill it would load; agent: an agent program that loads one.",
        choices=("model", "agent"),
    )
    others: tuple[str, ...] = knob(OTHERS, "Other skills on offer, each `name: description`.")
    answer_tokens: int = knob(12, "Longest answer of a completion model.", low=1)
    limits: TurnLimits = field(default_factory=TurnLimits)


class Triggering(Environment):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "triggering"
    version: ClassVar[str] = versioned("triggering/1", PROMPTS, REVIEW)
    fields: ClassVar[tuple[str, ...]] = ("prompt", "should_trigger", "task_type", "group")
    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER
    Params: ClassVar[type] = TriggeringParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; the agent sees the request alone."""
        wanted = record.get("should_trigger")
        said = str(wanted).strip().lower()
        if said not in ("true", "false"):
            raise where.error("should_trigger", shown(wanted), "Write true or false")
        return Item(
            id=ident(record, self.id_fields, where),
            input={"question": text(record, "prompt", where)},
            gold=LOAD if said == "true" else NONE,
            task_type=optional_text(record, "task_type", where),
            group=optional_text(record, "group", where),
        )

    def content(self, item: Item) -> str:
        """Return the request."""
        return str(item.input["question"])

    def most_calls(self) -> int:
        return int(self.params.limits.turns) if self.params.by == "model" else 1

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Ask which skill is loaded, or let an agent program load one.

        The answer of the trajectory is `load`, `none`, `other`, or "" for no name on offer.
        """
        if self.params.by == "agent":
            return await self._by_agent(item, skill, target)
        name, about = described(skill)
        offers = [f"{name}: {about}", *self.params.others]
        # In an order of the item's own, so that no place on the list is the right one.
        offers.sort(key=lambda offer: order_key(0, 0, f"{item.id} {offer.partition(':')[0]}"))
        listed = PROMPTS.fill("list", skills="\n".join(f"- {offer}" for offer in offers))
        question = Question(
            PROMPTS.fill("completion", **item.input),
            (Part(PROMPTS.fill("chat", **item.input)),),
            self.params.answer_tokens,
        )
        names = [offer.partition(":")[0].strip() for offer in offers]

        def read(reply: str) -> str:
            return _loaded(extract_answer(reply), name, names)

        return await ask(question, listed, target, self.params.limits.turns, read)

    async def _by_agent(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Put the request to an agent program that finds the skills on its disk."""
        name, _ = described(skill)
        others = [offered(*map(str.strip, other.split(":", 1))) for other in self.params.others]
        request = Request(
            messages=(Message.text("user", item.input["question"]),),
            skills=(offered(name, described(skill)[1], skill), *others),
        )
        reply = await target.complete(request)
        loaded: Sequence[str] = reply.extra.get("loaded", ())
        said = Transcript()
        calls = [{"name": "load_skill", "arguments": {"skill": one}} for one in loaded]
        said.add([request.messages[0].to_json()], reply, calls=calls)
        other = OTHER if loaded else NONE
        return said.ended(ending_of(reply), LOAD if name in loaded else other)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Right where the skill is loaded exactly where it should be."""
        said = trajectory.answer
        if said == item.gold or (item.gold == NONE and said == OTHER):
            return Score.scored(1.0, reason="correct")
        if said not in (LOAD, NONE, OTHER):
            return Score.scored(0.0, reason="no_name" if said else "empty")
        if item.gold == LOAD:
            return Score.scored(0.0, reason="missed" if said == NONE else "other_skill")
        near = item.task_type is not None and "near" in item.task_type
        return Score.scored(0.0, reason="near_miss" if near else "false_alarm")

    def reference(self, item: Item) -> str | None:
        """Return what should happen: `load` or `none`."""
        return str(item.gold)

    def feedback(self, item: Item, trajectory: Trajectory) -> str | None:
        """Tell analysts in words what should have been."""
        should = "should" if item.gold == LOAD else "should not"
        return f"For this request the agent {should} load the skill."


def _loaded(answer: str, name: str, names: Sequence[str]) -> str:
    """Return which of our words an answer means; itself where it names nothing on offer."""
    said = answer.strip().strip("`'\"*.").casefold()
    if said == name.casefold():
        return LOAD
    if said in ("none", "no skill"):
        return NONE
    return OTHER if said in [other.casefold() for other in names] else answer.strip()


ENVIRONMENT = Triggering
