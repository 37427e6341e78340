"""Transfer: what a finished skill gains on other targets than the one it was trained on.

`evaluate.targets` names further roles. Each skill is rolled out on each of them over the same
items; a skill's gain there (over the seed skill, item by item) is set against its gain on the
training target:

    share carried over = gain there / gain on the training target

Its 95 % interval is Fieller's for a ratio of two paired means (`skilltrail.core.stats`). It is
absent when the gain on the training target is not clear of 0: any share would then fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.core.share import share_of
from skilltrail.method.gate import GateRule
from skilltrail.method.rollout import Rollout
from skilltrail.params.fields import Params
from skilltrail.params.model_options import RoleOptions

GGUF = ".gguf"


def target_named(params: Params, name: str) -> RoleOptions:
    """Return the role that a person named: one of `evaluate.targets`, or a GGUF file.

    Raises:
        UsageError: it is neither.
    """
    roles: Mapping[str, RoleOptions] = params.evaluate.roles
    if name in roles:
        return roles[name]
    if name.endswith(GGUF):
        return RoleOptions(model=name)
    known = ", ".join(roles) if roles else "none so far"
    raise UsageError(
        f"--target {name}",
        "no such target",
        f"Name one of evaluate.targets in params.yaml ({known}) or a .gguf file",
    )


def transfer_ratio(
    rule: GateRule,
    home: tuple[Sequence[Rollout], Sequence[Rollout]],
    there: tuple[Sequence[Rollout], Sequence[Rollout]],
) -> dict[str, Any]:
    """Return the share of the gain that carries over, with its interval.

    `home` and `there` hold the rollouts of (seed skill, skill) on the training target and on
    the other one, over the same items in the same order.
    """
    return share_of(*([rule.value(one.score) for one in done] for done in (*home, *there)))
