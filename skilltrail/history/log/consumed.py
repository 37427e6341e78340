"""The params that a run consumed, read off its events under their names in params.yaml.

An event carries each param it consumed, and no other; so a param that is not found here had no
part in the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skilltrail.core.canon import digest
from skilltrail.core.targets import targets_in
from skilltrail.history.log.events import Event

Data = Mapping[str, Any]
CONSUMED_IN = 8  # a param is told by one of the first events of its type


def _judge(data: Data) -> Mapping[str, Any]:
    judge: Mapping[str, Any] = data.get("judge", {})
    return judge


def _several(target: Data) -> str | None:
    """Return several targets in words, with weight and floor."""
    told = (f"{t.name} (weight {t.weight:g}, floor {t.floor:g})" for t in targets_in(target))
    words = ", ".join(told)
    return words if words else None


# param -> (event type, what the event says of it; None = nothing)
_READERS: Mapping[str, tuple[str, Callable[[Data], Any]]] = {
    "env": ("run.started", lambda data: data["env"]),
    "seed": ("run.started", lambda data: data["seed"]),
    "skill.seed": ("run.started", lambda data: data["seed_skill"]["digest"][:12]),
    "skill.parent": ("run.started", lambda data: data["parent"]),
    "skill.frontmatter": ("candidate.built", lambda data: data.get("frontmatter")),
    "target.backend": ("run.started", lambda data: data["target"].get("backend")),
    "target.model": ("run.started", lambda data: data["target"].get("model")),
    "targets": ("run.started", lambda data: _several(data["target"])),
    "judge.backend": ("run.started", lambda data: _judge(data).get("model", {}).get("backend")),
    "judge.model": ("run.started", lambda data: _judge(data).get("model", {}).get("model")),
    "judge.threshold": ("run.started", lambda data: _judge(data).get("threshold")),
    "method": ("method.chosen", lambda data: data["method"]),
    "stop.calls": ("run.finished", lambda data: data.get("calls")),
    "batch_size": ("rollouts.scored", lambda data: data.get("batch", {}).get("size")),
    "accumulation": ("rollouts.scored", lambda data: data.get("batch", {}).get("accumulation")),
    "lr": ("budget.decided", lambda data: data.get("lr")),
    "lr_min": ("budget.decided", lambda data: data.get("lr_min")),
    "lr_schedule": ("budget.decided", lambda data: data["schedule"]),
    "lr_phase": ("budget.decided", lambda data: data.get("phase")),
    "lr_rounding": ("budget.decided", lambda data: data.get("rounding")),
    "lr_warmup": ("budget.decided", lambda data: data.get("warmup")),
    "update_mode": (
        "candidate.built",
        lambda data: data["mode"] if data["source"] == "step" else None,
    ),
    "gate.rule": ("gate.judged", lambda data: data["rule"].split("/")[0]),
    "gate.metric": ("gate.judged", lambda data: data["metric"]),
    "gate.mixed_weight": ("gate.judged", lambda data: data.get("mixed_weight")),
    "gate.alpha": ("gate.judged", lambda data: data.get("alpha")),
    "gate.tolerance": ("gate.judged", lambda data: data.get("tolerance")),
    "gate.prefer_shorter": ("gate.judged", lambda data: data.get("prefer_shorter")),
    "gate.min_items": ("gate.judged", lambda data: data.get("min_items")),
    "gate.repeats": ("gate.judged", lambda data: data.get("repeats")),
    "slow_update.samples": ("slow_update.compared", lambda data: data["samples"]),
    "slow_update.pairs": ("slow_update.compared", lambda data: data["policy"]),
    "slow_update.mode": ("slow_update.proposed", lambda data: data["mode"]),
    "patience": ("run.finished", lambda data: data.get("patience")),
}


def consumed_items(events: Sequence[Event]) -> dict[str, str]:
    """Return the number and digest of the items of both splits, as `data.train` and so on."""
    if not events or events[0].type != "run.started":
        return {}
    started = events[0].data
    return {f"data.{split}": told_items(started[split]) for split in ("train", "selection")}


def told_items(rows: Sequence[Data]) -> str:
    """Return the number and the digest of a split's items, as events name them."""
    return f"{len(rows)} items, {digest('items/1', rows)[:8]}"


def consumed_params(events: Sequence[Event]) -> dict[str, Any]:
    """Return param -> value, of those that the run consumed; decoding as `target.decoding`."""
    first: dict[str, list[Event]] = {}
    for event in events:
        first.setdefault(event.type, []).append(event)
    found: dict[str, Any] = {}
    for name, (type, read) in _READERS.items():
        for event in first.get(type, [])[:CONSUMED_IN]:
            value = read(event.data)
            if value is not None:
                found[name] = value
                break
    if first:
        found.setdefault("method", "skillopt")  # which needs no event that says so
    for event in first.get("method.chosen", [])[:1]:
        own = event.data
        found |= {f"methods.{own['method']}.{name}": v for name, v in own["settings"].items()}
    ends = first.get("run.finished", [])
    # A run that something else ended would have been the same with any more epochs.
    if ends and ends[0].data["why"] not in ("patience", "calls", "candidates", "full_score"):
        steps = [event.data["epoch"] for event in first.get("step.ended", [])[-1:]]
        found |= {"epochs": steps[0]} if steps else {}
    return found
