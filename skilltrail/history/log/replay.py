"""Replay: every version of the skill, byte for byte, from the log alone.

Fold over the events: the seed text stands in `run.started`, each candidate is its parent plus
the recorded diff (or the recorded text in rewrite modes), a version is the candidate that the
gate let through. Each text is held against its recorded SHA-256, so a rebuilt version is either
right or named as a fault. No store, no model, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import FaultError, UsageError
from skilltrail.history.ask.patching import patched
from skilltrail.history.log.events import Event


@dataclass(frozen=True)
class Snapshot:
    """The documents as they stand after one event.

    Attributes:
        skill: the newest version's text.
        version: of that skill; None before version 0.
        candidate: text under judgement, at `candidate.built` and `gate.judged` only.
        best_version: version of the best skill.
    """

    event: Event
    skill: str
    best: str
    candidate: str | None
    version: int | None
    best_version: int | None


@dataclass(frozen=True)
class Version:
    """One version of the skill, with the event that made it."""

    number: int
    text: str
    event: Event

    @property
    def digest(self) -> str:
        digest: str = self.event.data["digest"]
        return digest


class Replay:
    """Folds events into documents, one event at a time."""

    def __init__(self) -> None:
        self._skill = self._best = self._newest = ""
        self._pool: dict[str, str] | None = None
        self._candidate: str | None = None
        self._version: int | None = None
        self._best_version: int | None = None

    @property
    def skill(self) -> str:
        """The document that candidates are made of, "" before the seed: the newest version, or
        the first parent that was chosen."""
        return self._skill

    def feed(self, event: Event) -> Snapshot:
        """Return the documents after `event`.

        Raises:
            FaultError: names the event whose text cannot be rebuilt.
        """
        shown = None
        if event.type == "run.started":
            self._skill = self._best = self._newest = _checked(
                event, event.data["seed_skill"]["text"], event.data["seed_skill"]["digest"]
            )
        elif event.type == "method.chosen":
            self._pool = {text_digest(self._skill): self._skill}
        elif event.type == "parents.chosen":
            self._choose(event)
        elif event.type == "candidate.built":
            shown = self._candidate = self._built(event)
        elif event.type == "gate.judged":
            shown = self._candidate
        elif event.type == "skill.versioned":
            self._advance(event)
        return Snapshot(
            event, self._newest, self._best, shown, self._version, self._best_version
        )

    def _built(self, event: Event) -> str:
        _checked(event, self._skill, event.data["parent"])
        text = event.data.get("text")
        if text is None:
            try:
                text = patched(self._skill, event.data["diff"])
            except FaultError as error:
                raise FaultError(event.name, str(error)) from error
        text = _checked(event, text, event.data["candidate"])
        if self._pool is not None:
            self._pool[event.data["candidate"]] = text
        return text

    def _choose(self, event: Event) -> None:
        pool = {} if self._pool is None else self._pool
        wanted = [member["digest"] for member in event.data["parents"]]
        unknown = [digest for digest in wanted if digest not in pool]
        if unknown:
            raise FaultError(event.name, f"no document so far has digest {unknown[0][:12]}")
        self._skill = pool[wanted[0]]

    def _advance(self, event: Event) -> None:
        text = self._skill if event.data["candidate"] is None else self._candidate
        if text is None:
            raise FaultError(event.name, "there is no candidate")
        self._skill = self._newest = _checked(event, text, event.data["digest"])
        self._version = event.data["version"]
        self._candidate = None
        if event.data["best"]:
            self._best, self._best_version = self._skill, self._version


def _checked(event: Event, text: str, digest: str) -> str:
    found = text_digest(text)
    if found != digest:
        raise FaultError(
            event.name,
            f"the text rebuilt from the log has digest {found[:12]}, recorded is {digest[:12]}",
        )
    return text


def snapshots(events: Iterable[Event]) -> Iterator[Snapshot]:
    """Yield the documents after each event."""
    replay = Replay()
    for event in events:
        yield replay.feed(event)


def versions(events: Iterable[Event]) -> list[Version]:
    """Return all versions, by number; damage after the last of them goes unseen."""
    return [
        Version(snapshot.event.data["version"], snapshot.skill, snapshot.event)
        for snapshot in snapshots(events)
        if snapshot.event.type == "skill.versioned"
    ]


def version_of(events: Iterable[Event], wanted: int | str) -> Version:
    """Return one version: a number, `seed`, `best` or `last`.

    Raises:
        UsageError: the log has no such version.
    """
    found = versions(events)
    if not found:
        raise UsageError(f"version {wanted}", "the log holds no version yet")
    if wanted == "last":
        return found[-1]
    if wanted == "best":
        return [version for version in found if version.event.data["best"]][-1]
    number = 0 if wanted == "seed" else int(wanted)
    for version in found:
        if version.number == number:
            return version
    raise UsageError(
        f"version {number}", f"the log holds 0 to {found[-1].number}", "Choose one of them"
    )
