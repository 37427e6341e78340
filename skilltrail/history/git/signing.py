"""Anchors: what to publish, or to sign, so that a run's history cannot be rewritten unseen.

A run's last commit covers all of its events. Whoever can rewrite store, refs and log together
can make a history that is right in itself; a hash that stands where he cannot write, or a tag
that he cannot sign, tells it from the first one.
"""

from __future__ import annotations

from dataclasses import dataclass

from skilltrail.core.errors import UsageError
from skilltrail.history.git.branches import tips_of
from skilltrail.history.git.ref_names import RUNS
from skilltrail.history.git.repository import Git, GitError

TAGS = "refs/tags/evolution-anchor/"
_MESSAGE = (
    "Anchor of the run {run}\n\nWhat this run had come to when it was signed.\n\n{lines}\n"
)


@dataclass(frozen=True)
class Anchor:
    """A commit to publish: what it is the last one of, and the ref that holds it."""

    what: str
    commit: str
    ref: str


def anchors_of(git: Git, run: str) -> list[Anchor]:
    """Return the last commits of a run's training and of its evaluations.

    Raises:
        UsageError: there is no such run.
        FaultError: its commits are damaged.
    """
    if RUNS + run not in git.refs(RUNS):
        known = ", ".join(name.removeprefix(RUNS) for name in git.refs(RUNS))
        remedy = f"One of {known}" if known else "`skilltrail rebuild` makes them from the logs"
        raise UsageError(f"run {run!r}", "refs/evolution holds no such run", remedy)
    tips = tips_of(git, run)
    return [
        Anchor("training", tips.training, RUNS + run),
        *(Anchor("evaluation", tip, ref) for ref, tip in sorted(tips.evaluations.items())),
    ]


def can_sign(git: Git) -> bool:
    """Return whether the person here has told git which key to sign with."""
    return git.ask("config", "--get", "user.signingkey") is not None


def sign(git: Git, run: str, anchors: list[Anchor], name: str | None) -> str:
    """Make git's own signed tag on the run's tip and return its name.

    A tag that stands already and says the same is left as it is.

    Raises:
        GitError: git could not sign, or another tag has that name.
    """
    tip = git.resolve(RUNS + run)
    tag = f"{TAGS}{run}/{tip[:12]}" if name is None else f"refs/tags/{name}"
    short = tag.removeprefix("refs/tags/")
    lines = "\n".join(f"{one.what} {one.commit} {one.ref}" for one in anchors)
    message = _MESSAGE.format(run=run, lines=lines)
    if git.refs(tag):
        if git.resolve(tag) == tip and lines in git.run("cat-file", "tag", tag).decode():
            return short
        raise GitError(f"tag {short}", "stands on something else", "Give --tag another name")
    try:
        git.here("tag", "--sign", "--message", message, short, tip)
    except GitError as error:
        remedy = "Set user.signingkey (and gpg.format) of git, or publish the hash"
        raise GitError(f"Signing {short}", error.found, remedy) from error
    return short
