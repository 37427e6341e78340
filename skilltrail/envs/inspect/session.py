"""One evaluation of Inspect that stays open while rollouts come.

Inspect runs one evaluation per process at a time. So a rollout hands its sample to the one that
is open, as a source of samples does, and waits for its result; an evaluation that has been idle
for a moment ends, and the next rollout opens another.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
import warnings
from contextvars import Context, copy_context
from pathlib import PurePosixPath
from typing import Any

from skilltrail.core.errors import DataError
from skilltrail.skill.folder import MAIN, files_of

# Before the first import: nothing of Inspect's own display, and no trace file in a home.
# Inspect packs and removes that file at exit: named /dev/null, root would lose the device.
_TRACES = tempfile.TemporaryDirectory(prefix="skilltrail-inspect-")
os.environ.setdefault("INSPECT_DISPLAY", "none")
os.environ.setdefault("INSPECT_TRACE_FILE", f"{_TRACES.name}/trace.log")
# What its display, which shows nothing here, still had to draw when the last rollout ended.
warnings.filterwarnings("ignore", r"coroutine 'throttle\.", RuntimeWarning)

from inspect_ai import SampleSource, Task, enqueue_sample, eval_async, task_with  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.log import EvalSample  # noqa: E402
from inspect_ai.model import ChatMessageSystem  # noqa: E402
from inspect_ai.solver import Generate, Solver, TaskState, chain, solver  # noqa: E402
from inspect_ai.util import display_type, sandbox  # noqa: E402

from skilltrail.envs.inspect.provider import MARK, Door, RolloutCalls, calls_here, calls_of  # noqa: E402

_IDLE_S = 1.0
_MOST_AT_ONCE = 10_000  # our own models say how many calls may be in flight
display_type()  # takes it from the environment; an evaluation would choose for itself


class SampleRunner(SampleSource):
    """Runs samples of one task in one event loop.

    Args:
        task: the task, made for this session; its data set gives way to the samples that come.
        skill_path: where in the sandbox the skill is written; "" = it is the system message.
    """

    def __init__(self, task: Task, skill_path: str) -> None:
        self.loop = asyncio.get_running_loop()
        self._skill_path = skill_path
        self._task, self._solver, self._setup = task, task.solver, task.setup
        self._door = Door.of_target()
        self._waiting: dict[str, tuple[str, asyncio.Future[EvalSample]]] = {}
        self._queue: asyncio.Queue[Sample] = asyncio.Queue()
        self._inside: Context | None = None
        self._open: asyncio.Task[Any] | None = None

    def next_id(self) -> str:
        """Return an id that no other sample bears."""
        return uuid.uuid4().hex

    async def run(self, sample: Sample, skill: str, calls: RolloutCalls) -> EvalSample:
        """Return what became of a sample whose agent was told `skill`.

        Raises:
            DataError: the evaluation itself failed.
        """
        done: asyncio.Future[EvalSample] = self.loop.create_future()
        id = str(sample.id)
        self._waiting[id] = (skill, done)
        calls_of[id] = calls
        try:
            self._hand_over(sample)
            return await done
        finally:
            del self._waiting[id], calls_of[id]
            if not self._waiting and done.cancelled() and self._open is not None:
                self._open.cancel()

    def _hand_over(self, sample: Sample) -> None:
        if self._inside is not None:
            self._inside.run(enqueue_sample, sample)
            return
        self._queue.put_nowait(sample)
        if self._open is None or self._open.done():
            self._open = self.loop.create_task(self._evaluations())
            self._open.add_done_callback(self._ended)

    async def _evaluations(self) -> None:
        """Evaluate until nothing more comes; what came while one ended needs another."""
        while not self._queue.empty():
            await self._evaluate()

    async def _evaluate(self) -> None:
        """Let Inspect run what comes until it has been idle for a moment."""
        before = [] if self._setup is None else self._setup
        setup = [before] if isinstance(before, Solver) else list(before)
        task = task_with(
            self._task,
            dataset=self,
            setup=chain([_begin(self), *setup]),
            solver=chain([self._solver, _end()]),
            model=self._door,
            model_roles={},
            epochs=1,
            fail_on_error=False,
        )
        try:
            with tempfile.TemporaryDirectory(prefix="skilltrail-inspect-") as folder:
                logs = await eval_async(
                    [task],
                    model=self._door,
                    log_dir=folder,
                    log_level="critical",
                    log_realtime=False,
                    log_model_api=False,
                    fail_on_error=False,
                    score_display=False,
                    ctl_server=False,
                    max_samples=_MOST_AT_ONCE,
                )
        finally:
            self._inside = None
        if logs[0].error is not None:
            raise _failed(logs[0].error.message)

    def _ended(self, open: asyncio.Task[None]) -> None:
        """Tell those who still wait that nothing more will come."""
        raised = None if open.cancelled() else open.exception()
        if not isinstance(raised, DataError):
            raised = _failed(
                "it ended before the sample did" if raised is None else repr(raised)
            )
        for _, done in self._waiting.values():
            if not done.done():
                done.set_exception(raised)

    def initial_samples(self) -> list[Sample]:
        """Return nothing: samples come as rollouts ask."""
        return []

    async def next_samples(self) -> list[Sample] | None:
        """Return what has come; None after a moment without any."""
        self._inside = None
        try:
            found = [await asyncio.wait_for(self._queue.get(), _IDLE_S)]
        except asyncio.TimeoutError:
            return None
        while not self._queue.empty():
            found.append(self._queue.get_nowait())
        self._inside = copy_context()
        return found

    async def sample_complete(self, sample: EvalSample) -> list[Sample] | None:
        """Hand the result to the rollout that waits for it."""
        waiting = self._waiting.get(str(sample.id))
        if waiting is not None and not waiting[1].done():
            waiting[1].set_result(sample)
        return None

    async def begin(self, state: TaskState) -> None:
        """Say whose calls these are, and show the agent its skill."""
        skill, _ = self._waiting[str(state.sample_id)]
        state.store.set(MARK, str(state.sample_id))
        if self._skill_path:
            base = PurePosixPath(self._skill_path).parent
            for name, text in files_of(skill).items():
                place = self._skill_path if name == MAIN else str(base / name)
                await sandbox().write_file(place, text)
        elif skill.strip():
            state.messages.insert(0, ChatMessageSystem(content=skill))


def _failed(found: str) -> DataError:
    return DataError("The Inspect task", found, "Mend the task")


@solver
def _begin(session: SampleRunner) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await session.begin(state)
        return state

    return solve


@solver
def _end() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        calls_here().scoring = True
        return state

    return solve
