"""One probe call for every role that calls a model: what `skilltrail doctor` says of it."""

from __future__ import annotations

import asyncio

from skilltrail.cli.checks import FAULT, OK, WARNING, Check
from skilltrail.cli.forecast import roles_of
from skilltrail.models.probe import ProbeResult, probe
from skilltrail.params.fields import Params
from skilltrail.params.model_options import EMBEDDED_BACKENDS


def probe_checks(params: Params) -> list[Check]:
    """Return a check of each role that has a model, made by one real call.

    The embedded model is checked by its file; a replay makes no call and a handoff none that a
    check should wait for: none of them is probed.
    """
    asked = {
        role: options
        for role, options in roles_of(params).items()
        if options.backend not in (*EMBEDDED_BACKENDS, "rules", "handoff", "replay")
    }

    async def all_of_them() -> list[ProbeResult]:
        return list(await asyncio.gather(*(probe(*pair) for pair in asked.items())))

    return [_check(result) for result in asyncio.run(all_of_them())] if asked else []


def _check(result: ProbeResult) -> Check:
    name = f"{result.role} model"
    if not result.ok:
        return Check(name, FAULT, result.problem, "See docs/models")
    said = [f"{result.answered} at {result.provider} answers"]
    if result.api:
        said.append(f"api {result.api}")
    said.append(f"abilities {', '.join(result.abilities) if result.abilities else 'none'}")
    if not result.priced:
        said.append(f"its price is unknown ({result.role}.price)")
    if result.warning:
        return Check(name, WARNING, "; ".join([*said, result.warning]))
    return Check(name, OK, "; ".join(said))
