"""The side branch: keeps a run's commits in step with its event log.

The log is the truth and is durable first; commits follow in batches through one `git
fast-import` stream (0.3 ms a commit, against 8-24 ms one by one). A batch that fails or is
killed leaves at most objects without a ref, and the next one starts from where the ref stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from skilltrail.history.git.commits import AUTHOR, Commit, Committing, commits_of
from skilltrail.history.git.ref_names import RUNS, VERSIONS, Placement, place
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.events import Event
from skilltrail.history.log.recorder import ProjectionError

ATTEMPTS = 40  # about 15 s in all
FIRST_WAIT_S, LONGEST_WAIT_S = 0.02, 0.5


class SideBranch:
    """A `Projection` of one run's log onto `refs/evolution/<run>`.

    Args:
        label: what the run is called (DVC experiment, git branch, or `detached`).
        every_s: least time between two batches; `close` does not wait for it.
        attempts, sleep: how often to try, and how to wait, while another process holds a lock.
    """

    def __init__(
        self,
        door: Git,
        label: str,
        *,
        every_s: float = 1.0,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._door = door
        self._label = label
        self._every_s = every_s
        self._attempts = attempts
        self._sleep = sleep
        self._format = door.object_format()
        self._committing = Committing(self._format)
        self._events: list[Event] = []
        self._chain: list[str] = []
        self._index: dict[str, int] = {}
        self._versions: dict[int, str] = {}
        self._pending: list[Commit] = []
        self._histories: dict[str, list[str]] = {}
        self._due_s = 0.0
        self.name: str | None = None

    @property
    def tip(self) -> str | None:
        """The commit of the last event fed: the run's fingerprint so far."""
        return self._chain[-1] if self._chain else None

    def flush(self, events: Sequence[Event]) -> None:
        """Commit what is new, if the last batch is `every_s` ago. See `Projection.flush`."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._catch_up(events)
        self._due_s = time.monotonic() + self._every_s

    def close(self, events: Sequence[Event]) -> None:
        """Commit what is new."""
        self._catch_up(events)

    def _catch_up(self, events: Sequence[Event]) -> None:
        self._feed(events)
        if not self._chain:
            return
        wait_s = FIRST_WAIT_S
        for attempt in range(1, self._attempts + 1):
            try:
                self._write(loose=attempt > 2)
            except GitError as error:
                if not error.busy or attempt == self._attempts:
                    raise ProjectionError(
                        "The commits of this run",
                        str(error),
                        "The event log is safe; `skilltrail rebuild` makes them again",
                    ) from error
                self._door.drop_stale_locks(RUNS, VERSIONS)
                self._sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            else:
                self._pending.clear()
                return

    def _feed(self, events: Sequence[Event]) -> None:
        """Take in new events; when the log was superseded, start over."""
        known = len(self._events)
        if known and (len(events) < known or events[known - 1].id != self._events[-1].id):
            self._committing = Committing(self._format)
            self._events, self._chain, self._pending = [], [], []
            self._index, self._versions = {}, {}
            known = 0
        for event in events[known:]:
            commit = self._committing.feed(event)
            self._index[commit.sha] = len(self._chain)
            self._chain.append(commit.sha)
            self._events.append(event)
            self._pending.append(commit)
            if commit.version is not None:
                self._versions[commit.version] = commit.sha

    def _write(self, *, loose: bool) -> None:
        refs = self._door.refs(RUNS, VERSIONS)
        placement = place(self._label, self._chain, self._index, refs, self._history)
        new = self._commits_after(placement)
        if new:
            ref = RUNS + placement.name
            parent = None if placement.written == 0 else self._chain[placement.written - 1]
            self._door.fast_import(import_stream(new, ref, parent), loose=loose)
            self._check(ref)
        self._door.update_refs(self._missing_versions(placement.name, refs))
        self.name = placement.name

    def _check(self, ref: str) -> None:
        found = self._door.refs(ref).get(ref)
        if found not in self._index:
            raise GitError(ref, f"is at {found} after the import, not at {self.tip}")

    def _commits_after(self, placement: Placement) -> list[Commit]:
        first_pending = len(self._chain) - len(self._pending)
        if placement.written >= first_pending:
            return self._pending[placement.written - first_pending :]
        return list(commits_of(self._events, self._format))[placement.written :]

    def _missing_versions(self, name: str, refs: dict[str, str]) -> Iterator[str]:
        for number, sha in self._versions.items():
            ref = f"{VERSIONS}{name}/v{number}"
            if ref not in refs:
                yield f"create {ref} {sha}"

    def _history(self, tip: str) -> list[str]:
        if tip not in self._histories:
            self._histories[tip] = self._door.history(tip)
        return self._histories[tip]


def import_stream(commits: Iterable[Commit], ref: str, parent: str | None) -> Iterator[bytes]:
    """Yield a `git fast-import` stream that puts `commits` on `ref` after `parent`."""
    yield b"feature done\n"
    files: dict[str, bytes] | None = None
    for commit in commits:
        stamp = f"{AUTHOR} {commit.date} +0000"
        yield f"commit {ref}\nauthor {stamp}\ncommitter {stamp}\n".encode()
        yield _data(commit.message.encode())
        if files is None:
            if parent is not None:
                yield f"from {parent}\n".encode()
            yield b"deleteall\n"
            files = {}
        for name, content in commit.files.items():
            if files.get(name) is not content:
                yield f"M 100644 inline {name}\n".encode() + _data(content)
        for name in files.keys() - commit.files.keys():
            yield f"D {name}\n".encode()
        yield b"\n"
        files = commit.files
    yield b"done\n"


def _data(content: bytes) -> bytes:
    return f"data {len(content)}\n".encode() + content + b"\n"
