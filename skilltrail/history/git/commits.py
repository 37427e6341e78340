"""Events as git commits: which objects an event becomes, as a pure function of the log.

Each event is one commit whose tree holds `event.json` (the log line), `skill.md`,
`best_skill.md`, and `candidate.md` while a candidate is on trial; a skill folder stands there
as a folder (`skill/SKILL.md`, `skill/references/…`). Author, dates and message follow from the
event, the parent is the commit of the event before, and the first has none. So
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from skilltrail.history.log.events import Event
from skilltrail.history.log.evolve import rebuilt
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.words import sentence
from skilltrail.skill.folder import parts_of

AUTHOR = "skilltrail <skilltrail@invalid>"
FIRST_DATE = 1_767_225_600  # 2026-01-01 00:00 UTC; event n is dated n seconds later
_MODE, _FOLDER = "100644", "40000"


@dataclass(frozen=True)
class Commit:
    """One event as a commit.

    Attributes:
        files: path -> content, the whole tree.
        version: number of the skill version that this commit makes, else None.
    """

    sha: str
    parent: str | None
    event: Event
    message: str
    files: dict[str, bytes]
    version: int | None

    @property
    def date(self) -> int:
        """Seconds since 1970, as author and committer date."""
        return FIRST_DATE + self.event.seq


class Committing:
    """Turns events into commits, one after the other.

    Args:
        object_format: `sha1` or `sha256`, the repository's.
    """

    def __init__(self, object_format: str = "sha1") -> None:
        self._format = object_format
        self._state = RunState()
        self._encoded: dict[str, tuple[bytes, bytes]] = {}
        self._parent: str | None = None

    def feed(self, event: Event) -> Commit:
        """Return the commit of the next event.

        Raises:
            FaultError: a document cannot be rebuilt from the log.
        """
        before = self._state.version
        self._state = rebuilt(self._state, event)
        files, tree = self._tree(event)
        message = _message(event, before, self._state.version)
        head = f"tree {tree}\n"
        if self._parent is not None:
            head += f"parent {self._parent}\n"
        stamp = f"{AUTHOR} {FIRST_DATE + event.seq} +0000"
        body = f"{head}author {stamp}\ncommitter {stamp}\n\n{message}".encode()
        made = self._state.version if event.type == "skill.versioned" else None
        commit = Commit(
            self._object("commit", body).hex(), self._parent, event, message, files, made
        )
        self._parent = commit.sha
        return commit

    def _tree(self, event: Event) -> tuple[dict[str, bytes], str]:
        line, state = event.line + b"\n", self._state
        texts = {"skill": state.skill, "best_skill": state.best_skill}
        judging = event.type in ("candidate.built", "gate.judged")
        if judging and state.candidate is not None:
            texts["candidate"] = state.candidate
        blobs = {"event.json": (line, self._object("blob", line))}
        for name, text in texts.items():
            parts = parts_of(text)
            for part in parts:
                path = f"{name}/{part.path}" if len(parts) > 1 else f"{name}.md"
                blobs[path] = self._document(part.text)
        files = {name: content for name, (content, _) in blobs.items()}
        return files, self._folder({name: blob for name, (_, blob) in blobs.items()}).hex()

    def _folder(self, blobs: Mapping[str, bytes]) -> bytes:
        """Return the tree of blobs by path; git sorts a folder as if its name ended in /."""
        below: dict[str, dict[str, bytes]] = {}
        entries: dict[str, bytes] = {}
        for path, blob in blobs.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = blob
            else:
                entries[name] = f"{_MODE} {name}\0".encode() + blob
        for name, inner in below.items():
            entries[f"{name}/"] = f"{_FOLDER} {name}\0".encode() + self._folder(inner)
        by_bytes = sorted(entries, key=str.encode)
        return self._object("tree", b"".join(entries[name] for name in by_bytes))

    def _document(self, text: str) -> tuple[bytes, bytes]:
        """Return a document's bytes and blob; it stays the same over many events."""
        known = self._encoded.get(text)
        if known is None:
            if len(self._encoded) > 16:
                self._encoded.clear()
            content = text.encode()
            known = self._encoded[text] = (content, self._object("blob", content))
        return known

    def _object(self, kind: str, content: bytes) -> bytes:
        digest = hashlib.new(self._format, usedforsecurity=False)
        digest.update(f"{kind} {len(content)}\0".encode() + content)
        return digest.digest()


def commits_of(events: Iterable[Event], object_format: str = "sha1") -> Iterator[Commit]:
    """Yield the commit of each event."""
    committing = Committing(object_format)
    for event in events:
        yield committing.feed(event)


def _message(event: Event, before: int | None, version: int | None) -> str:
    """Return a commit's message; the version is the newest before and after the event."""
    trailers = [f"Event: {event.id}", f"Event-Type: {event.type}"]
    step, patch = (getattr(event.said, name, None) for name in ("step", "patch"))
    if step is not None:
        trailers.append(f"Step: {step}")
    if version is not None:
        trailers.append(f"Skill-Version: {version}")
    if patch is not None:
        trailers.append(f"Patch: {patch}")
    return sentence(event, before) + "\n\n" + "\n".join(trailers) + "\n"
