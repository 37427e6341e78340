"""The side branch: keeps a run's commits in step with its event log.

The log is the truth and is durable first; commits follow in batches through one `git
fast-import` stream (0.3 ms a commit, against 8-24 ms one by one). A batch that fails or is
killed leaves at most objects without a ref, and the next one starts from where the ref stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from skilltrail.history.git.branches import run_holding
from skilltrail.history.git.commits import AUTHOR, Commit, Committing, commits_of
from skilltrail.history.git.ref_names import (
    EVALUATIONS,
    RUNS,
    VERSIONS,
    Placement,
    evaluation_refs,
    place,
    ref_label,
    run_refs,
)
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
        self.ref: str | None = None

    @property
    def name(self) -> str | None:
        """The run's name, None before its first commit is placed."""
        return None if self.ref is None else self.ref.removeprefix(RUNS)

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
                self._door.drop_stale_locks(RUNS, VERSIONS, EVALUATIONS)
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
            event.forget()  # of a long run what was read takes several times the bytes
            self._index[commit.sha] = len(self._chain)
            self._chain.append(commit.sha)
            self._events.append(event)
            self._pending.append(commit)
            if commit.version is not None:
                self._versions[commit.version] = commit.sha

    def _write(self, *, loose: bool) -> None:
        refs = self._door.refs(RUNS, VERSIONS, EVALUATIONS)
        wanted = self._wanted(refs)
        placement = place(wanted, self._chain, self._index, refs, self._history)
        new = self._commits_after(placement)
        if new:
            parent = None if placement.written == 0 else self._chain[placement.written - 1]
            stream = import_stream(new, placement.ref, parent)
            self._door.fast_import(stream, loose=loose)
            self._check(placement.ref)
        self._door.update_refs(self._missing_versions(placement.ref, refs))
        self.ref = placement.ref

    def _wanted(self, refs: Mapping[str, str]) -> Iterator[str]:
        """Yield the refs that these commits may go to, the best first."""
        return run_refs(self._label, refs)

    def _check(self, ref: str) -> None:
        found = self._door.refs(ref).get(ref)
        if found not in self._index:
            raise GitError(ref, f"is at {found} after the import, not at {self.tip}")

    def _commits_after(self, placement: Placement) -> list[Commit]:
        first_pending = len(self._chain) - len(self._pending)
        if placement.written >= first_pending:
            return self._pending[placement.written - first_pending :]
        return list(commits_of(self._events, self._format))[placement.written :]

    def _missing_versions(self, run: str, refs: Mapping[str, str]) -> Iterator[str]:
        for number, sha in self._versions.items():
            ref = f"{VERSIONS}{run.removeprefix(RUNS)}/v{number}"
            if ref not in refs:
                yield f"create {ref} {sha}"

    def _history(self, tip: str) -> list[str]:
        if tip not in self._histories:
            self._histories[tip] = self._door.history(tip)
        return self._histories[tip]


class EvaluationBranch(SideBranch):
    """A `Projection` of an evaluation's log: its commits go on from those of its training.

    Args:
        training: the events that it follows; none where a skill was measured without a run.
        apart: a person asked for it; the run's own ref does not move, see `evaluation_refs`.
    """

    def __init__(
        self, door: Git, label: str, training: Sequence[Event], *, apart: bool
    ) -> None:
        super().__init__(door, label)
        self._training, self._apart = training, apart
        self._run: str | None = None

    def flush(self, events: Sequence[Event]) -> None:
        """Commit what is new at once: an opening of the test split shall not wait."""
        self.close(events)

    def _feed(self, events: Sequence[Event]) -> None:
        super()._feed([*self._training, *events])
        if self._run is None:
            self._run = self._named()

    def _named(self) -> str:
        """Return the name of the run evaluated, which gets its ref where it has none."""
        name = ref_label(self._label)
        if not self._training:
            return name
        held = run_holding(self._door, self._chain[len(self._training) - 1], name)
        if held is not None:
            return held
        side = SideBranch(self._door, self._label)
        side.close(self._training)
        assert side.name is not None
        return side.name

    def _wanted(self, refs: Mapping[str, str]) -> Iterator[str]:
        assert self._run is not None
        return evaluation_refs(self._run, apart=self._apart or not self._training)

    def _missing_versions(self, run: str, refs: Mapping[str, str]) -> Iterator[str]:
        return iter(())


def import_stream(commits: Iterable[Commit], ref: str, parent: str | None) -> Iterator[bytes]:
    """Yield a `git fast-import` stream that puts `commits` on `ref` after `parent`."""
    yield b"feature done\n"
    files: dict[str, bytes] | None = None
    for commit in commits:
        stamp = f"{AUTHOR} {commit.date} +0000"
        yield f"commit {ref}\nauthor {stamp}\ncommitter {stamp}\n".encode()
        yield data_block(commit.message.encode())
        if files is None:
            if parent is not None:
                yield f"from {parent}\n".encode()
            yield b"deleteall\n"
            files = {}
        for name, content in commit.files.items():
            if files.get(name) is not content:
                yield f"M 100644 inline {name}\n".encode() + data_block(content)
        for name in files.keys() - commit.files.keys():
            yield f"D {name}\n".encode()
        yield b"\n"
        files = commit.files
    yield b"done\n"


def data_block(content: bytes) -> bytes:
    """Return a block of data of a `git fast-import` stream."""
    return f"data {len(content)}\n".encode() + content + b"\n"
