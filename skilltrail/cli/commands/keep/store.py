"""`skilltrail store`: what is recorded, and care for it."""

from __future__ import annotations

from typing import Annotated

import typer

from skilltrail.cli.options import JSON
from skilltrail.runtime.console import emit, emit_json, table
from skilltrail.runtime.outputs import TEST_ROLLOUTS, TRAIN_ROLLOUTS
from skilltrail.store.facts import FactStore
from skilltrail.store.maintenance import release_claims, retry_missing, store_stats
from skilltrail.store.place import find_place

EXPORTS = (TRAIN_ROLLOUTS, TEST_ROLLOUTS)


def stats(as_json: JSON = False) -> None:
    """Show how many calls and rollouts are recorded, by kind, and their size.

    Example: skilltrail store stats
    """
    place = find_place()
    found = store_stats(place.root, [place.workspace / folder for folder in EXPORTS])
    if as_json:
        emit_json(found)
        return
    table(
        ("kind", "recorded", "bytes"),
        [(kind, count, found.value_bytes[kind]) for kind, count in found.rows.items()],
        right=("recorded", "bytes"),
    )
    emit(f"{found.file_bytes} bytes on disk, {found.claims} calls in progress")


def retry(as_json: JSON = False) -> None:
    """Drop recorded gaps, so that the next run tries their items again.

    Example: skilltrail store retry-missing
    """
    place = find_place()
    with FactStore.open(place.root) as facts:
        report = retry_missing(facts, [place.workspace / folder for folder in EXPORTS])
    if as_json:
        emit_json({"store": report.store, "exports": report.exports})
        return
    emit(f"{report.store} gaps dropped; `dvc repro` tries their items again")


def release(
    host: Annotated[str, typer.Argument(help="Name of the host whose runs are over.")],
    as_json: JSON = False,
) -> None:
    """Free the claims that a run on another host left behind.

    Example: skilltrail store release oldhost
    """
    with FactStore.open(find_place().root) as facts:
        count = release_claims(facts, host)
    if as_json:
        emit_json({"released": count})
        return
    emit(f"{count} claims of {host} freed")


store = typer.Typer(no_args_is_help=True, help="Show what is recorded, and care for it.")
store.command("stats")(stats)
store.command("retry-missing")(retry)
store.command("release")(release)
