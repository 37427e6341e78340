"""How a stage is run: errors become one message, signals keep what was paid for.

A stage never exits 0 on a signal, because DVC would then commit half a result.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar

from skilltrail.core.errors import Interrupted, SkilltrailError
from skilltrail.core.files import refused
from skilltrail.history.git.head import head_of
from skilltrail.history.git.repository import Git
from skilltrail.history.git.under_way import under_way
from skilltrail.runtime.console import complain, say
from skilltrail.runtime.last_lock import keep_lock
from skilltrail.store.place import Place, find_place

T = TypeVar("T")
STOPPED_BY = (signal.SIGINT, signal.SIGTERM)


def run_stage(main: Callable[[], Coroutine[Any, Any, None]]) -> NoReturn:
    """Run `main` to its end and leave the process with its exit code."""
    try:
        place = find_place()
        keep_lock(place)
        with told_detached(place):
            asyncio.run(until_stopped(main()))
    except (SkilltrailError, OSError) as error:
        told = refused(error) if isinstance(error, OSError) else error
        complain(told)
        sys.exit(told.exit_code)
    sys.exit(0)


async def aside(work: Callable[[], T]) -> T:
    """Return what `work` does in a thread, so that a signal ends the wait at once.

    The thread is left behind then, and ends with the process: for work whose files are
    written whole or not at all.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_it: Callable[[Any], None], what: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(lambda: None if done.done() else set_it(what))

    def run() -> None:
        try:
            tell(done.set_result, work())
        except Exception as error:  # noqa: BLE001 (raised where it is awaited)
            tell(done.set_exception, error)

    threading.Thread(target=run, daemon=True).start()
    return await done


def stopped_by() -> tuple[signal.Signals, ...]:
    """Return the signals that stop a run; `nohup` means that a hangup is none of them."""
    kept_on = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return STOPPED_BY if kept_on else (*STOPPED_BY, signal.SIGHUP)


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Await `work`; a signal of `stopped_by` cancels it.

    Raises:
        Interrupted: a signal came; what was finished by then is kept.
    """
    task = asyncio.ensure_future(work)
    came: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        came.append(number)
        task.cancel()

    loop, numbers = asyncio.get_running_loop(), stopped_by()
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not came:
            raise
        raise Interrupted(
            f"Stopped by {came[0].name}",
            "every finished call is kept",
            "Run the same command again to resume",
        ) from None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextmanager
def told_detached(place: Place) -> Iterator[None]:
    """Say before and after the body that HEAD is on no branch, where that is so here."""
    words = None if place.is_temporary else _where_head_is(place)
    if words is not None:
        say("; ".join(words))
    try:
        yield
    finally:
        if words is not None:
            say(words[0])


def _where_head_is(place: Place) -> tuple[str, str] | None:
    git = Git.at_hand(place.root)
    head = None if git is None else head_of(git)
    if head is None or not head.detached:
        return None
    branch = "its branch" if head.left is None else head.left
    if place.experiment is not None:
        way = f"dvc puts it back on {branch} when it ends, `skilltrail back` after a kill"
        return f"HEAD is detached (experiment {place.experiment})", way
    busy = under_way(git)
    if busy is not None:
        return f"HEAD is detached: {busy.found}", busy.remedy
    back = f"`skilltrail back` puts it back on {branch}"
    if head.by_person or head.left is None:  # theirs to move
        back = f"`git switch {head.left or 'BRANCH'}` puts it on one"
    return "HEAD is detached, on no branch", back
