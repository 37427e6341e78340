"""The example of a reply that a prompt shows: what the question's own form allows, no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from skilltrail.optimizers.llm.prompts import Prompts


def example_text(prompts: Prompts, name: str, form: Mapping[str, Any]) -> str:
    """Return the example `name` on one line, without what the form that is asked for lacks."""
    example = json.loads(prompts.text(name))
    return json.dumps(within(example, form), ensure_ascii=False)


def within(value: Any, form: Mapping[str, Any]) -> Any:
    """Return a JSON value without the properties that a schema does not have."""
    if isinstance(value, dict) and "properties" in form:
        known = form["properties"]
        return {
            name: within(part, known[name]) for name, part in value.items() if name in known
        }
    if isinstance(value, list) and "items" in form:
        return [within(part, form["items"]) for part in value]
    return value
