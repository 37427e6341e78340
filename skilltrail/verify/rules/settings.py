"""Settings of the gate, read back from the events that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from skilltrail.method.gate import GateRule


def rule_of(data: Mapping[str, Any]) -> GateRule:
    """Return the gate's settings as the event recorded them."""
    names = {field.name for field in fields(GateRule)} - {"rule"}
    settings = {name: data[name] for name in names if name in data}
    return GateRule(rule=data["rule"].removesuffix("/1"), **settings)
