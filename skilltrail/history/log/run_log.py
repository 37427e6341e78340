"""A log with an index: events by number, patches, edits and versions by their ids.

Ids name the event that carries the thing, so a lookup reads that event and no other. Nothing
here judges; `verify` says whether what is found is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from skilltrail.core.errors import UsageError
from skilltrail.history.log import types
from skilltrail.history.log.events import Event, Said
from skilltrail.history.log.evolve import CARRIERS, DOCUMENTS, edits_in
from skilltrail.history.log.replay import Version, named_version, versions
from skilltrail.history.log.rows import by_item
from skilltrail.history.log.types.parts import Purpose, RowScored
from skilltrail.skill.edit import Edit

JUDGED = (Purpose.BASELINE, Purpose.SELECTION)  # purposes of rollouts on the selection split


class RunLog:
    """One run's events, looked at from all sides."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self._first = events[0].seq if events else 1

    def at(self, seq: int) -> Event:
        """Return the event with this sequence number.

        Raises:
            UsageError: the log has none.
        """
        index = seq - self._first
        if not 0 <= index < len(self.events):
            raise UsageError(f"event {seq}", f"the log has {len(self.events)} events")
        return self.events[index]

    @cached_property
    def _by_type(self) -> dict[str, list[Event]]:
        found: defaultdict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.type].append(event)
        return found

    def of_type(self, *types: str) -> list[Event]:
        """Return the events of these types, in the order of the log."""
        found = [event for type in types for event in self._by_type.get(type, ())]
        return sorted(found, key=lambda event: event.seq) if len(types) > 1 else found

    def told(self, kind: type[Said]) -> list[Said]:
        """Return what the events of a class say, in the order of the log."""
        return [event.read(kind) for event in self.of_type(types.type_of(kind))]

    @cached_property
    def start(self) -> Event:
        """The `run.started` event.

        Raises:
            UsageError: the log does not begin with one.
        """
        if not self.events or self.events[0].type != "run.started":
            raise UsageError("this log", "does not begin with run.started")
        return self.events[0]

    def patch(self, id: str) -> Event:
        """Return the event that carries patch `id` (`p<seq>`).

        Raises:
            UsageError: there is no such patch.
        """
        for event in self.of_type(*CARRIERS):
            if id == f"p{event.seq}":
                return event
        remedy = "`skilltrail log --type patch.proposed` lists those that were proposed"
        raise UsageError(f"patch {id!r}", "the log has no such patch", remedy)

    def edit(self, id: str) -> Edit:
        """Return the edit with this id (`<seq>.<index>`).

        Raises:
            UsageError: there is no such edit.
        """
        seq, dot, index = id.partition(".")
        known = seq.isdigit() and 0 <= int(seq) - self._first < len(self.events)
        if dot and known and index.isdigit():
            event = self.at(int(seq))
            edits, said = edits_in(event), event.said
            if int(index) < len(edits):
                return Edit.of(edits[int(index)])
            if isinstance(said, types.CandidateBuilt) and said.text is not None:
                return self._rewritten(event, said.text, id)
        raise UsageError(f"edit {id!r}", "the log has no such edit", "See `skilltrail log`")

    def _rewritten(self, built: Event, text: str, id: str) -> Edit:
        """Return the edit that a whole new text is, made from the suggestions selected."""
        selected = self.before(built, "edits.selected")
        parents = () if selected is None else selected.read(types.EditsSelected).selected
        items = dict.fromkeys(item for one in parents for item in self.edit(one).items)
        return Edit("rewrite", content=text, items=tuple(items), id=id, parents=parents)

    def edits_of(self, candidate: Event) -> list[Edit]:
        """Return the edits that a `candidate.built` event tried, in order."""
        return [
            self.edit(result.edit) for result in candidate.read(types.CandidateBuilt).results
        ]

    def ancestry(self, id: str) -> Iterator[Edit]:
        """Yield the edit and, depth first, all edits that it was merged from."""
        edit = self.edit(id)
        yield edit
        for parent in edit.parents:
            yield from self.ancestry(parent)

    @cached_property
    def versions(self) -> list[Version]:
        """All versions by number, rebuilt from what made them.

        With a pool that is any document; else the candidates that became one.
        """
        if self.of_type("method.chosen"):
            return versions(self.of_type(*DOCUMENTS))
        made = {said.candidate for said in self.told(types.SkillVersioned)}
        some = self.of_type("run.started", "candidate.built", "skill.versioned")
        return versions(e for e in some if e.type != "candidate.built" or e.seq in made)

    def version(self, wanted: int | str) -> Version:
        """Return one version: a number, `seed`, `best` or `last`.

        Raises:
            UsageError: the log has no such version.
        """
        return named_version(self.versions, wanted)

    def built(self, digest: str, before: int) -> Event | None:
        """Return the last `candidate.built` event of a text before event `before`."""
        for event in reversed(self.of_type("candidate.built")):
            if event.seq < before and event.read(types.CandidateBuilt).candidate == digest:
                return event
        return None

    def before(self, event: Event, *types: str) -> Event | None:
        """Return the last event of one of `types` before `event`."""
        for index in range(event.seq - self._first - 1, -1, -1):
            if self.events[index].type in types:
                return self.events[index]
        return None

    @cached_property
    def best_means(self) -> dict[int, float | None]:
        """The gate metric of the best skill after each verdict, by the number of its event."""
        gates = self.told(types.GateJudged)
        best = gates[0].before if gates else None
        made = {said.gate for said in self.told(types.SkillVersioned) if said.best}
        found: dict[int, float | None] = {}
        for event, said in zip(self.of_type("gate.judged"), gates, strict=True):
            best = found[event.seq] = said.after if event.seq in made else best
        return found

    def step(self, number: int) -> list[Event]:
        """Return the events of one step, in order."""
        return [e for e in self.events if e.data.get("step") == number]

    def scores_before(self, gate: Event) -> dict[str, list[RowScored]]:
        """Return the current skill's rows that a `gate.judged` event compared with, by item."""
        return self._scores(gate.read(types.GateJudged).current, gate.seq)

    def scores(self, digest: str) -> dict[str, list[RowScored]]:
        """Return the rows of the last selection or baseline rollouts of a skill, by item."""
        return self._scores(digest, self._first + len(self.events))

    def _scores(self, digest: str, before: int) -> dict[str, list[RowScored]]:
        for event in reversed(self.of_type("rollouts.scored")):
            said = event.read(types.RolloutsScored) if event.seq < before else None
            if said is not None and said.skill == digest and said.purpose in JUDGED:
                return by_item(said.items)
        return {}
