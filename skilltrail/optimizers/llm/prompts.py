"""Prompts: Markdown files below `optimizers/llm/templates/`; an environment may replace each.

Folders there say who reads a file (`analysts`, `merging`, …) and are no part of its name.

A file of the same name in `skilltrail/envs/<env>/prompts/` stands in for ours. The line
`<!-- user -->` ends the system text; what follows is the user's message. `{{> part}}` puts in
another file, `{{name}}` a value. Values are put in in one pass and never read again, so text
of a run that looks like a placeholder stays what it is. Prompts reach a request as text, so
each is part of the call's key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from skilltrail.core.errors import UsageError

_SPLIT = "<!-- user -->"
_FOLDER = "skilltrail/optimizers/llm/templates/"
_PART = re.compile(r"\{\{> ?([a-z_]+)\}\}")
_VALUE = re.compile(r"\{\{([a-z_]+)\}\}")
_GAP = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class Prompt:
    """A prompt's two texts, before or after its values are put in."""

    system: str
    user: str


@dataclass(frozen=True)
class Templates:
    """The prompts of one environment.

    Attributes:
        env: None = without replacements.
        root: the folder with `prompts/` and `envs/`; None = the package's own.
    """

    env: str | None = None
    root: Path | None = None

    def fill(self, name: str, values: Mapping[str, str]) -> Prompt:
        """Return the prompt `name` with `values` in their places.

        Raises:
            UsageError: the environment's file asks for another set of values than ours.
        """
        prompt = _prompt(self, name)
        return Prompt(_filled(prompt.system, values), _filled(prompt.user, values))

    def values(self, name: str) -> frozenset[str]:
        """Return the names of the values that the prompt `name` asks for."""
        return values_of(_whole(self, name))

    def text(self, name: str, values: Mapping[str, str] | None = None) -> str:
        """Return a prompt file that has no user part, filled."""
        source = _whole(self, name)
        return _filled(source, {} if values is None else values).strip("\n")


def values_of(text: str) -> frozenset[str]:
    """Return the names of the values that `text` asks for."""
    return frozenset(_VALUE.findall(text))


@cache
def _prompt(prompts: Templates, name: str) -> Prompt:
    system, _, user = _whole(prompts, name).partition(_SPLIT)
    return Prompt(system.strip("\n"), user.strip("\n"))


@cache
def _whole(prompts: Templates, name: str) -> str:
    """Return a prompt with its parts put in; an environment's asks for the same values."""
    text = _with_parts(prompts, name, ())
    if prompts.env is None:
        return text
    own = _whole(Templates(None, prompts.root), name)
    ours, theirs = values_of(own), values_of(text)
    if theirs != ours or (_SPLIT in text) != (_SPLIT in own):
        missing = ", ".join(sorted(ours - theirs)) or "none"
        unknown = ", ".join(sorted(theirs - ours)) or "none"
        raise UsageError(
            f"prompt {name}.md of environment {prompts.env}",
            f"missing placeholders: {missing}; unknown ones: {unknown}",
            f"Use those of {name}.md below {_FOLDER}, and its line {_SPLIT} where it has one",
        )
    return text


def _with_parts(prompts: Templates, name: str, outer: tuple[str, ...]) -> str:
    if name in outer:
        raise UsageError(f"prompt {name}.md", "it contains itself", "Take the part out")
    return _PART.sub(
        lambda found: _with_parts(prompts, found[1], (*outer, name)).strip("\n"),
        _read(prompts, name),
    )


def _read(prompts: Templates, name: str) -> str:
    root = files("skilltrail") if prompts.root is None else prompts.root
    places: list[Any] = []
    if prompts.env is not None:
        places.append(root / "envs" / prompts.env / "prompts" / f"{name}.md")
    folders = (root / "optimizers" / "llm" / "templates").iterdir()
    places += [folder / f"{name}.md" for folder in folders if folder.is_dir()]
    for place in places:
        if place.is_file():
            text: str = place.read_text(encoding="utf-8")
            return text.replace("\r\n", "\n")
    raise UsageError(
        f"prompt {name}.md",
        "there is no such file",
        f"Look in {_FOLDER}",
    )


def _filled(text: str, values: Mapping[str, str]) -> str:
    # An optional part that is empty takes its blank line with it.
    empty = [name for name in values_of(text) if values[name] == ""]
    for name in empty:
        text = _GAP.sub("\n\n", text.replace("{{" + name + "}}", ""))
    return _VALUE.sub(lambda found: values[found[1]], text)


def example_text(prompts: Templates, name: str, form: Mapping[str, Any]) -> str:
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
