"""All events around one candidate, from the rollouts it learned from to what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from skilltrail.core.errors import UsageError
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.outcomes import RolloutsScored, SkillVersioned
from skilltrail.history.log.types.parts import Purpose
from skilltrail.history.log.types.proposals import EditsSelected

# A candidate begins after one of these and ends before or with one of them.
_BEFORE = (
    "step.ended", "run.started", "method.chosen", "skill.versioned", "meta_skill.written",
)  # fmt: skip
_AFTER = ("meta_skill.written", "slow_update.compared", "run.finished")


@dataclass
class CandidateEvents:
    """The events of one step, slow update or compaction, by what they are.

    Attributes:
        learned: `rollouts.scored` events that were learned from.
        judged: the candidate's rollouts on the selection split.
    """

    chosen: Event | None = None
    learned: list[Event] = field(default_factory=list)
    budgets: list[Event] = field(default_factory=list)
    proposals: list[Event] = field(default_factory=list)
    rejected_replies: list[Event] = field(default_factory=list)
    merges: list[Event] = field(default_factory=list)
    selected: Event | None = None
    built: Event | None = None
    judged: Event | None = None
    gate: Event | None = None
    versioned: Event | None = None
    ended: Event | None = None
    last: int = 0  # sequence number of the last event taken

    def take(self, event: Event) -> None:
        """Put an event in its place."""
        self.last = max(self.last, event.seq)
        lists = {
            "budget.decided": self.budgets,
            "patch.proposed": self.proposals,
            "slow_update.proposed": self.proposals,
            "compaction.proposed": self.proposals,
            "appendix.proposed": self.proposals,
            "patch.merged": self.merges,
            "reply.rejected": self.rejected_replies,
        }
        single = {
            "parents.chosen": "chosen",
            "edits.selected": "selected",
            "candidate.built": "built",
            "gate.judged": "gate",
            "skill.versioned": "versioned",
            "step.ended": "ended",
        }
        if event.type in lists:
            lists[event.type].append(event)
        elif event.type in single:
            setattr(self, single[event.type], event)
        elif _is_of(event, Purpose.SELECTION):
            self.judged = event
        elif event.type == "rollouts.scored":
            self.learned.append(event)


def candidate_of_version(log: RunLog, number: int) -> CandidateEvents:
    """Return the candidate that made version `number`; the seed's has only its own event.

    Raises:
        UsageError: the log has no such version.
    """
    for event in log.of_type("skill.versioned"):
        if event.read(SkillVersioned).version == number:
            if number == 0:
                return CandidateEvents(versioned=event)
            return candidate_around(log, event)
    last = len(log.of_type("skill.versioned")) - 1
    raise UsageError(f"version {number}", f"the log holds 0 to {last}", "Choose one of them")


def candidate_around(log: RunLog, event: Event) -> CandidateEvents:
    """Return the candidate that `event` belongs to."""
    events = log.events
    at = event.seq - events[0].seq
    first = at
    while first > 0 and not _ends_before(events[first - 1], events[first]):
        first -= 1
    candidate = CandidateEvents()
    for index in range(first, len(events)):  # a slice would copy the rest of the log
        one = events[index]
        begins = _begins(one) and (candidate.chosen is None or one.type == "parents.chosen")
        if one.seq > event.seq and (one.type in _AFTER or begins):
            break
        candidate.take(one)
        if one.type == "step.ended":
            break
    if candidate.selected is not None and not candidate.proposals:
        # A search tries what steps before it proposed.
        candidate.proposals.append(log.patch(candidate.selected.read(EditsSelected).patch))
    return candidate


def _ends_before(before: Event, event: Event) -> bool:
    """True when a candidate cannot reach back over `before`."""
    if before.type == "skill.versioned":
        return event.type != "step.ended"
    if before.type in _BEFORE:
        return True
    baseline = _is_of(before, Purpose.BASELINE)
    within = before.type in ("rollouts.scored", "parents.chosen")
    return baseline or (_begins(event) and not within)


def _begins(event: Event) -> bool:
    """True for what a step begins with (the choice of parents, where a method chooses, else
    train rollouts), and for a compaction."""
    if event.type in ("compaction.proposed", "parents.chosen"):
        return True
    return _is_of(event, Purpose.TRAIN)


def _is_of(event: Event, purpose: Purpose) -> bool:
    return event.type == "rollouts.scored" and event.read(RolloutsScored).purpose is purpose
