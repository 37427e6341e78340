"""From `params.yaml` to `Params`: strict, every fault in one message, origins kept.

Environments are named by a mapping `environments`, name to the environment's own params class;
only the chosen one's class is looked up, so that no other environment is imported.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from stages.core.errors import ParamError
from stages.core.params import Params, cross_faults
from stages.core.params_knob import (
    Knob,
    Mismatch,
    convert,
    fields_of,
    found,
    is_section,
    knobs_of,
)
from stages.core.params_secrets import secret_faults
from stages.core.params_tree import Fault, Node, node_of, parse
from stages.core.redact import redact

FILE = "params.yaml"
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
}  # fmt: skip


@dataclass(frozen=True)
class Resolved:
    """One knob's value and where it comes from: `default`, `params.yaml` or `envs.<name>`."""

    key: str
    value: Any
    default: Any
    origin: str
    doc: str


def load_params(path: Path, environments: Mapping[str, type]) -> Params:
    """Return the params in a file.

    Raises:
        ParamError: no such file, or anything in it that is not as it must be (all at once).
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        remedy = "Run the command from the root of the repository, where params.yaml stands"
        raise ParamError(f"Reading {path.name}", "there is no such file", remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ParamError(f"Reading {path.name}", str(error), "It must be UTF-8 text") from error
    return params_from_text(text, path.name, environments)


def params_from_text(text: str, name: str, environments: Mapping[str, type]) -> Params:
    """Return the params in a YAML text; `name` is what errors call it.

    Raises:
        ParamError: as `load_params`.
    """
    faults: list[Fault] = []
    tree = parse(text, faults)
    return _params(tree, environments, faults, name)


def params_of(values: Mapping[str, Any], environments: Mapping[str, type]) -> Params:
    """Return the params in a mapping (as in YAML, nested); for tests and other programs.

    Raises:
        ParamError: as `load_params`.
    """
    return _params(node_of(values), environments, [], "params")


def resolved(params: Params) -> list[Resolved]:
    """Return every knob that counts for this run, with its origin, in order of declaration."""
    rows = [_row(params, params, knob, "") for knob in knobs_of(Params) if knob.key != "envs"]
    own = params.env_params
    if own is not None:
        prefix = f"envs.{params.env}."
        rows += [_row(params, own, knob, prefix) for knob in knobs_of(type(own))]
    return rows


def _row(params: Params, section: Any, knob: Knob, prefix: str) -> Resolved:
    return Resolved(
        key=prefix + knob.key,
        value=_json(_get(section, knob.key)),
        default=_json(knob.default),
        origin=params.origins.get(prefix + knob.key, "default"),
        doc=knob.doc,
    )


def run_digest_params(params: Params) -> dict[str, Any]:
    """Return the values that can change a result of this run, by key: JSON, keys sorted.

    Left out: what only changes speed or place, and knobs that nothing reads just now.
    """
    values = {
        knob.key: _json(_get(params, knob.key))
        for knob in knobs_of(Params)
        if knob.result_changing and is_read(knob, params)
    }
    if params.env_params is not None:
        values |= {
            f"envs.{params.env}.{knob.key}": _json(_get(params.env_params, knob.key))
            for knob in knobs_of(type(params.env_params))
            if knob.result_changing
        }
    return dict(sorted(values.items()))


def is_read(knob: Knob, params: Params) -> bool:
    """Return whether anything reads this knob, as the others stand."""
    return knob.read_when is None or _get(params, knob.read_when[0]) in knob.read_when[1]


def _params(
    tree: Node, environments: Mapping[str, type], faults: list[Fault], name: str
) -> Params:
    reader = _Reader(faults)
    if not isinstance(tree.value, dict):
        faults.append(Fault("", f"expected a mapping of keys, found {found(tree)}", tree.line))
        tree = Node({})
    params: Params = reader.section(Params, tree, "", "params.yaml")
    params = dataclasses.replace(
        params,
        env_params=_env_params(params.env, tree, environments, reader),
        origins=MappingProxyType(reader.origins),
    )
    for key, message in cross_faults(params):
        if not any(fault.key == key for fault in faults):
            faults.append(Fault(key, message, reader.lines.get(key)))
    secrets = secret_faults(tree, {knob.key.rpartition(".")[2] for knob in knobs_of(Params)})
    hidden = {fault.key for fault in secrets}
    faults = secrets + [fault for fault in faults if fault.key not in hidden]
    if faults:
        raise ParamError(_complaint(name, faults))
    return params


def _complaint(name: str, faults: list[Fault]) -> str:
    faults = sorted(faults, key=lambda fault: (fault.line is None, fault.line, fault.key))
    count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
    return str(redact("\n  ".join([f"{name} has {count}:", *map(str, faults)])))


def _env_params(env: str, tree: Node, environments: Mapping[str, type], reader: _Reader) -> Any:
    """Return the chosen environment's own params; of the others only the names are checked."""
    names = sorted(environments)
    given = tree.value.get("envs", Node({}))
    sections = given.value if isinstance(given.value, dict) else {}
    for name, node in sections.items():
        if name not in names:
            reader.fault(
                f"envs.{name}", f"no such environment{_nearest(name, names)}", node.line
            )
        elif not isinstance(node.value, dict) and node.value is not None:
            reader.fault(f"envs.{name}", f"expected a mapping, found {found(node)}", node.line)
    if env not in names:
        line = reader.lines.get("env")
        reader.fault("env", f"no environment {env!r}{_nearest(env, names)}", line)
        return None
    section = sections.get(env, Node({}))
    if not isinstance(section.value, dict):
        section = Node({}, section.line)
    return reader.section(environments[env], section, f"envs.{env}.", f"envs.{env}")


class _Reader:
    """Builds sections from a tree, noting faults, the origin and the line of each key."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.origins: dict[str, str] = {}
        self.lines: dict[str, int | None] = {}

    def fault(self, key: str, message: str, line: int | None) -> None:
        self.faults.append(Fault(key, message, line))

    def section(self, cls: type, node: Node, prefix: str, origin: str) -> Any:
        """Return an instance of `cls`; a field with a fault keeps its default."""
        values: dict[str, Any] = {}
        names = []
        for name, hint, default, about in fields_of(cls):
            names.append(name)
            entry = node.value.get(name)
            if entry is None:
                continue
            key = f"{prefix}{name}"
            self.lines[key] = entry.line
            if is_section(hint):
                values[name] = self.subsection(hint, entry, key, origin)
            else:
                self.value(values, name, entry, Knob(key, hint, default, **about), origin)
        for name, entry in node.value.items():
            if name not in names:
                self.unknown(cls, name, entry, prefix)
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

    def subsection(self, cls: type, node: Node, key: str, origin: str) -> Any:
        if node.value is None:
            return cls()
        if not isinstance(node.value, dict):
            self.fault(key, f"expected a mapping, found {found(node)}", node.line)
            return cls()
        return self.section(cls, node, f"{key}.", origin)

    def value(
        self, values: dict[str, Any], name: str, node: Node, knob: Knob, origin: str
    ) -> None:
        try:
            values[name] = convert(node, knob)
            self.origins[knob.key] = origin
        except Mismatch as mismatch:
            self.fault(knob.key, str(mismatch), node.line)

    def unknown(self, cls: type, name: str, node: Node, prefix: str) -> None:
        keys = [f"{prefix}{knob.key}" for knob in knobs_of(cls)]
        if prefix and not prefix.startswith("envs."):
            keys += [knob.key for knob in knobs_of(Params)]
        message = f"no such key{_nearest(f'{prefix}{name}', keys)}"
        self.fault(f"{prefix}{name}", message, node.line)


def _nearest(key: str, keys: list[str]) -> str:
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


def _get(params: Any, key: str) -> Any:
    value = params
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(entry) for entry in value]
    return value
