"""`docs/knobs.md` names every knob, and every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from test_knobs import METHOD

from skilltrail.params.fields import Params
from skilltrail.params.knob import knobs_of

ROOT = Path(__file__).resolve().parents[1]
DOC = (ROOT / "docs" / "knobs.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", DOC)
COMMON: dict[str, Any] = YAML(typ="safe").load((ROOT / "params.yaml").read_text("utf-8"))


def is_rare(key: str) -> bool:
    """True for a role's knob that the shipped params do not even mention, and for one that
    the judge has as every role has it."""
    role, _, name = key.partition(".")
    shared = role == "judge" and name in COMMON["target"]
    return shared or (role in ("target", "optimizer", "judge") and name not in COMMON[role])


KEYS = [knob.key for knob in knobs_of(Params) if not is_rare(knob.key)]


@pytest.mark.parametrize("key", KEYS)
def test_a_knob_is_in_the_table(key: str) -> None:
    assert f"`{key}`" in DOC


@pytest.mark.parametrize(("file", "test"), sorted(set(NAMED)))
def test_a_named_test_exists(file: str, test: str) -> None:
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert test == "" or re.search(rf"^def {test}\(", text, re.MULTILINE)


@pytest.mark.parametrize("key", METHOD)
def test_a_knob_that_the_knob_test_proves_is_said_to_be(key: str) -> None:
    row = next(line for line in DOC.split("\n") if f"`{key}`" in line)
    assert "knob test" in row
