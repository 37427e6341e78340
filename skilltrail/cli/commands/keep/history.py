"""`skilltrail history`: care for the many commits of long runs.

A run whose steps take long commits a few events at a time, which git keeps as a file for each
object, three an event: of tens of thousands every walk over the commits gets slow, and a push
slower still. `git gc` packs them too, with a wider search for deltas that saves no space here.
"""

from __future__ import annotations

from dataclasses import dataclass

import typer

from skilltrail.cli.commands.keep.refs import git_of
from skilltrail.cli.options import JSON
from skilltrail.cli.sources import project
from skilltrail.history.git.repository import Git
from skilltrail.runtime.console import emit, emit_json, say, table

# Versions of one file follow each other, so that the one before is nearly always the best base.
_FAST = ("--window=2", "--depth=50")


@dataclass(frozen=True)
class Objects:
    """What git keeps: objects in a file each, objects in packs, packs, bytes on the disk."""

    loose: int
    packed: int
    packs: int
    bytes: int

    @staticmethod
    def of(git: Git) -> Objects:
        lines = git.run("count-objects", "-v").decode().splitlines()
        told = {name: int(n) for name, n in (line.split(": ") for line in lines) if n.isdigit()}
        kib = told["size"] + told["size-pack"]
        return Objects(told["count"], told["in-pack"], told["packs"], 1024 * kib)


def compact(as_json: JSON = False) -> None:
    """Pack what git keeps in a file for each object; no commit, hash, ref or file changes.

    Safe beside a run: what it commits meanwhile is packed the next time.

    Example: skilltrail history compact
    """
    git = git_of(project(), "history compact")
    before = Objects.of(git)
    if before.loose:
        say(f"packing {before.loose} objects")
    git.run("repack", "-d", "-l", "-q", *_FAST)
    after = Objects.of(git)
    if after.packs:
        git.run("multi-pack-index", "write", "--no-progress")
        git.run("commit-graph", "write", "--reachable", "--no-progress")
    if as_json:
        emit_json({"before": before, "after": after})
        return
    rows = [(name, old, getattr(after, name)) for name, old in vars(before).items()]
    table(("git keeps", "before", "after"), rows, right=("before", "after"))
    if after.loose:
        emit(f"{after.loose} objects that no ref leads to stay; `git gc` drops them in time")


history = typer.Typer(no_args_is_help=True, help="Care for the commits of long runs.")
history.callback()(lambda: None)  # else one command would be the whole family
history.command("compact")(compact)
