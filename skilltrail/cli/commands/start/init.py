"""`skilltrail init`: a workspace in your own git repository, from your data or an example."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from skilltrail.cli.options import JSON
from skilltrail.core.errors import UsageError
from skilltrail.runtime.console import emit, emit_json, say
from skilltrail.runtime.template import Upgrade, init_workspace, upgrade_workspace
from skilltrail.store.place import find_place

DATA = Annotated[
    Path | None,
    typer.Option(
        help="Your items: CSV, TSV, JSONL, JSON, XLSX, a `datasets` folder, "
        "promptfoo tests, an Inspect log."
    ),
]
SKILL = Annotated[Path | None, typer.Option(help="Your skill to start from.")]
TARGET = Annotated[
    str | None, typer.Option(help="Model to train for, as in openai:gpt-4o-mini.")
]
OPTIMIZER = Annotated[
    str | None, typer.Option(help="Model that proposes edits; rules = embedded.")
]
YES = Annotated[bool, typer.Option("--yes", help="Ask nothing.")]
COLUMN = Annotated[
    list[str] | None, typer.Option(help="A column's role, as in question=Frage.")
]
SCORER = Annotated[
    str | None, typer.Option(help="A scorer of `qa`, in place of the one chosen.")
]
RATIO = Annotated[str | None, typer.Option(help="train:selection:test; default near 1:1:1.")]
FOLDER = Annotated[
    Path | None, typer.Option("--dir", help="A subfolder to write into; made if need be.")
]
EXAMPLE = Annotated[bool, typer.Option(help="Bring the default items along.")]
ENV = Annotated[str | None, typer.Option(help="The environment; of --example: textqa.")]
UPGRADE = Annotated[
    bool, typer.Option("--upgrade", help="Let this workspace stand for the library here.")
]


def init(
    data: DATA = None,
    skill: SKILL = None,
    target: TARGET = None,
    optimizer: OPTIMIZER = None,
    yes: YES = False,
    column: COLUMN = None,
    scorer: SCORER = None,
    ratio: RATIO = None,
    folder: FOLDER = None,
    example: EXAMPLE = False,
    env: ENV = None,
    upgrade: UPGRADE = False,
    as_json: JSON = False,
) -> None:
    """Write a workspace: pipeline, params, pages, seeds; nothing is written over.

    With --data, from your items: columns, environment, scorer and splits are found and told.
    Given again with a longer file, old items keep their split.

    Example: skilltrail init --data questions.csv --yes && dvc repro
    Example: skilltrail init --data questions.csv --skill SKILL.md --target openai:gpt-4o-mini
    Example: skilltrail init --example && dvc repro
    """  # fmt: skip
    if upgrade:
        done = upgrade_workspace(find_place().workspace)
        emit_json(done) if as_json else tell(done)
        return
    place = Path.cwd() if folder is None else Path.cwd() / folder
    if data is not None:
        from skilltrail.cli import own_data, starting

        ask = None if yes or as_json or not sys.stdin.isatty() else ask_column
        wanted = own_data.Wanted(data, env, scorer, ratio, _columns(column))
        start = starting.Start(wanted, place, skill, target, optimizer)
        starting.start(start, agree(yes=yes or as_json), ask, json=as_json)
        return
    _refuse_without_data(
        skill=skill, target=target, optimizer=optimizer, column=column, scorer=scorer,
        ratio=ratio,
    )  # fmt: skip
    bring = ("textqa" if env is None else env) if example else None
    written = init_workspace(place, bring)
    if as_json:
        emit_json({"folder": "." if folder is None else folder.as_posix(), "files": written})
    else:
        _tell_written(written, folder, example=example)


def _tell_written(written: Sequence[str], folder: Path | None, *, example: bool) -> None:
    for name in written:
        emit(name)
    into = "" if folder is None else f"cd {shlex.quote(folder.as_posix())} && "
    items = "" if example else "put your items under data/ and name them in params.yaml, then "
    say(f"next: {items}{into}git add . && git commit -m 'A skill workspace' && dvc repro")


def _refuse_without_data(**said: object) -> None:
    """Refuse what only `--data` reads.

    Raises:
        UsageError: one of them was said.
    """
    for name, value in said.items():
        if value is not None:
            raise UsageError(f"--{name}", "it goes with --data", "Name your items: --data FILE")


def _columns(said: Sequence[str] | None) -> dict[str, str]:
    """Return role -> column of `question=Frage`.

    Raises:
        UsageError: no such role.
    """
    from skilltrail.data.intake.columns import ROLES

    found = {}
    for one in said or ():
        role, equals, name = one.partition("=")
        if role not in ROLES or not equals:
            raise UsageError(f"--column {one}", "not ROLE=NAME", f"Roles: {', '.join(ROLES)}")
        found[role] = name
    return found


def ask_column(role: str, names: Sequence[str]) -> str:
    """Ask a person which column has a role."""
    say(f"columns: {', '.join(names)}")
    while True:
        found = str(typer.prompt(f"Which one is the {role}?", err=True)).strip()
        if found in names:
            return found
        say(f"there is no column {found!r}")


def agree(*, yes: bool) -> Any:
    """Return what asks a person for a yes; with `yes` nobody is asked.

    Raises (when called):
        UsageError: nobody is there to ask.
    """

    def asked(question: str, remedy: str) -> None:
        if yes:
            return
        if not sys.stdin.isatty():
            raise UsageError(question, "not interactive", f"Use --yes, or {remedy}")
        typer.confirm(question, default=True, abort=True, err=True)

    return asked


def tell(done: Upgrade) -> None:
    """Say what an upgrade changed and what runs again."""
    for name in done.written:
        emit(f"written anew: {name}")
    for name in done.left:
        emit(f"edited by you, so left: {name} (the new text is {name}.new)")
    before = "an unknown library" if done.before is None else done.before.version
    if done.before is not None and done.before.code == done.now.code and not done.written:
        emit(f"skilltrail {done.now.version}: nothing changed that could change a result")
        return
    emit(
        f"skilltrail {before} -> {done.now.version}: every stage runs again at the next "
        "`dvc repro`; no recorded call is lost, and what did not change is reused"
    )
