"""`skilltrail init`: a workspace in your own git repository."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from skilltrail.cli.options import JSON
from skilltrail.runtime.console import emit, emit_json, say
from skilltrail.runtime.template import Upgrade, init_workspace, upgrade_workspace
from skilltrail.store.place import find_place


def init(
    folder: Annotated[
        Path | None, typer.Option("--dir", help="A subfolder to write into; made if need be.")
    ] = None,
    example: Annotated[bool, typer.Option(help="Bring the default items along.")] = False,
    env: Annotated[str, typer.Option(help="Whose items --example brings.")] = "textqa",
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Let this workspace stand for the library here.")
    ] = False,
    as_json: JSON = False,
) -> None:
    """Write a workspace: pipeline, params, pages, seeds; nothing is written over.

    Example: skilltrail init --example && dvc repro
    """
    if upgrade:
        done = upgrade_workspace(find_place().workspace)
        emit_json(asdict(done)) if as_json else tell(done)
        return
    place = Path.cwd() if folder is None else Path.cwd() / folder
    written = init_workspace(place, env if example else None)
    if as_json:
        emit_json({"folder": "." if folder is None else folder.as_posix(), "files": written})
        return
    for name in written:
        emit(name)
    into = "" if folder is None else f"cd {shlex.quote(folder.as_posix())} && "
    items = "" if example else "put your items under data/ and name them in params.yaml, then "
    say(f"next: {items}{into}git add . && git commit -m 'A skill workspace' && dvc repro")


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
