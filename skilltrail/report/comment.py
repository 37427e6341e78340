"""A run as a comment on a pull request: scores, the skill's diff, and why each change was made.

Markdown that a forge renders safely: text of models, items and skills stands in code alone. A
forge takes 65,536 characters; what does not fit is named, with the command that shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skilltrail.history.ask.audit_record import Audit
from skilltrail.history.ask.audit_text import Marked, audit_markdown, fenced
from skilltrail.history.log.words import count

MOST_CHARS = 60_000
MOST_DIFF_LINES = 400
COLUMNS = ("split", "items", "seed skill", "best skill", "gain (95 % interval)")


@dataclass(frozen=True)
class Gain:
    """A paired gain on items that nothing was chosen on, with its 95 % interval."""

    mean: float
    low: float
    high: float
    items: int

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


@dataclass(frozen=True)
class CommentContent:
    """What a comment tells.

    Attributes:
        gain: None where no items were held out, or not all of them were scored.
        least: what the lower end of the gain must be above; None = no threshold.
        rows: cells of the table of scores, see `COLUMNS`.
        notes: further lines, of our own words only.
        run: its name, which is a branch's and so anybody's.
        diff: what training made of the skill.
        audits: of the versions that lie between.
    """

    gain: Gain | None
    least: float | None
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    run: str | None = None
    diff: str = ""
    audits: Sequence[Audit] = ()

    @property
    def passed(self) -> bool:
        """True without a threshold; False where there is one and no gain to hold against it."""
        if self.least is None:
            return True
        return self.gain is not None and self.gain.low > self.least

    @property
    def title(self) -> str:
        if self.gain is None:
            return "Skilltrail: no gain on held-out items is available"
        return f"Skilltrail: {self.gain.mean:+.3f} on {self.gain.items} held-out items"


def verdict(told: CommentContent) -> str:
    """Return in a sentence how the gain stands against the threshold."""
    if told.gain is None:
        least = "" if told.least is None else f"; the threshold is {told.least:+.3f}"
        return f"no gain on held-out items is available{least}"
    interval = f"the 95 % interval of the gain is {told.gain.low:+.3f} to {told.gain.high:+.3f}"
    if told.least is None:
        return interval
    side = "above" if told.passed else "not above"
    return f"{interval}; its lower end is {side} the threshold {told.least:+.3f}"


def markdown(told: CommentContent) -> str:
    """Return the comment."""
    mark = "" if told.least is None else "**passed**: " if told.passed else "**failed**: "
    named = [] if told.run is None else [f"Run {Marked().name(told.run)}."]
    parts = [
        f"## {told.title}",
        f"{mark}{verdict(told)}.",
        _table(told.rows),
        "\n".join(f"- {note}" for note in (*named, *told.notes)),
        *_changed(told.diff),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    left = 0
    for audit in told.audits:
        step = "" if audit.step is None else f", step {audit.step}"
        summary = f"Why v{audit.version}{step}? {audit.result.replace('_', ' ')}"
        block = f"\n{_folded(summary, audit_markdown(audit, everything=False))}\n"
        if left or len(text) + len(block) > MOST_CHARS:
            left += 1
        else:
            text += block
    if left:
        text += f"\n{count(left, 'audit')} left out: `skilltrail export --audit FILE`\n"
    return text


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = (COLUMNS, ("---",) * len(COLUMNS), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _changed(diff: str) -> Iterator[str]:
    if not diff:
        yield "The skill is as it was: no change was accepted."
        return
    lines = diff.splitlines()
    shown = "\n".join(lines[:MOST_DIFF_LINES])
    more = len(lines) - MOST_DIFF_LINES
    rest = (
        f"\n\n{count(more, 'line')} left out: `skilltrail diff seed best`" if more > 0 else ""
    )
    body = fenced(shown[: MOST_CHARS // 2], "diff") + rest
    yield _folded("What changed in the skill", body)


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body.rstrip()}\n\n</details>"
