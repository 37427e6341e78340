"""Where a text stands: facts, splits, logs, commits, outputs, caches, a person's own files.

What is found is cleaned in memory with the same rules by which it is written later, so that a
dry run says what will happen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from skilltrail.core import schemas
from skilltrail.core.canon import cleaned, digest, loaded
from skilltrail.core.eraser import Eraser
from skilltrail.core.errors import FaultError
from skilltrail.core.item import SPLITS
from skilltrail.core.layout import BEST_SKILL, EVENTS
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.data.splits import FOLDER as SPLITS_FOLDER
from skilltrail.history.git import erasing as in_git
from skilltrail.history.git.repository import Git
from skilltrail.history.log.erasure import Cleaning
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import chained
from skilltrail.models.protocol import Reply, Request
from skilltrail.runtime.erase.dvc import cached_files
from skilltrail.runtime.erase.packed import is_packed, packed_holds, repositories_in
from skilltrail.runtime.outputs import TEST_ROLLOUTS, TRAIN_ROLLOUTS
from skilltrail.store import database
from skilltrail.store.erasing import dirty_lines, dirty_rows
from skilltrail.store.place import STATE, Place
from skilltrail.store.protocol import Fact

EXPORTS = (TRAIN_ROLLOUTS, TEST_ROLLOUTS)
# Written by stages and by DVC, so never a person's own. Facts and splits are known by parts.
BY_PARTS = (f"{SPLITS_FOLDER.as_posix()}/*.jsonl", "data/rollouts/*")
WHOLE = (
    EVENTS.as_posix(), BEST_SKILL.as_posix(), f"{SPLITS_FOLDER.as_posix()}/manifest.json",
    "reports/out/*", f"{STATE}/*", ".dvc/tmp/*", "dvc_plots/*",
)  # fmt: skip
# Git's, DVC's cache and the store are cleaned by themselves; software and weights hold nothing
# of a run; a key that is still in use stays where it is read from.
LEFT_OUT = (".git", ".venv", "node_modules", ".models", "__pycache__")
PASSED_OVER = (
    ".git", ".env", ".dvc/cache/*", f"{STATE}/{database.FILE}*", f"{STATE}/store.lock"
)  # fmt: skip
_PARAMS = "params.yaml"  # names the event that a fork goes on from
_HEX = re.compile(rb"[0-9a-f]{64}")
PACKED = "packed file, never written over: delete it, or make it anew"
LINKED = "linked work tree: erase there too, or `git worktree remove` it"


@dataclass(frozen=True)
class Found:
    """One place that holds the text. `own`: it is a person's own."""

    place: str
    what: str
    own: bool = False


class TextSearch:
    """Looks for one text in a project; changes nothing."""

    def __init__(self, place: Place, text: str) -> None:
        self.place, self.eraser = place, Eraser(text)
        self.git = Git.at_hand(place.root)
        self.store = place.state / database.FILE

    @cached_property
    def facts(self) -> list[Fact]:
        """The facts of store and exports that hold the text, each once."""
        found = {fact.key: fact for fact in dirty_rows(self.store, self.eraser.holds)}
        for folder in EXPORTS:
            lines = dirty_lines(self.place.workspace / folder, self.eraser.holds)
            found |= {fact.key: fact for fact in lines}
        return list(found.values())

    def clean_fact(self, fact: Fact) -> Fact:
        return Fact.of(fact.kind, fact.key, cleaned(self.eraser.value(loaded(fact.text))))

    @cached_property
    def splits(self) -> dict[str, list[Any]]:
        """The records of each split that holds the text."""
        found = {}
        for name in SPLITS:
            path = self.place.workspace / SPLITS_FOLDER / f"{name}.jsonl"
            data = path.read_bytes() if path.is_file() else b""
            if self.eraser.holds(data):
                found[name] = [loaded(line) for line in data.split(b"\n") if line]
        return found

    @cached_property
    def logs(self) -> dict[Path, list[Event]]:
        """The events of every log file of a run, and of an evaluation."""
        patterns = ("runs/*/events.jsonl*", "evaluations/*/*.jsonl*")
        live = [path for one in patterns for path in sorted(self.place.state.glob(one))]
        own = self.place.workspace / EVENTS
        read = {path: events_of(path.read_bytes()) for path in (own, *live) if path.is_file()}
        return {path: events for path, events in read.items() if events is not None}

    @cached_property
    def branches(self) -> dict[str, list[list[Event]]]:
        """The logs of each side branch: its training's and its evaluation's."""
        return {} if self.git is None else in_git.side_branches(self.git)[0]

    @cached_property
    def dirty(self) -> set[str]:
        """The objects of git that hold the text."""
        return set() if self.git is None else in_git.dirty_objects(self.git, self.eraser.holds)

    @cached_property
    def cleaning(self) -> Cleaning:
        """How names change, told from every log; a fork's log names an event of another."""
        names, items = dict[str, str](), set[str]()
        for record in chain(*self.splits.values()):
            clean = self.eraser.value(record)
            if clean != record:
                names[digest("item/1", record)] = digest("item/1", clean)
                items.add(clean["id"])
        found = Cleaning(self.eraser, {fact.key for fact in self.facts}, items, names)
        known = -1
        while known < len(names):
            known = len(names)
            for log in (*self.logs.values(), *chain(*self.branches.values())):
                with suppress(FaultError):  # one that has no versions is a file as any other
                    found.log(log)
        return found

    @cached_property
    def names(self) -> dict[str, str]:
        """What files name otherwise now: a run, that is the last event of its training, too."""
        ends = {old: event.id for old, event in self.cleaning.ends.items()}
        return {old: new for old, new in (self.cleaning.names | ends).items() if old != new}

    def clean(self, data: bytes) -> bytes:
        """Return a file's content cleaned: as a log where it is one."""
        events = events_of(data)
        if events is not None:
            with suppress(FaultError):
                return b"".join(event.line + b"\n" for event in self.cleaning.log(events))
        return self.plain(data)

    def plain(self, data: bytes) -> bytes:
        """Return any other file's content cleaned."""
        return _HEX.sub(
            lambda match: self.names.get(match[0].decode(), match[0].decode()).encode(),
            self.eraser.data(data),
        )

    @cached_property
    def files(self) -> dict[Path, str]:
        """The files that change as a whole, by their path in the project."""
        found = {}
        for path, name in self._walk():
            data = path.read_bytes()
            if is_packed(data):
                continue
            follows = name == _PARAMS or matches(name, WHOLE)
            if self.eraser.holds(data) or (follows and self.clean(data) != data):
                found[path] = name
        return found

    @cached_property
    def packed(self) -> dict[str, bool | None]:
        """Archives and databases that hold the text, and, as None, those nobody can read."""
        found: dict[str, bool | None] = {}
        for path, name in self._walk():
            data = path.read_bytes()
            held = packed_holds(data, self.eraser.holds) if is_packed(data) else False
            if held is not False:
                found[name] = held
        return found

    @cached_property
    def nested(self) -> list[str]:
        """Repositories inside the project, such as what a killed experiment left of its own."""
        return repositories_in(self.place.workspace, LEFT_OUT)

    def _walk(self) -> Iterator[tuple[Path, str]]:
        """Yield every file to look into, with its path in the project."""
        here, root = self.place.workspace, self.place.root
        for folder, top in ((here, here), *(((root / STATE, root),) if root != here else ())):
            for path in _files_in(folder):
                name = path.relative_to(top).as_posix()
                if not matches(name, (*PASSED_OVER, *BY_PARTS)):
                    yield path, name

    def find(self) -> list[Found]:
        """Return every place that holds the text.

        Raises:
            UsageError: it is a word of the records' own form.
            FaultError: a fact or an export is damaged.
        """
        if self.facts or self.logs:
            self.eraser.refuse_words(record_words())
        rows = [Found("facts", f"{len(self.facts)} recorded")] if self.facts else []
        for name, records in self.splits.items():
            held = sum(self.eraser.value(record) != record for record in records)
            rows.append(Found(f"split {name}", f"{held} of {len(records)} items"))
        for path, name in self.files.items():
            if path in self.logs:
                rows += self._in_log(name, self.logs[path])
            else:
                rows.append(Found(name, "file", not follows_a_run(name)))
        for name, held in self.packed.items():
            rows += [Found(name, PACKED, own=True)] if held else []
        for ref, logs in self.branches.items():
            rows += [row for log in logs for row in self._in_log(ref, log)]
        cached = list(cached_files(self.place.workspace, self.eraser.holds))
        rows += [Found("DVC's cache", f"{len(cached)} files, deleted")] if cached else []
        return [*rows, *self._in_git()]

    def _in_log(self, name: str, events: Sequence[Event]) -> Iterator[Found]:
        with suppress(FaultError):
            clean = self.cleaning.log(events)
            same = sum(a.id == b.id for a, b in zip(events, clean, strict=False))
            if same < len(events):
                last = events[-1].seq
                what = f"log, chained anew from event {events[same].seq} of {last} on"
                yield Found(name, what)
            elif len(clean) > same:
                yield Found(name, "log, a tombstone is added")

    def _in_git(self) -> Iterator[Found]:
        if self.git is None:
            return
        if self.dirty:
            yield Found(".git", f"{len(self.dirty)} objects")
        for tree in in_git.other_trees(self.git, self.dirty):
            yield Found(str(tree), LINKED, own=True)
        for path in in_git.messages(self.git, self.eraser.holds):
            yield Found(
                f".git/{path.relative_to(self.git.git_dir).as_posix()}", "file", own=True
            )
        for ref in in_git.holders(self.git, self.dirty, *in_git.EXPERIMENTS):
            yield Found(ref, "commits of an experiment, written anew")
        for ref in in_git.holders(self.git, self.dirty, *in_git.OWN, *in_git.OTHERS):
            yield Found(ref, "commits", own=True)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted, without going where nothing is looked for."""
    for name, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in LEFT_OUT)
        yield from (path for one in sorted(files) if not (path := Path(name, one)).is_symlink())


def follows_a_run(name: str) -> bool:
    """True for a file that stages write, or whose only part that changes is a run's name."""
    return name == _PARAMS or matches(name, WHOLE)


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def events_of(data: bytes) -> list[Event] | None:
    """Return the events of a log or an evaluation's, None of any other file."""
    if not data.startswith(b'{"data":') or not data.endswith(b"\n"):
        return None
    try:
        events = list(chained(data.split(b"\n")[:-1], "", continues=True))
        for event in events:
            _ = event.data
    except FaultError:
        return None
    return events


def record_words() -> set[str]:
    """Return the words that facts and events are written in: names of fields and of choices."""
    found = set(schemas.names("events"))
    todo: list[Any] = [schemas.load(f"events/{name}") for name in found]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            found |= set(one.get("properties", {})) | set(map(str, one.get("enum", ())))
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    for part in (Trajectory((Turn("", ""),), "").to_json(), Request(prompt="").to_json()):
        found |= set(part) | set(part.get("turns", [{}])[0]) | set(part.get("decoding", {}))
    return found | set(Reply("").to_json())
