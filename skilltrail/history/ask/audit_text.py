"""An audit in words: on one screen for people, or as Markdown for a pull request.

Both are made from the same parts. Text from models and data is quoted: shortened, on one line,
hidden characters spelled out; in Markdown inside code, so that nothing in it is interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skilltrail.core.hidden import spelled_block
from skilltrail.history.ask import audit_record as record
from skilltrail.history.ask.audit_record import Audit, Flip, Judgement, LineOrigin, Tried
from skilltrail.history.ask.line_history import Attempt, LineHistory
from skilltrail.history.log.terms import in_terms
from skilltrail.history.log.words import costs, count, on_target, score, visible
from skilltrail.skill.edit import Edit
from skilltrail.skill.folder import MAIN

MOST = 5  # rows of each list, unless all are asked for
WIDTH = 72


@dataclass(frozen=True)
class Rows:
    """A titled list of rows; `code` is a block shown as it is."""

    title: str
    rows: tuple[str, ...] = ()
    code: str = ""


def audit_text(audit: Audit, *, everything: bool = False) -> str:
    """Return the audit as plain text; long lists are cut unless `everything`."""
    blocks = [headline(audit)]
    for part in _parts(audit, Plain(), None if everything else MOST):
        rows = [f"  {row}" for row in part.rows]
        lines = spelled_block(part.code).removesuffix("\n").split("\n") if part.code else []
        code = [f"  {line}" for line in _cut(lines, None if everything else 4 * MOST)]
        blocks.append("\n".join([part.title.upper(), *rows, *code]))
    return "\n\n".join(blocks) + "\n"


def audit_markdown(audit: Audit, *, everything: bool = True) -> str:
    """Return the audit as Markdown that renders safely on a forge."""
    blocks = [f"## {headline(audit, Marked())}"]
    for part in _parts(audit, Marked(), None if everything else MOST):
        blocks.append(f"### {part.title}")
        if part.rows:
            blocks.append("\n".join(f"- {row}" for row in part.rows))
        if part.code:
            blocks.append(fenced(part.code, "diff"))
    return "\n\n".join(blocks) + "\n"


class Plain:
    """How quoted text looks on a screen."""

    def quote(self, text: str, most: int = WIDTH) -> str:
        return f'"{visible(text, most)}"'

    def name(self, text: str) -> str:
        return visible(text, 40)


class Marked(Plain):
    """How quoted text looks in Markdown: a code span that its own backticks cannot end."""

    def quote(self, text: str, most: int = WIDTH) -> str:
        shown = visible(text, most)
        fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
        return f"{fence} {shown} {fence}" if shown.strip() else "(empty)"

    def name(self, text: str) -> str:
        return self.quote(text, 40)


def fenced(text: str, language: str = "") -> str:
    """Return `text` as a fenced block that nothing in it can end."""
    shown = spelled_block(text).removesuffix("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{fence}{language}\n{shown}\n{fence}"


def headline(audit: Audit, style: Plain | None = None) -> str:
    """Return what the audit is of, where it stands and how it ended, in one line."""
    style = Plain() if style is None else style
    subject = audit.subject
    if subject.startswith("text "):
        subject = f"text {style.quote(subject[6:-1], 40)}"
    where = [] if audit.version is None else [f"v{audit.version}"]
    if audit.step is not None:
        where.append(f"step {audit.step}, epoch {audit.epoch}")
    if audit.source == "slow_update":
        where.append("slow update")
    if audit.source == "compaction":
        where.append("compaction")
    place = f" ({', '.join(where)})" if where else ""
    return f"Why {subject}{place}? {audit.result.replace('_', ' ')}"


def _parts(audit: Audit, style: Plain, most: int | None) -> list[Rows]:
    parts = [
        Rows("Lines", tuple(f"{n}: {style.quote(text, 200)}" for n, text in audit.lines)),
        Rows("Parents", (audit.parents,) if audit.parents else ()),
        Rows("Origin", tuple(_cut([_origin(o, style) for o in audit.origins], most))),
        Rows("Evidence", tuple(_cut([_case(c, style) for c in audit.cases], most))),
        Rows("Proposed", tuple(_proposed(audit, style, most))),
        Rows("Merged", tuple(_merged(audit, style, most))),
        Rows("Selected", tuple(_selected(audit, most))),
        Rows("Applied", tuple(_applied(audit, style, most))),
        Rows("Verdict", tuple(_verdict(audit, style, most))),
        Rows("Aftermath", tuple(_line_histories(audit, style))),
        Rows("Diff", code=audit.diff),
    ]
    return [part for part in parts if part.rows or part.code]


def _origin(origin: LineOrigin, style: Plain) -> str:
    risks = f" [{', '.join(origin.risks)}]" if origin.risks else ""
    if origin.item is None:
        return f"{style.quote(origin.line)}{risks}: in no text of an available rollout"
    step = "" if origin.step is None else f", step {origin.step}"
    return (
        f"{style.quote(origin.line)}{risks}: {style.quote(origin.phrase)} stands first in item"
        f" {style.quote(origin.item, 40)} ({origin.where}{step})"
    )


def _cut(rows: Sequence[str], most: int | None) -> Iterable[str]:
    shown = rows if most is None else rows[:most]
    yield from shown
    if len(shown) < len(rows):
        yield f"… and {len(rows) - len(shown)} more (--all)"


def _case(case: record.Basis, style: Plain) -> str:
    reason = visible(case.reason, 40)
    named = case.failure_type not in (None, case.reason)
    why = (
        reason
        if case.failure_type is None or not named
        else f"{reason}, {visible(case.failure_type, 40)}"
    )
    row = (
        f"{style.quote(case.item, 40)} {why}: hard {score(case.hard)}, soft {score(case.soft)}"
    )
    seen = case.seen
    if seen.prompt is not None:
        row += f"; asked {style.quote(seen.prompt[-WIDTH:])}"
    if seen.reply is not None:
        row += f"; replied {style.quote(seen.reply)}"
    if seen.expected is not None:
        row += f"; expected {style.quote(seen.expected)}"
    if seen.reply is None and case.key is not None:
        row += f"; rollout {case.key[:12]}"
    return row


def _edit(edit: Edit, style: Plain) -> str:
    target, content = style.quote(edit.target, 40), style.quote(edit.content)
    words = {
        "append": f"append {content}",
        "insert_after": f"after {target} insert {content}",
        "replace": f"replace {target} by {content}",
        "delete": f"delete {target}",
        "write_region": f"write {target}: {content}",
        "suggest": f"suggest {content}",
        "rewrite": "rewrite the whole document",
    }
    said = f", because {style.quote(edit.reason)}" if edit.reason else ""
    where = "" if edit.file == MAIN else f" in {style.quote(edit.file)}"
    return f"{edit.id} {words[edit.op]}{where} ({count(edit.support, 'item')}){said}"


def _proposed(audit: Audit, style: Plain, most: int | None) -> Iterable[str]:
    for one in audit.proposals:
        said = f": {style.quote(in_terms(one.reasoning), 200)}" if one.reasoning else ""
        items = count(len(one.items), "rollout")
        yield f"{one.patch} by {one.by} from {items}, {one.source}{said}"
        yield from _cut([f"  {_edit(edit, style)}" for edit in one.edits], most)
    for reply in audit.unusable_replies:
        yield f"unusable reply, {style.quote(reply)}"


def _merged(audit: Audit, style: Plain, most: int | None) -> Iterable[str]:
    for one in audit.merges:
        dropped = f", dropped {', '.join(one.dropped)}" if one.dropped else ""
        said = f": {style.quote(one.reason, 120)}" if one.reason else ""
        inputs = ", ".join(one.inputs)
        edits = count(len(one.edits), "edit")
        yield f"{one.patch} from {inputs} by {one.by}, {edits}{dropped}{said}"
        rows = [f"  {edit.id} from {', '.join(edit.parents)}" for edit in one.edits]
        yield from _cut(rows, most)


def _selected(audit: Audit, most: int | None) -> Iterable[str]:
    if not audit.selected and not audit.left_out:
        return
    total = count(len(audit.selected) + len(audit.left_out), "edit")
    cap = "no cap" if audit.budget is None else f"budget {audit.budget}"
    yield f"{len(audit.selected)} of {total} ({cap}: {audit.budget_reason})"
    yield f"by {audit.selected_by}, {', '.join(audit.selected)}"
    yield from _cut([f"left out {edit}: {reason}" for edit, reason in audit.left_out], most)


def _applied(audit: Audit, style: Plain, most: int | None) -> Iterable[str]:
    for one in audit.edits:
        place = _place(one, audit.parent_version)
        detail = f" ({style.quote(one.detail)})" if one.detail else ""
        descent = f", from {', '.join(one.descent)}" if one.descent else ""
        yield f"{_edit(one.edit, style)}: {one.status}{place}{descent}{detail}"
    for fault in audit.faults:
        yield f"invalid document: {style.quote(fault)}"


def _place(one: Tried, parent: int | None) -> str:
    """Say where in the parent's text an edit was applied."""
    if not one.lines:
        return ""
    side = "at" if one.edit.op in ("replace", "delete", "write_region") else "after"
    lines = ", ".join(map(str, one.lines[:8]))
    inside = "" if one.edit.file == MAIN else f"{one.edit.file} of "
    return f" {side} line {lines} of {inside}" + (
        "the parent" if parent is None else f"v{parent}"
    )


def _verdict(audit: Audit, style: Plain, most: int | None) -> Iterable[str]:
    gate = audit.gate
    if gate is None:
        return
    yield _means(gate)
    yield from map(on_target, gate.targets)
    if gate.cost is not None:
        yield costs(gate.cost)
    for name, flips in (("won", gate.won), ("lost", gate.lost)):
        if flips:
            rows = _cut([_flip(flip, style) for flip in flips], most)
            yield f"{name} {len(flips)}: {', '.join(rows)}"
    if audit.tokens_before is not None and audit.tokens_after is not None:
        yield f"{audit.tokens_before} → {audit.tokens_after} tokens"


def _means(gate: Judgement) -> str:
    if gate.after_max is not None:
        after, items = (
            f"at most {score(gate.after_max)}",
            f"{gate.judged} of {gate.total} items",
        )
    else:
        after, items = score(gate.after), count(gate.judged, "item")
    p = "" if gate.statistic is None else f", p={gate.statistic['p']:.3g}"
    saved = f", {count(gate.saved, 'rollout')} skipped" if gate.saved else ""
    forced = ", forced" if gate.forced else ""
    tail = f"{gate.rule} on {gate.metric}, {in_terms(gate.reason)}{p}{saved}{forced}"
    return f"{gate.verdict}: {score(gate.before)} → {after} on {items} ({tail})"


def _flip(flip: Flip, style: Plain) -> str:
    return f"{style.name(flip.item)} {_short(flip.before)}→{_short(flip.after)}"


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _line_histories(audit: Audit, style: Plain) -> Iterable[str]:
    for one in audit.edits:
        if one.fate is not None:
            yield f"{one.edit.id} {_line_history(one.fate)}"
    for attempt in audit.attempts:
        yield _attempt(attempt, style)


def _attempt(attempt: Attempt, style: Plain) -> str:
    what = f"{attempt.op} {style.quote(attempt.line, 60)}"
    most = f"at most {score(attempt.after_max)}"
    after = most if attempt.after is None else score(attempt.after)
    outcome = f"{attempt.verdict}: {score(attempt.before)} → {after}"
    return f"step {attempt.step} tried to {what} ({attempt.edit}); {outcome}"


def _line_history(fate: LineHistory) -> str:
    wrote = f"wrote {count(fate.written, 'line')}"
    losses = "; ".join(
        f"{loss.lines} gone in v{loss.version}"
        + ("" if loss.patch is None else f" by {loss.patch}")
        for loss in fate.losses
    )
    kept = "all" if fate.kept == fate.written else str(fate.kept)
    end = f"{kept} still in v{fate.last_version}" if fate.kept else "none left"
    return f"{wrote}: {losses}; {end}" if losses else f"{wrote}: {end}"
