"""Every knob of a run, typed and frozen: what `params.yaml` says once it has been read.

The common knobs are flat, the rest lie in small sections. `KNOBS` in the docs relates them to
the reference implementation's. Reading, checking and origins: `skilltrail.params.read`.

To add a knob: one line here or in a section, one in `params.yaml`, one test that it changes
something.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.targets import Target
from skilltrail.params.executor import EXECUTORS, RayOptions, StoreOptions
from skilltrail.params.knob import derived, knob, operational
from skilltrail.params.methods import METHODS, NEED_A_MODEL, Methods, Stop
from skilltrail.params.model_options import RoleOptions, TargetOptions
from skilltrail.params.optimizing import MetaSkill, Optimizer, Reflect, SkillAware, SlowUpdate
from skilltrail.params.sections import NO_DATA, Data, Evaluate, Gate, JudgeOptions
from skilltrail.params.skill import DEFAULT_SEED, Skill

TARGET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
SCHEDULES = ("constant", "linear", "cosine", "autonomous", "none")
UPDATE_MODES = ("patch", "rewrite_from_suggestions", "full_rewrite_minibatch")


@dataclass(frozen=True)
class Params:
    """All knobs of one run."""

    env: str = knob("textqa", "Environment: a folder of skilltrail/envs.")
    method: str = knob(
        "skillopt", "Who trains: docs/methods.md.", choices=METHODS, idle="skillopt"
    )
    seed: int = knob(42, "Drives batches and every other seeded order.", low=0)
    epochs: int = knob(4, "Passes over the train split.", low=1)
    batch_size: int = knob(40, "Train items rolled out per batch.", low=1)
    accumulation: int = knob(1, "Batches pooled into one step.", low=1)
    lr: int = knob(4, "Learning rate: most merged edits applied per step.", low=1)
    lr_min: int = knob(
        1, "Edits at the last step.", low=1, read_when=("lr_schedule", ("linear", "cosine"))
    )
    lr_schedule: str = knob("cosine", "How lr falls over the steps.", choices=SCHEDULES)
    lr_phase: str = knob(
        "start",
        "Where a falling lr begins: at lr, or one interval below it.",
        choices=("start", "interval"),
        read_when=("lr_schedule", ("linear", "cosine")),
        idle="start",
    )
    lr_rounding: str = knob(
        "up",
        "What halves of a falling lr become.",
        choices=("up", "even"),
        read_when=("lr_schedule", ("linear", "cosine")),
        idle="up",
    )
    lr_bound: str = knob(
        "lr",
        "Most that `autonomous` may choose: lr, or none = all that is offered.",
        choices=("lr", "none"),
        read_when=("lr_schedule", ("autonomous",)),
        idle="lr",
    )
    lr_warmup: int = knob(0, "Steps over which lr rises from 1; 0 = none.", low=0)
    update_mode: str = knob("patch", "What analysts write.", choices=UPDATE_MODES)
    max_skill_tokens: int = knob(0, "Hard limit of the document's size; 0 = none.", low=0)
    patience: int = knob(0, "Stop after so many steps without acceptance; 0 = never.", low=0)
    use_gate: bool = knob(True, "false accepts every candidate, measured and marked forced.")
    merge_batch_size: int = knob(8, "Patches merged at a time.", low=2)
    merge_ask: str = knob(
        "touching",
        "Which patches the optimizer merges; others are joined by rule.",
        choices=("touching", "always"),
        idle="touching",
    )
    compaction: bool = knob(False, "Try a shorter document at the end of each epoch.")
    executor: str = operational(
        "local", "Where rollouts are made; changes no result.", choices=EXECUTORS
    )
    ray: RayOptions = field(default_factory=RayOptions)
    store: StoreOptions = field(default_factory=StoreOptions)
    stop: Stop = field(default_factory=Stop)
    methods: Methods = field(default_factory=Methods)
    skill: Skill = field(default_factory=Skill)
    data: Data = field(default_factory=Data)
    reflect: Reflect = field(default_factory=Reflect)
    target: RoleOptions = field(default_factory=RoleOptions)
    targets: Mapping[str, Any] = operational(
        {},
        "Several targets by name, in place of `target`: its keys, `weight` and `floor`.",
    )
    optimizer: Optimizer = field(default_factory=Optimizer)
    judge: JudgeOptions = field(default_factory=JudgeOptions)
    gate: Gate = field(default_factory=Gate)
    slow_update: SlowUpdate = field(default_factory=SlowUpdate)
    meta_skill: MetaSkill = field(default_factory=MetaSkill)
    skill_aware: SkillAware = field(default_factory=SkillAware)
    evaluate: Evaluate = field(default_factory=Evaluate)
    envs: Mapping[str, Any] = operational(
        {}, "Overrides by environment; only the chosen one's count."
    )
    panel: Mapping[str, TargetOptions] = derived(dict)
    env_params: Any = derived(lambda: None)
    origins: Mapping[str, str] = derived(dict)

    @property
    def target_roles(self) -> Mapping[str, RoleOptions]:
        """Options of the target, or of each of several, by what messages call the role."""
        several = {f"targets.{name}": role for name, role in sorted(self.panel.items())}
        return several if several else {"target": self.target}

    @property
    def targets_named(self) -> tuple[Target, ...]:
        """Several targets with weights and floors, by name; () where there is one."""
        panel = sorted(self.panel.items())
        return tuple(Target(name, float(o.weight), float(o.floor)) for name, o in panel)

    @property
    def has_slow_update(self) -> bool:
        """Whether guidance is written between epochs."""
        enabled = self.slow_update.enabled
        return self.optimizer.backend != "rules" if enabled is None else enabled

    @property
    def has_meta_skill(self) -> bool:
        """Whether the optimizer keeps a memory."""
        enabled = self.meta_skill.enabled
        return self.optimizer.backend != "rules" if enabled is None else enabled


def seed_skill_path(params: Params) -> str:
    """Return the seed skill's path relative to the repository root."""
    if params.skill.seed == DEFAULT_SEED:
        return f"skills/seeds/{params.env}.md"
    return params.skill.seed


def cross_faults(params: Params) -> list[tuple[str, str]]:
    """Return (key, message) of every pair of knobs that cannot go together."""
    faults: list[tuple[str, str]] = []
    if params.lr_schedule in ("linear", "cosine") and params.lr_min > params.lr:
        faults.append(("lr_min", f"must not exceed lr, found {params.lr_min} over {params.lr}"))
    if params.data.path != NO_DATA and params.data.split_dir != NO_DATA:
        faults.append(
            ("data.split_dir", f"data.path is given too; set one of them back to {NO_DATA}")
        )
    if params.method in NEED_A_MODEL and params.optimizer.backend == "rules":
        message = f"{params.method} asks a model; set optimizer.backend to one, such as openai"
        faults.append(("method", message))
    if params.judge.backend != "none" and params.judge.rubric == NO_DATA:
        faults.append(("judge.rubric", "a judge needs one; name a file such as data/rubric.md"))
    faults += _panel_faults(params)
    if not _is_ratio(params.data.ratio):
        found = params.data.ratio
        faults.append(
            ("data.ratio", f"expected train:selection:test such as 2:1:7, found {found!r}")
        )
    for key, path in (
        ("skill.seed", params.skill.seed),
        ("data.path", params.data.path),
        ("data.split_dir", params.data.split_dir),
        ("judge.rubric", params.judge.rubric),
    ):
        if not path.strip():
            default = DEFAULT_SEED if key == "skill.seed" else NO_DATA
            faults.append((key, f"may not be empty; write {default} for none given"))
    return faults


def _panel_faults(params: Params) -> list[tuple[str, str]]:
    """Return what cannot go together with several targets."""
    if not params.panel:
        return []
    faults = [
        (f"targets.{name}", "a name has letters, digits, `.`, `_` and `-`, first a letter")
        for name in params.panel
        if not TARGET_NAME.fullmatch(name)
    ]
    if params.method != "skillopt":
        message = f"{params.method} trains on one target; set method: skillopt, or take it out"
        faults.append(("targets", message))
    if params.executor != "local":
        faults.append(("executor", "several targets are rolled out here; set executor: local"))
    if params.evaluate.roles:
        message = "says what carries over from one target; with `targets` each is measured"
        faults.append(("evaluate.targets", f"{message}: take one of the two out"))
    return faults


def _is_ratio(text: str) -> bool:
    parts = text.split(":")
    return len(parts) == 3 and all(
        part.isascii() and part.replace(".", "", 1).isdigit() and float(part) > 0
        for part in parts
    )
