"""A stage says that HEAD is on no branch: DVC detaches it while an experiment runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from skilltrail.history.git.head import head_of
from skilltrail.history.git.repository import Git
from skilltrail.runtime.console import say
from skilltrail.store.place import Place


@contextmanager
def told_detached(place: Place) -> Iterator[None]:
    """Say before and after the body that HEAD is on no branch, where that is so here."""
    words = None if place.is_temporary else _words(place)
    if words is not None:
        say("; ".join(words))
    try:
        yield
    finally:
        if words is not None:
            say(words[0])


def _words(place: Place) -> tuple[str, str] | None:
    git = Git.at_hand(place.root)
    head = None if git is None else head_of(git)
    if head is None or not head.detached:
        return None
    branch = "its branch" if head.left is None else head.left
    if place.experiment is not None:
        way = f"dvc puts it back on {branch} when it ends, `skilltrail back` after a kill"
        return f"HEAD is detached (experiment {place.experiment})", way
    return "HEAD is detached, on no branch", f"`skilltrail back` puts it back on {branch}"
