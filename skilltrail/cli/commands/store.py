"""`skilltrail store`: what is recorded, and care for it."""

from __future__ import annotations

from typing import Annotated

import typer

from skilltrail.runtime.console import emit, emit_json, table
from skilltrail.runtime.outputs import TEST_ROLLOUTS, TRAIN_ROLLOUTS
from skilltrail.store.facts import FactStore
from skilltrail.store.maintenance import release_claims, retry_missing, store_stats
from skilltrail.store.place import find_place

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
EXPORTS = (TRAIN_ROLLOUTS, TEST_ROLLOUTS)


def register(app: typer.Typer) -> None:
    """Add the command with its three actions."""
    store = typer.Typer(
        no_args_is_help=True,
        help="Show what is recorded, and care for it.",
        add_completion=False,
    )
    store.command("stats")(stats)
    store.command("retry-missing")(retry)
    store.command("release")(release)
    app.add_typer(store, name="store")


def stats(as_json: AsJson = False) -> None:
    """Show how many calls and rollouts are recorded, by kind, and their size.

    Example: skilltrail store stats
    """
    place = find_place()
    found = store_stats(place.root, [place.workspace / folder for folder in EXPORTS])
    if as_json:
        emit_json(found.to_json())
        return
    table(
        ("kind", "facts", "bytes"),
        [(kind, count, found.value_bytes[kind]) for kind, count in found.rows.items()],
        right=("facts", "bytes"),
    )
    emit(f"{found.file_bytes} bytes on the disk, {found.claims} calls being made")


def retry(as_json: AsJson = False) -> None:
    """Drop recorded gaps, so that the next run tries their items again.

    Example: skilltrail store retry-missing
    """
    place = find_place()
    with FactStore.open(place.root) as store:
        report = retry_missing(store, [place.workspace / folder for folder in EXPORTS])
    if as_json:
        emit_json({"store": report.store, "exports": report.exports})
        return
    emit(f"{report.store} gaps dropped; `dvc repro` tries their items again")


def release(
    host: Annotated[str, typer.Argument(help="Name of the host whose runs are over.")],
    as_json: AsJson = False,
) -> None:
    """Free the claims that a run on another host left behind.

    Example: skilltrail store release oldhost
    """
    with FactStore.open(find_place().root) as store:
        count = release_claims(store, host)
    if as_json:
        emit_json({"released": count})
        return
    emit(f"{count} claims of {host} freed")
