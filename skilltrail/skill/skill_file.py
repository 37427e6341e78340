"""A skill as coding agents load it: SKILL.md, Markdown with `name` and `description` in front.

Format: a YAML frontmatter whose `name` is the folder's, lower-case letters, digits and single
hyphens (at most 64), and whose `description` (at most 1,024 characters) tells when the skill is
of use. The text below it is the trained document. A frontmatter that nobody changes comes out
byte for byte; an entry that is set changes its own lines and no other. What people write and
YAML refuses (`description: Use when: …`) is read by its lines, as agents' own readers do.
Source: https://agentskills.io/specification
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from skilltrail.core.errors import SkillError, UsageError
from skilltrail.skill.document import BOM, frontmatter_length, raw_lines, split_lines
from skilltrail.skill.folder import MAIN, files_of, folder_text, main_text

SKILL_MD = "SKILL.md"
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MOST_NAME, MOST_DESCRIPTION = 64, 1024
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?=[ \t\r\n]|\Z)(.*)", re.DOTALL)
# A frontmatter whose lines end in a bare CR, or in one more than there should be.
_BARE_CR = re.compile(rf"{BOM}?---[ \t]*\r(?!\n)")
_TEMPLATE = re.compile(r"\{[{%#].*[}%#]\}", re.DOTALL)  # as Jinja and Handlebars write
_YAML_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])


def skill_md(
    text: str,
    name: str | None,
    description: str | None,
    *,
    live: str = "",
    folder: str | None = None,
    otherwise: tuple[str | None, str | None] = (None, None),
) -> str:
    """Return `text` as a SKILL.md; as it is where its frontmatter has what is needed.

    Args:
        name, description: to be set; None = as the frontmatter has it.
        live: the SKILL.md that stands in the place; its frontmatter serves a text without one.
        folder: name of the folder the file goes to. That of a new skill is its `name`.
        otherwise: name and description where nothing else tells them.

    Raises:
        UsageError: name or description is missing or cannot be used.
        SkillError: the frontmatter is no YAML mapping of lines.
    """
    head, body = _parted(text)
    if not head:
        head, old = _parted(live)
        gap = next((end for end in ("\n", "\r\n") if old.startswith(end)), "")
        body = body if body.startswith(("\n", "\r\n")) else gap + body
    known = _scalars(head)
    if name is None and folder is not None and (not live or "name" not in known):
        name = folder if not live or _is_name(folder) else otherwise[0]
    wanted = {"name": name, "description": description}
    for key, value in zip(wanted, otherwise, strict=True):
        if wanted[key] is None and key not in known:
            wanted[key] = value
    changes = {key: v for key, v in wanted.items() if v is not None and v != known.get(key)}
    _check({key: changes.get(key, known.get(key)) for key in wanted}, changes)
    if not head:
        return _with_head(text, changes)
    for key, value in changes.items():
        head = _set(head, key, value)
    return "".join(head) + body


def described(text: str) -> tuple[str, str]:
    """Return name and description by which an agent program offers a skill, each on one line.

    Without a description it is the first paragraph of the text, without a name `skill`.
    """
    head, body = _parted(main_text(text))
    try:
        known = _scalars(head)
    except SkillError:
        known = {}
    name, description = known.get("name"), known.get("description")
    if not description or not description.strip():
        paragraphs = re.split(r"\n\s*\n", body.replace("\r\n", "\n"))
        told = (one.strip() for one in paragraphs)
        description = next((one for one in told if one and not one.startswith("#")), "")
    found = name if name is not None and _is_name(name) else slug("" if name is None else name)
    return found, " ".join(description.split())[:MOST_DESCRIPTION]


def offered(name: str, description: str, skill: str = "") -> str:
    """Return a skill as it is laid before an agent program: with that name and description."""
    files = files_of(skill)
    told = description.replace("<", "").replace(">", "")
    about = None if _has_description(files[MAIN]) else told if told.strip() else name
    text = skill_md(files[MAIN], name, about)
    return folder_text(files | {MAIN: text})


def _has_description(text: str) -> bool:
    found = _scalars(_parted(text)[0]).get("description")
    return found is not None and bool(found.strip())


def slug(text: str) -> str:
    """Return a usable `name` made of `text`."""
    found = "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:MOST_NAME].strip("-")
    return found if found else "skill"


def _parted(text: str) -> tuple[list[str], str]:
    """Return the lines of the frontmatter with their ends, [] for none, and the rest."""
    refuse_bare_cr(text)
    length = frontmatter_length(split_lines(text))
    lines = raw_lines(text)
    return lines[:length], "".join(lines[length:])


def refuse_bare_cr(text: str) -> None:
    """Refuse a SKILL.md whose frontmatter nobody would see.

    Raises:
        SkillError: its lines end in bare carriage returns.
    """
    if _BARE_CR.match(text) is not None:
        remedy = "Save it with LF line ends: an editor does, or `dos2unix` and `mac2unix`"
        raise SkillError("The lines of a SKILL.md", "they end in bare CR", remedy)


def _scalars(head: list[str]) -> dict[str, str | None]:
    """Return the entries of a frontmatter; None for one that is no text."""
    return {one.key: one.value for one in _entries(head)}


@dataclass(frozen=True)
class _Entry:
    """An entry of a frontmatter: `start` is the line of its key, `value` None for no text."""

    key: str
    value: str | None
    start: int


def _entries(head: list[str]) -> list[_Entry]:
    try:
        source = "".join(head[1:-1])
        node = YAML(typ="safe", pure=True).compose(source)
    except YAMLError as error:
        return _by_lines(head, error)
    if node is None:
        return []
    if not isinstance(node, MappingNode):
        raise SkillError(
            "The skill's frontmatter", "is not a mapping", "Write `key: value` lines"
        )
    return [
        _Entry(str(key.value), _plain(value, source), key.start_mark.line + 1)
        for key, value in node.value
    ]


def _plain(node: Node, source: str) -> str | None:
    """Return a text, a number as it is written, or a template's mark, which YAML takes for
    mappings; None for anything else."""
    written = source[node.start_mark.index : node.end_mark.index].strip()
    if isinstance(node, MappingNode) and _TEMPLATE.fullmatch(written):
        return written
    is_text = isinstance(node, ScalarNode) and not str(node.tag).endswith(":null")
    return str(node.value) if is_text else None


def _by_lines(head: list[str], error: YAMLError) -> list[_Entry]:
    """Return what the lines plainly say that YAML refuses: a key, a colon, and a text that goes
    on in the lines below that are indented.

    Raises:
        SkillError: there is a line that says nothing so.
    """
    found: list[_Entry] = []
    for number, line in enumerate(head[1:-1], start=1):
        begins, said = _KEY.match(line), line.strip()
        if begins is not None:
            found.append(_Entry(begins[1], _unquoted(begins[2].strip()), number))
        elif found and line[:1] in (" ", "\t", "-"):
            last = found.pop()
            told = (
                said
                if last.value in (None, "", "|", ">", "|-", ">-")
                else f"{last.value} {said}"
            )
            found.append(_Entry(last.key, told, last.start))
        elif said and not said.startswith("#") and not _TEMPLATE.fullmatch(said):
            raise SkillError("The skill's frontmatter", f"is not YAML: {error}") from error
    return found


def _unquoted(text: str) -> str | None:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    is_open = (text[:1] == "[" and "]" not in text) or (text[:1] == "{" and "}" not in text)
    return None if is_open else text[1:-1] if is_quoted else text


def _set(head: list[str], key: str, value: str) -> list[str]:
    """Return the frontmatter with one entry's lines replaced, or added (`name` comes first)."""
    entry = [f"{key}: {_quoted(value)}{_end(head[0])}"]
    entries = _entries(head)
    starts = [one.start for one in entries]
    if len(set(starts)) < len(starts) or (head[1:-1] and head[1].lstrip().startswith("{")):
        remedy = "Write `key: value` lines, one entry a line"
        raise SkillError("The skill's frontmatter", "has entries side by side", remedy)
    at = next((n for n, one in enumerate(entries) if one.key == key), None)
    if at is None:
        place = 1 if key == "name" else len(head) - 1
        return [*head[:place], *entry, *head[place:]]
    start, end = starts[at], [*starts, len(head) - 1][at + 1]
    # Comments and blank lines before the next entry are not this one's.
    while end > start + 1 and (not head[end - 1].strip() or head[end - 1].startswith("#")):
        end -= 1
    return [*head[:start], *entry, *head[end:]]


def _with_head(text: str, entries: dict[str, str]) -> str:
    body = text.removeprefix(BOM)
    end = _end(raw_lines(body)[0]) if body else "\n"
    lines = [f"{key}: {_quoted(value)}{end}" for key, value in entries.items()]
    gap = "" if not body or body.startswith(("\n", "\r\n")) else end
    return text[: len(text) - len(body)] + "".join(
        [f"---{end}", *lines, f"---{end}", gap, body]
    )


def _end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n"


def _is_name(text: str) -> bool:
    return len(text) <= MOST_NAME and NAME.fullmatch(text) is not None


def _check(entries: dict[str, str | None], changes: dict[str, str]) -> None:
    """Refuse an entry that is missing, and one to be written that breaks the format."""
    name, description = entries["name"], entries["description"]
    if name is None or ("name" in changes and not _is_name(name)):
        raise UsageError(
            "name" if name is None else f"name {name!r}",
            "there is none" if name is None else "no name of a skill",
            f"--name with lower-case letters, digits and single hyphens, at most {MOST_NAME},"
            f" or a folder named so, e.g. {'a-skill' if name is None else slug(name)}",
        )
    if description is None or not description.strip():
        raise UsageError("description", "there is none", "--description: when to use the skill")
    if "description" in changes and (
        len(description) > MOST_DESCRIPTION or "<" in description or ">" in description
    ):
        raise UsageError(
            "description",
            f"{len(description)} characters",
            f"At most {MOST_DESCRIPTION}, without < and >",
        )


def _quoted(text: str) -> str:
    # A JSON string is a YAML one; line ends, colons and `true` need no thought.
    is_plain = NAME.fullmatch(text) and text[0].isalpha() and text not in _YAML_WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)
