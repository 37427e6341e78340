"""Every reply schema, as it goes out, lies in the strict subset that its provider takes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from skilltrail.core import schemas
from skilltrail.models.backends.strict import anthropic_schema, is_closed, openai_schema
from skilltrail.models.judge import SCHEMA as JUDGEMENT
from skilltrail.models.protocol import Request
from skilltrail.models.registry import open_model
from skilltrail.optimizers.llm.reading.replies import asked_form
from tests.fault_server import FaultServer
from tests.role_options import KEYS, options_at

ASKED: dict[str, dict[str, Any]] = {name: asked_form(name) for name in schemas.names("replies")}
ASKED["judgement"] = JUDGEMENT
every = pytest.mark.parametrize("name", ASKED)
TYPES = {"object", "array", "string", "integer", "number", "boolean", "null"}
COMMON = {"type", "enum", "const", "anyOf", "$ref", "$defs", "description", "title",
          "properties", "required", "additionalProperties", "items"}  # fmt: skip
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6",
           "uuid"}  # fmt: skip


def parts(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a schema and all schemas inside it."""
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(),
             *schema.get("anyOf", ()), *schema.get("allOf", ())]  # fmt: skip
    inner += [schema["items"]] if "items" in schema else []
    return [schema, *(part for one in inner for part in parts(one))]


def openai_faults(schema: Mapping[str, Any]) -> list[str]:
    """Return what strict mode of OpenAI, or of Azure, whose subset is smaller, would refuse."""
    faults = [] if schema.get("type") == "object" else ["the root is no object"]
    for part in parts(schema):
        faults += [f"keyword {name}" for name in part.keys() - COMMON]
        kinds = part.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        faults += [f"type {kind}" for kind in set(kinds) - TYPES]
        if "object" in kinds:
            if part.get("additionalProperties") is not False:
                faults.append("an open object")
            if set(part.get("required", ())) != set(part.get("properties", {})):
                faults.append("a property that is not required")
        if "array" in kinds and "items" not in part:
            faults.append("an array without items")
        if not {"type", "enum", "const", "anyOf", "$ref"} & set(part):
            faults.append("a schema of anything")
    return faults


def anthropic_faults(schema: Mapping[str, Any]) -> list[str]:
    """Return what structured output of Anthropic would refuse."""
    faults, unions = [], 0
    for part in parts(schema):
        faults += [f"keyword {name}" for name in part.keys() - COMMON - {"minItems", "format"}]
        kind = part.get("type")
        unions += isinstance(kind, list) or "anyOf" in part
        if kind is not None and kind not in TYPES:
            faults.append(f"type {kind}")
        if kind == "object" and part.get("additionalProperties") is not False:
            faults.append("an open object")
        if part.get("minItems", 0) not in (0, 1) or part.get("format", "uuid") not in FORMATS:
            faults.append("a bound")
        if not {"type", "enum", "const", "anyOf", "$ref"} & set(part):
            faults.append("a schema of anything")
    return [*faults, "more than 16 unions"] if unions > 16 else faults


@every
def test_openai_takes_it_strictly(name: str) -> None:
    sent = openai_schema(ASKED[name])
    assert openai_faults(sent["schema"]) == []
    assert sent["strict"]


@every
def test_anthropic_takes_it(name: str) -> None:
    assert anthropic_faults(anthropic_schema(ASKED[name])) == []


@every
@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
def test_what_is_sent_is_the_transformed_schema(name: str, api: str) -> None:
    with FaultServer() as server:
        model = open_model("optimizer", options_at(api, server.url), environ=KEYS)
        asyncio.run(model.complete(Request(prompt="hi", schema=ASKED[name])))
        body = server.calls[0].body
    if api == "chat":
        sent = body["response_format"]["json_schema"]
        assert (openai_faults(sent["schema"]), sent["strict"]) == ([], True)
    elif api == "responses":
        sent = body["text"]["format"]
        assert (openai_faults(sent["schema"]), sent["strict"]) == ([], True)
    else:
        assert anthropic_faults(body["output_config"]["format"]["schema"]) == []


@every
def test_it_says_the_same_but_for_its_bounds(name: str) -> None:
    """Order of the properties too: what is written first is thought of first."""
    asked = ASKED[name]
    for sent in (openai_schema(asked)["schema"], anthropic_schema(asked)):
        assert list(sent["properties"]) == list(asked["properties"])
        assert set(sent["required"]) == set(asked["required"])
        Draft202012Validator.check_schema(sent)
        for value in samples(asked):
            assert Draft202012Validator(sent).is_valid(value)
        assert not Draft202012Validator(sent).is_valid({})


def samples(schema: Mapping[str, Any]) -> list[Any]:
    """Return values that a schema takes: one of each of its types, and of each enum's."""
    if "enum" in schema:
        return list(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    found: list[Any] = []
    for kind in kinds:
        if kind == "object":
            each = {key: samples(inner) for key, inner in schema["properties"].items()}
            longest = max(map(len, each.values()))
            found += [
                {key: all_[n % len(all_)] for key, all_ in each.items()} for n in range(longest)
            ]
        elif kind == "array":
            found += [[], samples(schema["items"])]
        else:
            found.append({"string": "x", "integer": 1, "number": 0.5, "null": None}[kind])
    return found


def test_bounds_are_told_to_anthropic_in_words() -> None:
    score = anthropic_schema(JUDGEMENT)["properties"]["score"]
    assert set(score) == {"type", "description"}
    assert "minimum: 0" in score["description"]


def test_a_property_with_the_name_of_a_bound_stays() -> None:
    schema = {"type": "object", "properties": {"format": {"type": "string", "pattern": "x"}},
              "required": ["format"], "additionalProperties": False}  # fmt: skip
    sent = openai_schema(schema)["schema"]
    assert sent["properties"] == {"format": {"type": "string"}}


def test_an_open_schema_is_asked_for_without_strictness() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]}
    sent = openai_schema(schema)
    assert (sent["schema"], sent["strict"]) == (schema, False)
    assert not is_closed(schema)


def test_the_schema_of_the_request_and_so_its_key_stay_as_they_are() -> None:
    request = Request(prompt="hi", schema=JUDGEMENT)
    before = request.key({"backend": "x"})
    openai_schema(JUDGEMENT)
    anthropic_schema(JUDGEMENT)
    assert replace(request).key({"backend": "x"}) == before
