"""`skilltrail plan`: calls, tokens and money of a run before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from skilltrail.cli.forecast import PerCall, Phase, forecast, roles_of
from skilltrail.cli.options import JSON, SET_PARAM
from skilltrail.core.layout import EVENTS
from skilltrail.data.freeze import split_sizes
from skilltrail.history.log.events import read_all
from skilltrail.history.log.log import read_log
from skilltrail.history.log.types.outcomes import RolloutsScored
from skilltrail.models.client.prices import is_known, require_price
from skilltrail.params.fields import Params
from skilltrail.runtime.call_estimate import Size, transfer_role
from skilltrail.runtime.console import emit, emit_json, say, table
from skilltrail.runtime.workspace import changes_of, environment_of, params_with
from skilltrail.store.place import Place, find_place
from skilltrail.store.reader import open_reading

_MOST_READ = 500  # rollouts whose tokens are looked at


def plan(
    set_param: SET_PARAM = None,
    as_json: JSON = False,
    allow_unpriced: Annotated[
        bool, typer.Option(help="Forecast a money budget over an unknown price all the same.")
    ] = False,
) -> None:
    """Forecast the calls, tokens and cost of a run, by phase and role.

    Example: skilltrail plan -S lr=8 -S epochs=2
    """
    place = find_place()
    params = params_with(place.workspace, changes_of([] if set_param is None else set_param))
    if not allow_unpriced:
        for role in used_roles(params):
            require_price(role, roles_of(params)[role])
    env = environment_of(params)
    sizes = split_sizes(params, env, place.workspace)
    size = Size(sizes["train"], sizes["selection"], sizes["test"])
    measured = measured_tokens(recorded_usages(place))
    known = {} if measured is None else {"target": measured}
    found = forecast(params, size, known, env.most_calls())
    if as_json:
        totals = {role: found.totals(role) for role in used_roles(params)}
        emit_json(asdict(found) | {"totals": totals})
        return
    rows = [*found.phases, *(found.totals(role) for role in used_roles(params))]
    said = "typical sizes" if measured is None else f"{measured.recorded} recorded rollouts"
    emit(f"{found.steps} steps, as if nothing were cached; tokens of a target call from {said}")
    emit("Each cell: at least / likely / at most; retries not included")
    table(("phase", "role", "calls", "tokens", "USD"), [shown(row) for row in rows])
    for warning in found.warnings:
        say(f"warning: {warning}")


def used_roles(params: Params) -> tuple[str, ...]:
    """Return the roles of a run that call a model."""
    idle = () if params.evaluate.enabled else params.evaluate.roles
    return tuple(
        role
        for role in roles_of(params)
        if role not in map(transfer_role, idle)
        and not (role == "optimizer" and params.optimizer.backend == "rules")
    )


def shown(row: Phase) -> tuple[str, str, str, str, str]:
    """Return a row of the table."""
    usd = "unknown"
    if row.usd_high is not None:
        usd = _range(f"{one:.2f}" for one in (row.usd_low, row.usd_likely, row.usd_high))
    calls = _range(map(str, (row.calls_low, row.calls_likely, row.calls_high)))
    tokens = _range(map(str, (row.tokens_low, row.tokens_likely, row.tokens_high)))
    return row.phase, row.role, calls, tokens, usd


def _range(words: Iterable[str]) -> str:
    told = list(words)
    return told[0] if len(set(told)) == 1 else " / ".join(told)


def recorded_usages(place: Place) -> list[Mapping[str, int]]:
    """Return the usage of rollouts that the last run's log names, where the store has them."""
    log = place.workspace / EVENTS
    if not log.is_file():
        return []
    rolled_out = read_all(read_log(log), RolloutsScored)
    keys = [row.key for said in rolled_out for row in said.items if row.key is not None]
    with open_reading(place.root) as store:
        values = {} if store is None else store.get_many(keys[:_MOST_READ])
    return [value["trajectory"]["usage"] for value in values.values() if "trajectory" in value]


def measured_tokens(usages: Iterable[Mapping[str, int]]) -> PerCall | None:
    """Return tokens of a rollout as recorded: the mean, and the largest as the high end."""
    found = [(u["input"], u["output"]) for u in usages if is_known(u)]
    if not found:
        return None
    inputs, outputs = zip(*found, strict=True)
    mean = (sum(inputs) / len(found), sum(outputs) / len(found))
    return PerCall(mean, (float(max(inputs)), float(max(outputs))), len(found))
