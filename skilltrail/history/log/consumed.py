"""The params that a run consumed, read off its events under their names in params.yaml.

An event carries each param it consumed, and no other; so a param that is not found here had no
part in the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from skilltrail.core.canon import digest
from skilltrail.core.targets import targets_in
from skilltrail.history.log import types
from skilltrail.history.log.events import Event, Said
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.parts import ItemDigest, Source

CONSUMED_IN = 8  # a param is told by one of the first events of its type
Reader = tuple[str, Callable[[Event], Any]]


def _judge(said: types.RunStarted, name: str) -> Any:
    return None if said.judge is None else said.judge.model.get(name)


def _mode(said: types.CandidateBuilt) -> str | None:
    return said.mode if said.source is Source.STEP else None


def _several(target: Mapping[str, Any]) -> str | None:
    """Return several targets in words, with weight and floor."""
    told = (f"{t.name} (weight {t.weight:g}, floor {t.floor:g})" for t in targets_in(target))
    words = ", ".join(told)
    return words if words else None


def _in(kind: type[Said], read: Callable[[Said], Any]) -> Reader:
    return types.type_of(kind), lambda event: read(event.read(kind))


# param -> what events of a type say of it; None = nothing
_READERS: Mapping[str, Reader] = {
    "env": _in(types.RunStarted, lambda said: said.env),
    "seed": _in(types.RunStarted, lambda said: said.seed),
    "skill.seed": _in(types.RunStarted, lambda said: said.seed_skill.digest[:12]),
    "skill.parent": _in(types.RunStarted, lambda said: said.parent),
    "skill.frontmatter": _in(types.CandidateBuilt, lambda said: said.frontmatter),
    "target.backend": _in(types.RunStarted, lambda said: said.target.get("backend")),
    "target.model": _in(types.RunStarted, lambda said: said.target.get("model")),
    "targets": _in(types.RunStarted, lambda said: _several(said.target)),
    "judge.backend": _in(types.RunStarted, lambda said: _judge(said, "backend")),
    "judge.model": _in(types.RunStarted, lambda said: _judge(said, "model")),
    "judge.threshold": _in(
        types.RunStarted, lambda said: getattr(said.judge, "threshold", None)
    ),
    "method": _in(types.MethodChosen, lambda said: said.method),
    "stop.calls": _in(types.RunFinished, lambda said: said.calls),
    "batch_size": _in(types.RolloutsScored, lambda said: getattr(said.batch, "size", None)),
    "accumulation": _in(
        types.RolloutsScored, lambda said: getattr(said.batch, "accumulation", None)
    ),
    "lr": _in(types.BudgetDecided, lambda said: said.lr),
    "lr_min": _in(types.BudgetDecided, lambda said: said.lr_min),
    "lr_schedule": _in(types.BudgetDecided, lambda said: said.schedule),
    "lr_phase": _in(types.BudgetDecided, lambda said: said.phase),
    "lr_rounding": _in(types.BudgetDecided, lambda said: said.rounding),
    "lr_warmup": _in(types.BudgetDecided, lambda said: said.warmup),
    "update_mode": _in(types.CandidateBuilt, _mode),
    "gate.rule": _in(types.GateJudged, lambda said: said.rule.split("/")[0]),
    "gate.metric": _in(types.GateJudged, lambda said: said.metric),
    "gate.mixed_weight": _in(types.GateJudged, lambda said: said.mixed_weight),
    "gate.alpha": _in(types.GateJudged, lambda said: said.alpha),
    "gate.tolerance": _in(types.GateJudged, lambda said: said.tolerance),
    "gate.prefer_shorter": _in(types.GateJudged, lambda said: said.prefer_shorter),
    "gate.min_items": _in(types.GateJudged, lambda said: said.min_items),
    "gate.repeats": _in(types.GateJudged, lambda said: said.repeats),
    "slow_update.samples": _in(types.SlowUpdateCompared, lambda said: said.samples),
    "slow_update.pairs": _in(types.SlowUpdateCompared, lambda said: said.policy),
    "slow_update.mode": _in(types.SlowUpdateProposed, lambda said: said.mode),
    "patience": _in(types.RunFinished, lambda said: said.patience),
}


def consumed_items(events: Sequence[Event]) -> dict[str, str]:
    """Return the number and digest of the items of both splits, as `data.train` and so on."""
    if not events or events[0].type != "run.started":
        return {}
    said = events[0].read(types.RunStarted)
    return {
        "data.train": items_text(said.train),
        "data.selection": items_text(said.selection),
    }


def items_text(rows: Sequence[ItemDigest]) -> str:
    """Return the number and the digest of a split's items, as events name them."""
    return f"{len(rows)} items, {digest('items/1', to_builtins(rows))[:8]}"


def consumed_params(events: Sequence[Event]) -> dict[str, Any]:
    """Return param -> value, of those that the run consumed; decoding as `target.decoding`."""
    log = RunLog(events)
    found: dict[str, Any] = {}
    for name, (type, read) in _READERS.items():
        for event in log.of_type(type)[:CONSUMED_IN]:
            value = read(event)
            if value is not None:
                found[name] = value
                break
    if events:
        found.setdefault("method", "skillopt")  # which needs no event that says so
    for own in log.told(types.MethodChosen)[:1]:
        found |= {f"methods.{own.method}.{name}": v for name, v in own.settings.items()}
    ends = log.told(types.RunFinished)
    # A run that something else ended would have been the same with any more epochs.
    early = ("patience", "calls", "candidates", "full_score")
    if ends and ends[0].why not in early:
        for ended in log.of_type("step.ended")[-1:]:
            found["epochs"] = ended.read(types.StepEnded).epoch
    return found
