"""The stand-in that `verify` has for a model, held against the model itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded_calls import RecordedCalls

from skilltrail.models.client.identity import identity_of
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import BACKENDS, HARNESS_BACKENDS, RoleOptions
from skilltrail.verify.doors import RefusingModel
from tests.role_options import KEYS, options_at

# A harness opens only where its program is installed.
OPENED = [name for name in BACKENDS if name not in HARNESS_BACKENDS]


def options(backend: str) -> RoleOptions:
    if backend in ("local", "openvino"):
        return RoleOptions(backend=backend)
    if backend in ("handoff", "replay"):
        return RoleOptions(backend=backend, model="m")
    return options_at(backend, "http://127.0.0.1:9/v1")


@pytest.mark.parametrize("abilities", [None, ("tools",)])
@pytest.mark.parametrize("backend", OPENED)
def test_a_fact_key_is_made_of_the_same_style_and_abilities_with_and_without_the_model(
    backend: str, abilities: tuple[str, ...] | None
) -> None:
    role = replace(options(backend), abilities=abilities)
    records = RecordedCalls([], identity_of(role))
    model = open_model("target", role, environ=KEYS, records=records)
    known = RefusingModel("target", role)
    assert (known.style, known.abilities) == (model.style, model.abilities)
    assert known.identity == model.identity
