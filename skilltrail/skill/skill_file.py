"""A skill as coding agents load it: SKILL.md, Markdown with `name` and `description` in front.

Format: a YAML frontmatter whose `name` is lower-case letters, digits and hyphens (at most 64)
and whose `description` (at most 1,024 characters) tells when the skill is of use. The text
below it is the trained document, byte for byte.
Source: https://agentskills.io/specification
"""

from __future__ import annotations

import json
import re

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.core.errors import SkillError, UsageError
from skilltrail.skill.document import frontmatter_length, raw_lines, split_lines

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MOST_NAME, MOST_DESCRIPTION = 64, 1024


def skill_md(text: str, name: str | None, description: str | None) -> str:
    """Return `text` as a SKILL.md.

    Keys that its frontmatter has already stay; `name` and `description` are set where they are
    given, and must be there in the end.

    Raises:
        UsageError: name or description is missing or cannot be used.
        SkillError: the frontmatter is no YAML mapping.
    """
    length = frontmatter_length(split_lines(text))
    lines = raw_lines(text)
    standing = _read("".join(lines[1 : length - 1])) if length else {}
    wanted = {
        "name": standing.get("name") if name is None else name,
        "description": standing.get("description") if description is None else description,
    }
    _check(wanted["name"], wanted["description"])
    head = [f"{key}: {_quoted(str(value))}\n" for key, value in wanted.items()]
    rest = _others(lines[1 : length - 1]) if length else []
    body = "".join(lines[length:])
    gap = "" if length or body.startswith("\n") or not body else "\n"
    return "".join(["---\n", *head, *rest, "---\n", gap, body])


def slug(text: str) -> str:
    """Return a usable `name` made of `text`."""
    found = "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:MOST_NAME].strip("-")
    return found if found else "skill"


def _read(text: str) -> dict[str, object]:
    try:
        found = YAML(typ="safe").load(text)
    except YAMLError as error:
        raise SkillError("The skill's frontmatter", f"is not YAML: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise SkillError("The skill's frontmatter", "is not a mapping", "Write `key: value`")
    return found


def _others(lines: list[str]) -> list[str]:
    """Return the frontmatter's lines without the entries of `name` and `description`."""
    kept, dropping = [], False
    for line in lines:
        if not line.startswith((" ", "\t", "\n", "\r", "#", "-")):
            dropping = line.split(":")[0].strip(" \"'") in ("name", "description")
        if not dropping:
            kept.append(line)
    return kept


def _check(name: object, description: object) -> None:
    if not isinstance(name, str) or len(name) > MOST_NAME or not NAME.fullmatch(name):
        raise UsageError(
            f"name {name!r}",
            "no name of a skill",
            f"--name with lower-case letters, digits and hyphens, at most {MOST_NAME}",
        )
    if not isinstance(description, str) or not description.strip():
        raise UsageError("description", "there is none", "--description: when to use the skill")
    if len(description) > MOST_DESCRIPTION or "<" in description or ">" in description:
        raise UsageError(
            "description",
            f"{len(description)} characters",
            f"At most {MOST_DESCRIPTION}, without < and >",
        )


def _quoted(text: str) -> str:
    # A JSON string is a YAML one; line ends and colons need no thought.
    return text if NAME.fullmatch(text) else json.dumps(text, ensure_ascii=False)
