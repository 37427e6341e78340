"""From `params.yaml` to `Params`: strict, every fault in one message, origins kept.

Environments are named by a mapping `environments`, name to the environment's own params class;
only the chosen one's class is looked up, so that no other environment is imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from skilltrail.core.errors import ParamError
from skilltrail.core.redact import redact
from skilltrail.params.fields import Params, cross_faults
from skilltrail.params.knob import Knob, found, knobs_of, result_values, value_at
from skilltrail.params.methods import reads
from skilltrail.params.model_options import RoleOptions, TargetOptions
from skilltrail.params.secrets import secret_faults
from skilltrail.params.section import SectionReader, nearest
from skilltrail.params.tree import Node, ParamFault, node_of, parse

FILE = "params.yaml"


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
    faults: list[ParamFault] = []
    tree = parse(text, faults)
    return _params(tree, environments, faults, name)


def params_of(values: Mapping[str, Any] | Node, environments: Mapping[str, type]) -> Params:
    """Return the params in a mapping (as in YAML, nested); for tests and other programs.

    Raises:
        ParamError: as `load_params`.
    """
    return _params(node_of(values), environments, [], "params")


def resolved(params: Params) -> list[Resolved]:
    """Return every knob that counts for this run, with its origin, in order of declaration."""
    sections = [("", params)]
    if params.env_params is not None:
        sections.append((f"envs.{params.env}.", params.env_params))
    return [
        Resolved(
            key=prefix + knob.key,
            value=msgspec.to_builtins(value_at(section, knob.key)),
            default=msgspec.to_builtins(knob.default),
            origin=params.origins.get(prefix + knob.key, "default"),
            doc=knob.doc,
        )
        for prefix, section in sections
        for knob in knobs_of(type(section))
        if prefix + knob.key != "envs"
    ]


def run_digest_params(params: Params) -> dict[str, Any]:
    """Return the values that can change a result of this run, by key: JSON, keys sorted.

    Left out: what only changes speed or place, and knobs that nothing reads just now.
    """
    values = {
        knob.key: value_at(params, knob.key)
        for knob in knobs_of(Params)
        if knob.result_changing and is_read(knob, params)
    }
    if params.panel:  # the rule is read under any gate then; who they are is in the target
        values["gate.tolerance"] = params.gate.tolerance
    if params.env_params is not None:
        own = result_values(params.env_params)
        values |= {f"envs.{params.env}.{key}": value for key, value in own.items()}
    return dict(sorted(msgspec.to_builtins(values).items()))


def is_read(knob: Knob, params: Params) -> bool:
    """Return whether anything reads this knob, as the others stand."""
    if not reads(params.method, knob.key):
        return False
    if knob.idle is not None and value_at(params, knob.key) == knob.idle:
        return False
    return knob.read_when is None or value_at(params, knob.read_when[0]) in knob.read_when[1]


def _params(
    tree: Node, environments: Mapping[str, type], faults: list[ParamFault], name: str
) -> Params:
    reader = SectionReader(faults)
    if not isinstance(tree.value, dict):
        faults.append(
            ParamFault("", f"expected a mapping of keys, found {found(tree)}", tree.line)
        )
        tree = Node({})
    params: Params = reader.section(Params, tree, "", "params.yaml")
    params = dataclasses.replace(
        params,
        evaluate=dataclasses.replace(params.evaluate, roles=_targets(tree, reader)),
        panel=_panel(tree, reader),
        env_params=_env_params(params.env, tree, environments, reader),
        origins=MappingProxyType(reader.origins),
    )
    for key, message in cross_faults(params):
        if not any(fault.key == key for fault in faults):
            faults.append(ParamFault(key, message, reader.lines.get(key)))
    secrets = secret_faults(tree, {knob.key.rpartition(".")[2] for knob in knobs_of(Params)})
    hidden = {fault.key for fault in secrets}
    faults = secrets + [fault for fault in faults if fault.key not in hidden]
    if faults:
        raise ParamError(_complaint(name, faults))
    return params


def _complaint(name: str, faults: list[ParamFault]) -> str:
    faults = sorted(faults, key=lambda fault: (fault.line is None, fault.line, fault.key))
    count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
    return str(redact("\n  ".join([f"{name} has {count}:", *map(str, faults)])))


def _env_params(
    env: str, tree: Node, environments: Mapping[str, type], reader: SectionReader
) -> Any:
    """Return the chosen environment's own params; of the others only the names are checked."""
    names = sorted(environments)
    given = tree.at("envs").value
    for name, node in given.items() if isinstance(given, dict) else ():
        if name not in names:
            reader.fault(
                f"envs.{name}", f"no such environment{nearest(name, names)}", node.line
            )
        elif not isinstance(node.value, dict) and node.value is not None and name != env:
            reader.fault(f"envs.{name}", f"expected a mapping, found {found(node)}", node.line)
    if env not in names:
        line = reader.lines.get("env")
        reader.fault("env", f"no environment {env!r}{nearest(env, names)}", line)
        return None
    return reader.section(
        environments[env], tree.at("envs", env), f"envs.{env}.", f"envs.{env}"
    )


def _panel(tree: Node, reader: SectionReader) -> Mapping[str, TargetOptions]:
    """Return the roles in `targets`, each read as `target` is."""
    given = tree.at("targets").value
    return {
        name: reader.section(TargetOptions, entry, f"targets.{name}.", FILE)
        for name, entry in (given.items() if isinstance(given, dict) else ())
    }


def _targets(tree: Node, reader: SectionReader) -> Mapping[str, RoleOptions]:
    """Return the roles in `evaluate.targets`, each read as `target` is."""
    given = tree.at("evaluate", "targets").value
    return {
        name: reader.section(RoleOptions, entry, f"evaluate.targets.{name}.", FILE)
        for name, entry in (given.items() if isinstance(given, dict) else ())
    }
