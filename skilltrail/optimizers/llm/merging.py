"""Merge: one group of patches made one list of edits, without repetition.

The model names the parents of each merged edit; parents are checked, and support is the number
of distinct items behind them. A merge that gives nothing for something is an explicit
`merge_dropped_all`, asked again once; then the group is joined by rule.

    single/1           nothing to merge: the edits of one patch
    disjoint/1         patches that do not touch each other: all edits in order, the same
                       said twice as one
    concat/1           all edits in order, those of the same sense joined
    most_supported/1   of whole documents, the one with most items behind it
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from skilltrail.optimizers.llm.ask import Asker
from skilltrail.optimizers.llm.proposals import (
    REWRITE,
    ParsedEdits,
    ProposalContext,
    document_faults,
    sort_edits,
    sort_suggestions,
)
from skilltrail.optimizers.llm.question import Parsed, Query, reasoning_of
from skilltrail.optimizers.llm.reading.replies import quoted
from skilltrail.optimizers.llm.reflecting import MODES, narrow_file
from skilltrail.optimizers.llm.shown.past import sense_of, step_state
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.optimizers.screen import normalized_words
from skilltrail.skill.document import split_lines
from skilltrail.skill.edit import Edit, Patch
from skilltrail.skill.fence import fenced
from skilltrail.skill.folder import MAIN

_LIKE = 0.5  # share of the shorter edit's words that makes two edits alike
_SCHEMAS = {
    "patch": "merged_patch",
    "suggest": "merged_suggestions",
    "full": "merged_document",
}


async def merge(
    asker: Asker, view: StepView, ground: ProposalContext, patches: Sequence[Patch]
) -> Answer:
    """Return the merged edits of one group."""
    offered = [edit for patch in patches for edit in patch.edits]
    if len(offered) <= 1 or sum(bool(patch.edits) for patch in patches) == 1:
        edits, _ = joined(offered) if offered else ([], "")
        return Answer(edits, "nothing to merge", "single/1")
    ask = asker.options.merge_ask == "always"
    if not ask and not touching([patch.edits for patch in patches]):
        edits, _ = joined(offered)
        return Answer(edits, "the patches do not touch each other", "disjoint/1")
    asked = await asker.ask(_question(asker, view, ground, patches, offered))
    edits, rule = joined(offered)
    return asked.answer(edits, "no usable merge from the model", rule)


def touching(groups: Sequence[Sequence[Edit]]) -> bool:
    """Return whether edits of two groups meet: the same lines, or like words.

    Whole documents always meet; of two worked examples those that show one item.
    """
    for at, group in enumerate(groups):
        for other in (edit for later in groups[at + 1 :] for edit in later):
            if any(_meet(edit, other) for edit in group):
                return True
    return False


def _meet(one: Edit, other: Edit) -> bool:
    if REWRITE in (one.op, other.op):
        return True
    if sense_of(one) == sense_of(other):
        return False  # the same twice is one by rule
    lines, others = (set(split_lines(edit.target)) - {""} for edit in (one, other))
    if lines & others and one.file == other.file:
        return True
    if one.kind == other.kind == "example":
        return bool(set(one.items) & set(other.items))
    words, more = _words_of(one), _words_of(other)
    return len(words & more) >= _LIKE * min(len(words), len(more)) and bool(words & more)


def _words_of(edit: Edit) -> set[str]:
    return {word for line in split_lines(edit.content) for word in normalized_words(line)}


def joined(offered: Sequence[Edit]) -> tuple[list[Edit], str]:
    """Return the edits of a group joined by rule, and the rule's tag."""
    if any(edit.op == REWRITE for edit in offered):
        best = max(range(len(offered)), key=lambda n: (offered[n].support, -n))
        return [_passed_on(offered[best])], "most_supported/1"
    groups: dict[tuple[Any, ...], list[Edit]] = {}
    for edit in offered:
        groups.setdefault(sense_of(edit), []).append(edit)
    return [_of_parents(group[0], group) for group in groups.values()], "concat/1"


def proposals_text(
    edits: Sequence[Edit], *, numbered: bool = False, failed: frozenset[str] | None = None
) -> str:
    """Return edits as JSON lines, fenced; `numbered` counts them from 0, else by their ids.

    `failed`: items that failed in this step, of which each edit's are counted.
    """
    lines = []
    for number, edit in enumerate(edits):
        data: dict[str, Any] = {"number": number} if numbered else {"id": edit.id}
        data |= {"support": edit.support, "kind": edit.kind}
        if failed is not None:
            data["failed"] = len(failed & set(edit.items))
        if edit.op not in ("suggest", REWRITE):
            target = edit.target if edit.target else None
            data |= {"op": edit.op, "target": target, "section": edit.section}
            data |= {} if edit.file == MAIN else {"file": edit.file}
        data |= {"content": edit.content, "reason": edit.reason}
        lines.append(json.dumps(data, ensure_ascii=False))
    return fenced({"proposals": "\n".join(lines)})["proposals"]


def _question(
    asker: Asker,
    view: StepView,
    ground: ProposalContext,
    patches: Sequence[Patch],
    offered: Sequence[Edit],
) -> Query[tuple[list[Edit], str]]:
    suffix = MODES[view.update_mode][0]
    sources = {patch.source for patch in patches}
    side = sources.pop() if len(sources) == 1 else "final"
    values = {
        **step_state(view, asker.options, "merge"),
        "count": str(len(offered)),
        "proposals": proposals_text(offered),
    }
    by_id = {edit.id: edit for edit in offered}
    return Query(
        stage="merge",
        options="merge",
        prompt=asker.fill(f"merge_{side}_{suffix}", values),
        schema=_SCHEMAS[suffix],
        read=partial(_read, suffix, ground=ground, by_id=by_id),
        otherwise="the proposals are joined by rule",
        narrow=lambda schema: _narrowed(schema, list(by_id), ground),
    )


def _narrowed(
    schema: dict[str, Any], ids: list[str], ground: ProposalContext
) -> dict[str, Any]:
    properties = schema["properties"]
    if "edits" in properties:
        narrow_file(properties["edits"]["items"], ground)
    for name in ("edits", "suggestions"):
        if name in properties:
            properties = properties[name]["items"]["properties"]
            break
    properties["parents"]["items"] |= {"enum": ids}
    return schema


def _read(
    suffix: str, found: Mapping[str, Any], ground: ProposalContext, by_id: Mapping[str, Edit]
) -> Parsed[tuple[list[Edit], str]]:
    kept = ParsedEdits()
    edits: list[Edit] = []
    for name, part in _parts(suffix, found):
        parents = _parents(name, part, by_id, kept)
        if not parents:
            continue
        if suffix == "full":
            kept.faults += document_faults(part["document"], ground)
            edits += [] if kept.faults else [Edit(REWRITE, content=part["document"])]
            edits = [_of_parents(edit, parents) for edit in edits]
            continue
        # What the screen goes by is inherited: an example comes from an example.
        heir = _of_parents(Edit("append", kind=str(part.get("kind"))), parents)
        part = {**part, "kind": heir.kind, "items": list(heir.items)}
        sort = sort_edits if suffix == "patch" else sort_suggestions
        one = sort([part], ground)
        kept.faults += [f"{name}{said[said.index(']') + 1 :]}" for said in one.faults]
        kept.dropped += [f"{name}{said[said.index(']') + 1 :]}" for said in one.dropped]
        edits += [_of_parents(edit, parents) for edit in one.edits]
    if edits:
        return Parsed((edits, reasoning_of(found)), tuple(kept.faults), tuple(kept.dropped))
    what = "; ".join([*kept.faults, *kept.dropped])
    none = f"merge_dropped_all: {len(by_id)} proposals went in and no usable one came out"
    return Parsed(None, (f"{none}: {what}" if what else none,))


def _parts(suffix: str, found: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    if suffix == "full":
        return [("document", found)]
    name = "edits" if suffix == "patch" else "suggestions"
    return [(f"{name}[{n}]", part) for n, part in enumerate(found[name]) if part is not None]


def _parents(
    name: str, part: Mapping[str, Any], by_id: Mapping[str, Edit], kept: ParsedEdits
) -> list[Edit]:
    named = list(dict.fromkeys(part["parents"]))
    strangers = [id for id in named if id not in by_id]
    if strangers:
        kept.faults.append(f"{name}: unknown_parents: {quoted(strangers)} were not offered")
    elif not named:
        kept.faults.append(f"{name}: no_parents: name the ids of the proposals it comes from")
    return [edit for id, edit in by_id.items() if id in named]


def _of_parents(edit: Edit, parents: Sequence[Edit]) -> Edit:
    """Return `edit` as the child of `parents`: their items, and `example` only from one."""
    items = tuple(dict.fromkeys(item for parent in parents for item in parent.items))
    was_example = any(parent.kind == "example" for parent in parents)
    kind = edit.kind if edit.kind != "example" or was_example else "rule"
    return replace(
        edit, id="", items=items, kind=kind, parents=tuple(parent.id for parent in parents)
    )


def _passed_on(edit: Edit) -> Edit:
    return _of_parents(edit, [edit])
