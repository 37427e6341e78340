"""RunState: what is known of a run after an event; `evolve` takes in the next one.

The loop, replay, commits, verification and reports all fold a log by this one function, so that
what one holds true is true for the others. Events are taken at their word: the checks of
`verify` compare each with the state before it is taken in. Documents are rebuilt from the log
alone; each is right by its recorded SHA-256, or named as a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import FaultError
from skilltrail.core.score import Outcome, Score
from skilltrail.core.targets import case_of
from skilltrail.history.log.events import Event
from skilltrail.history.log.patching import patched
from skilltrail.history.log.rows import Row, scores_of

Scores = Mapping[str, Score]  # by item id
Changes = dict[str, Any]
_NOTHING = Fraction(0)

# Events that carry a patch.
CARRIERS = (
    "patch.proposed",
    "patch.merged",
    "appendix.proposed",
    "slow_update.proposed",
    "compaction.proposed",
)


@dataclass(frozen=True)
class Rejection:
    """A verdict against a text: its event, and the skill and scores it was held against."""

    event: int
    current: str
    scores: Scores


@dataclass(frozen=True)
class RunState:
    """What is known after an event.

    Attributes:
        start: data of `run.started`, {} before.
        skill, version, scores: the newest version, and its score of each selection item; ""
            and None before version 0.
        best_skill, best_version, best_scores: the same of the best version.
        parent: the document that candidates are made of: the newest version, or the first
            parent that a method with a pool chose.
        documents: every document so far by digest, once a method with a pool was chosen.
        measured: scores of each version by its digest, once a method with a pool was chosen.
        fitness: scores of a document's last fitness on train items, by its digest.
        batches: train batches rolled out so far.
        candidate, candidate_scores: the candidate under judgement, and its scores.
        shortfall: what selection items lacked to a hard 1, summed over judged evaluations.
        rolled_out: train items rolled out so far, in any step.
        last_soft: digest of the skill and soft score of each train item's last rollout.
        earlier_soft: the last soft score of an item with another skill than that one.
        seen: the step's events so far; emptied when a step begins or has ended.
        patches: events that carry patches in this step (with a pool: in any), by patch id.
        rejected: what was rejected so far, by the text's digest.
        ended, totals: how many steps ended in each way, and sums of their counts.
        stalled: steps since the last acceptance.
        epoch, epoch_skill: the epoch that has begun last, and the skill it began with.
        guidance_fate: how the last slow update fared: a verdict, or "".
        meta_skill: the optimizer-side memory.
        broken: why documents can no longer be rebuilt, None while they can.
    """

    start: Mapping[str, Any] = field(default_factory=dict)
    skill: str = ""
    version: int | None = None
    parent: str = ""
    best_skill: str = ""
    best_version: int | None = None
    best_scores: Scores = field(default_factory=dict)
    documents: Mapping[str, str] | None = None
    measured: Mapping[str, Scores] = field(default_factory=dict)
    fitness: Mapping[str, Scores] = field(default_factory=dict)
    batches: int = 0
    candidate: str | None = None
    scores: Scores = field(default_factory=dict)
    candidate_scores: Scores = field(default_factory=dict)
    shortfall: Mapping[str, Fraction] = field(default_factory=dict)
    rolled_out: frozenset[str] = frozenset()
    last_soft: Mapping[str, tuple[str, float | None]] = field(default_factory=dict)
    earlier_soft: Mapping[str, float | None] = field(default_factory=dict)
    seen: tuple[Event, ...] = ()
    patches: Mapping[str, Event] = field(default_factory=dict)
    rejected: Mapping[str, Rejection] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    stalled: int = 0
    epoch: int = 0
    epoch_skill: str = ""
    guidance_fate: str = ""
    meta_skill: str = ""
    broken: str | None = None
    last: Event | None = None

    @property
    def digest(self) -> str:
        """Digest of the newest version."""
        return text_digest(self.skill)

    def ids(self, split: str) -> list[str]:
        """Return the item ids of `train` or `selection`, in order."""
        return [item["item"] for item in self.start.get(split, [])]

    def latest(self, *types: str) -> Event | None:
        """Return the newest event of one of `types` in this step."""
        return next((event for event in reversed(self.seen) if event.type in types), None)


State = TypeVar("State", bound=RunState)


def evolve(state: State, event: Event) -> State:
    """Return the state after `event`.

    Raises:
        FaultError: names the event whose text cannot be rebuilt.
    """
    documents, others = _documents(state, event), _others(state, event)
    changes: Changes = {"last": event, "seen": (*state.seen, event)}
    return replace(state, **(changes | documents | others))


def rebuilt(state: State, event: Event) -> State:
    """Return the state after `event` as far as documents go; raises as `evolve`."""
    changes = _documents(state, event)
    return replace(state, **changes) if changes else state


def _documents(state: RunState, event: Event) -> Changes:
    """Return what `event` changes of the documents."""
    if event.type not in DOCUMENTS or state.broken is not None:
        return {}
    data = event.data
    if event.type == "run.started":
        text = _checked(event, data["seed_skill"]["text"], data["seed_skill"]["digest"])
        return {"skill": text, "parent": text, "best_skill": text}
    if event.type == "method.chosen":
        return {"documents": {text_digest(state.skill): state.skill}}
    if event.type == "parents.chosen":
        return {"parent": _chosen(state, event)}
    if event.type == "candidate.built":
        text = _built(state, event)
        pool = state.documents
        documents = pool if pool is None else {**pool, data["candidate"]: text}
        return {"candidate": text, "documents": documents}
    made = state.parent if data["candidate"] is None else state.candidate
    if made is None:
        raise FaultError(event.name, "there is no candidate")
    text = _checked(event, made, data["digest"])
    newest = {"skill": text, "parent": text, "version": data["version"], "candidate": None}
    best = {"best_skill": text, "best_version": data["version"]} if data["best"] else {}
    return newest | best


# What versions are rebuilt from.
DOCUMENTS = (
    "run.started",
    "method.chosen",
    "parents.chosen",
    "candidate.built",
    "skill.versioned",
)


def _built(state: RunState, event: Event) -> str:
    data = event.data
    _checked(event, state.parent, data["parent"])
    text = data.get("text")
    if text is None:
        try:
            text = patched(state.parent, data["diff"])
        except FaultError as error:
            raise FaultError(event.name, str(error)) from error
    return _checked(event, text, data["candidate"])


def _chosen(state: RunState, event: Event) -> str:
    pool = {} if state.documents is None else state.documents
    wanted = [member["digest"] for member in event.data["parents"]]
    unknown = [digest for digest in wanted if digest not in pool]
    if unknown:
        raise FaultError(event.name, f"no document so far has digest {unknown[0][:12]}")
    return pool[wanted[0]]


def _checked(event: Event, text: str, digest: str) -> str:
    found = text_digest(text)
    if found != digest:
        raise FaultError(
            event.name,
            f"the text rebuilt from the log has digest {found[:12]}, recorded is {digest[:12]}",
        )
    return text


def _others(state: RunState, event: Event) -> Changes:
    """Return what `event` changes beside the documents."""
    data, type = event.data, event.type
    if type == "run.started":
        return {"start": data}
    if type == "rollouts.scored":
        return _rolled_out(state, event)
    if type in CARRIERS:
        return {"patches": {**state.patches, data["patch"]: event}}
    if type == "method.chosen":
        return {"measured": {state.digest: state.scores}}
    if type == "parents.chosen":
        return {"seen": (event,)}
    if type == "candidate.built":
        fate = "rejected" if "rejected_before" in data else "no_change"
        guided = data["source"] == "slow_update"
        return {"candidate_scores": {}} | ({"guidance_fate": fate} if guided else {})
    if type == "gate.judged":
        return _judged(state, event)
    if type == "skill.versioned" and data["candidate"] is not None and state.candidate_scores:
        scores, pooled = state.candidate_scores, state.documents is not None
        changes = {"scores": scores} | ({"best_scores": scores} if data["best"] else {})
        measured = {**state.measured, data["digest"]: scores}
        return changes | ({"measured": measured} if pooled else {})
    if type == "step.ended":
        accepted = data["result"] == "accepted"
        return _begun(state) | {
            "ended": state.ended + Counter([data["result"]]),
            "totals": state.totals + Counter(data["counts"]),
            "stalled": 0 if accepted else state.stalled + 1,
        }
    return {"meta_skill": data["text"]} if type == "meta_skill.written" else {}


def _begun(state: RunState, *events: Event) -> Changes:
    """Return what changes when a step begins or has ended, which `events` are of already."""
    return {"seen": events} | ({"patches": {}} if state.documents is None else {})


def _rolled_out(state: RunState, event: Event) -> Changes:
    data = event.data
    purpose, rows = data["purpose"], data["items"]
    changes: Changes = {}
    if purpose == "baseline":
        scores = scores_of(rows)
        lost = _with_shortfall(state, rows)
        return {"scores": scores, "best_scores": scores, "shortfall": lost}
    if purpose == "selection":
        return {"candidate_scores": scores_of(rows)}
    if purpose == "train" and state.documents is None:
        changes = _begun(state, event)
        if data["epoch"] != state.epoch:
            changes |= {"epoch": data["epoch"], "epoch_skill": state.skill}
    if purpose == "train":
        changes["batches"] = state.batches + 1
    if purpose == "fitness" and "split" not in data:
        changes["fitness"] = {**state.fitness, data["skill"]: scores_of(rows)}
    if purpose in ("train", "demonstrations") or "fitness" in changes:
        known, skill = state.last_soft, data["skill"]
        soft = {r["item"]: r["soft"] for r in rows if r["outcome"] != Outcome.MISSING.value}
        left = {id: known[id][1] for id in soft if known.get(id, (skill,))[0] != skill}
        changes |= {
            "rolled_out": state.rolled_out | {row["item"] for row in rows},
            "last_soft": {**known, **{id: (skill, one) for id, one in soft.items()}},
            "earlier_soft": {**state.earlier_soft, **left},
        }
    return changes


def _judged(state: RunState, event: Event) -> Changes:
    data, scored = event.data, state.latest("rollouts.scored")
    changes: Changes = {}
    if data["source"] == "slow_update":
        changes["guidance_fate"] = data["verdict"]
    if data["verdict"] == "rejected" and "split" not in data:
        verdict = Rejection(event.seq, data["current"], state.scores)
        changes["rejected"] = {**state.rejected, data["candidate"]: verdict}
    if scored is not None and scored.data["purpose"] == "selection":
        changes["shortfall"] = _with_shortfall(state, scored.data["items"])
    return changes


def _with_shortfall(state: RunState, rows: Iterable[Row]) -> dict[str, Fraction]:
    total = dict(state.shortfall)
    for row in rows:
        if row["hard"] is not None:
            case = case_of(row)
            lost = total.get(case, _NOTHING)
            total[case] = lost if row["hard"] == 1 else lost + _lacking(row["hard"])
    return total


@lru_cache(maxsize=1 << 12)  # scores are few, and fractions slow
def _lacking(hard: float) -> Fraction:
    return 1 - Fraction(hard)
