"""From a tree to a section of params: every fault noted, the origin of each value kept.

A key that no section has is told the nearest one: by what other tools call it, by its last
part, or by spelling.
"""

from __future__ import annotations

import difflib
from typing import Any

from skilltrail.core.errors import ParamError
from skilltrail.params.fields import Params
from skilltrail.params.knob import Mismatch, convert, fields_of, found, knobs_of
from skilltrail.params.tree import Node, ParamFault

# Names that the reference implementation and other optimizers use for our knobs.
OTHER_NAMES = {
    "num_epochs": "epochs", "learning_rate": "lr", "edit_budget": "lr",
    "min_learning_rate": "lr_min", "min_edit_budget": "lr_min", "lr_scheduler": "lr_schedule",
    "gate_metric": "gate.metric", "gate_mixed_weight": "gate.mixed_weight",
    "eval_test": "evaluate.enabled", "skill_init": "skill.seed", "split_ratio": "data.ratio",
    "split_seed": "data.split_seed", "split_dir": "data.split_dir", "data_path": "data.path",
    "train_size": "data.limit.train", "sel_env_num": "data.limit.selection",
    "test_env_num": "data.limit.test", "target_model": "target.model", "steps": "epochs",
    "optimizer_model": "optimizer.model", "target_backend": "target.backend",
    "optimizer_backend": "optimizer.backend", "environment": "env", "batch": "batch_size",
    "judge_model": "judge.model", "judge_backend": "judge.backend",
    "judge_max_completion_tokens": "judge.max_tokens",
    "skill_update_mode": "update_mode", "lr_control_mode": "lr_schedule",
    "use_slow_update": "slow_update.enabled", "slow_update_samples": "slow_update.samples",
    "slow_update_gate_with_selection": "slow_update.mode",
    "longitudinal_pair_policy": "slow_update.pairs", "use_meta_skill": "meta_skill.enabled",
    "use_skill_aware_reflection": "skill_aware.enabled",
    "skill_aware_appendix_source": "skill_aware.source",
    "skill_aware_consolidate_threshold": "skill_aware.consolidate_over",
    "analyst_workers": "optimizer.workers", "failure_only": "reflect.success",
    "minibatch_size": "reflect.minibatch_size", "max_api_workers": "target.workers",
    "rewrite_reasoning_effort": "optimizer.stages.rewrite.effort",
    "rewrite_max_completion_tokens": "optimizer.stages.rewrite.max_tokens",
    "max_completion_tokens": "target.max_tokens", "reasoning_effort": "target.effort",
}  # fmt: skip


class SectionReader:
    """Builds sections from a tree, noting faults, the origin and the line of each key."""

    def __init__(self, faults: list[ParamFault]) -> None:
        self.faults = faults
        self.origins: dict[str, str] = {}
        self.lines: dict[str, int | None] = {}

    def fault(self, key: str, message: str, line: int | None) -> None:
        self.faults.append(ParamFault(key, message, line))

    def section(self, cls: type, node: Node, prefix: str, origin: str) -> Any:
        """Return an instance of `cls`; a field with a fault keeps its default."""
        if node.value is None:
            return cls()
        if not isinstance(node.value, dict):
            self.fault(
                prefix.rstrip("."), f"expected a mapping, found {found(node)}", node.line
            )
            return cls()
        values: dict[str, Any] = {}
        known = {field.key: field for field in fields_of(cls, prefix)}
        for name, entry in node.value.items():
            key = f"{prefix}{name}"
            self.lines[key] = entry.line
            if key not in known:
                self.unknown(cls, key, prefix, entry.line)
            elif known[key].is_section:
                values[name] = self.section(known[key].type, entry, f"{key}.", origin)
            else:
                try:
                    values[name] = convert(entry, known[key])
                    self.origins[key] = origin
                except Mismatch as mismatch:
                    self.fault(key, str(mismatch), entry.line)
        return self.checked(cls, values, prefix.rstrip("."), node.line)

    def checked(self, cls: type, values: dict[str, Any], key: str, line: int | None) -> Any:
        """Return `cls(**values)`, asked by its own `check(key)` too where it has one."""
        try:
            made = cls(**values)
            if hasattr(made, "check"):
                made.check(key)
        except ParamError as error:
            reported = {fault.key for fault in self.faults}
            if error.asked not in reported:
                message = f"{error.found}; {error.remedy}" if error.remedy else error.found
                self.fault(error.asked, message, self.lines.get(error.asked, line))
        except ValueError as error:
            self.fault(key, str(error), line)
        else:
            return made
        return cls()

    def unknown(self, cls: type, key: str, prefix: str, line: int | None) -> None:
        keys = [knob.key for knob in knobs_of(cls, prefix)]
        if prefix and not prefix.startswith("envs."):
            keys += [knob.key for knob in knobs_of(Params)]
        self.fault(key, f"no such key{nearest(key, keys)}", line)


def nearest(key: str, keys: list[str]) -> str:
    """Return `; the nearest is ...`, by meaning, by last part or by spelling."""
    last = key.rpartition(".")[2]
    other = OTHER_NAMES.get(key, OTHER_NAMES.get(last))
    if other in keys:
        return f"; here it is called {other}"
    same = [one for one in keys if one.rpartition(".")[2] == last]
    close = same or difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    if not close:
        lasts = {one.rpartition(".")[2]: one for one in reversed(keys)}
        near = difflib.get_close_matches(last, list(lasts), n=1, cutoff=0.5)
        close = [lasts[one] for one in near]
    if close:
        return f"; the nearest is {close[0]}"
    return "; there are " + ", ".join(keys) if 0 < len(keys) <= 12 else ""
