"""The turns of a trajectory as text: each line told once, and cut turn by turn. Pure.

An agent's prompt repeats what it said before: history, commands, whole files. A line that
stands in an earlier turn is left out, and the gap says how many lines it is. What an agent did
(replies, tool calls) is never left out so.

Where the room is short every turn is kept and each thing said in it is cut to one length: head
and tail stay; below a length prompts are left out first. The first and the last turns and those
around the first sign of a wrong move keep four times that. Only where even the shortest form
does not fit are whole turns left out, from the middle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.optimizers.llm.shown.layout import call_text, laid_out, reply_text, sent_text

_LEAST_REPEAT_CHARS = 30  # shorter repetitions are told again: the gap would be as long
_SHORT_CHARS = 120
_PROMPT_CAP = 120  # with less than this for each thing said, prompts are left out
_LEAST_CAP = 70  # characters of a thing said, at the least
_KEY_FACTOR = 4  # of the length of others is what a key turn keeps
_ENDS = 2  # turns at either end that are key turns
_MARKS = re.compile(r"^[\s>*+-]+")
_WRONG = re.compile(
    r"nothing happens|traceback|\w*error\b|exception|not found|no match|no such|cannot|can't"
    r"|invalid|not run|no files?\b|there is no",
    re.IGNORECASE,
)

Cleaner = Callable[[str], str]


@dataclass(frozen=True)
class Spoken:
    """One thing said in a turn: a line that says what it is, and the text below it."""

    head: str
    text: str

    @property
    def is_prompt(self) -> bool:
        """True for what the agent was sent, which goes first where room is short."""
        return self.head.endswith("sent:")

    def within(self, cap: int | None) -> tuple[str, int]:
        """Return it with at most about `cap` characters of text, and how many were cut."""
        text, cut = (self.text, 0) if cap is None else squeezed(self.text, cap)
        return f"{self.head}\n{text}" if "\n" in text else f"{self.head} {text}", cut


@dataclass
class LinesTold:
    """Lines that were told already, each with the turn that told it first."""

    lines: dict[str, str] = field(default_factory=dict)

    def add(self, text: str, where: str) -> None:
        """Remember the lines of `text`."""
        for line in text.split("\n"):
            self.lines.setdefault(_core(line), where)
            _, colon, rest = line.partition(": ")
            if colon:
                self.lines.setdefault(_core(rest), where)

    def fresh(self, text: str, where: str) -> str:
        """Return `text` with runs of lines that were told before as gaps; "" if all were."""
        out: list[str] = []
        gap: list[str] = []
        for line in text.split("\n"):
            if self._knows(line):
                gap.append(line)
                continue
            out += self._closed(gap)
            gap = []
            out.append(line)
        if not any(line.strip() for line in out):
            return ""
        out += self._closed(gap)
        self.add(text, where)
        return "\n".join(out).strip("\n")

    def _knows(self, line: str) -> bool:
        core = _core(line)
        if not core or core in self.lines:
            return True
        # "Now you see: You open the fridge." repeats what the game answered a turn before.
        _, colon, rest = core.partition(": ")
        return bool(colon) and _core(rest) in self.lines

    def _closed(self, gap: Sequence[str]) -> list[str]:
        said = [line for line in gap if line.strip()]
        if sum(map(len, said)) < _LEAST_REPEAT_CHARS:
            return list(gap)
        places = {self.lines.get(_core(line)) for line in said}
        (place,) = places if len(places) == 1 else ("before",)
        count = "1 line" if len(said) == 1 else f"{len(said)} lines"
        return [f"({count} as {'before' if place in (None, 'before') else f'in {place}'})"]


def turns_text(turns: Sequence[Sequence[Spoken]], limit: int | None) -> tuple[str, int]:
    """Return turns as text of at most about `limit` characters, and how many were cut."""
    text, cut = _joined(turns, None, frozenset())
    if limit is None or len(text) <= limit:
        return text, cut
    key = _key_turns(turns)
    low, high = _LEAST_CAP, limit  # the longest cap that fits, by halving
    if len(_joined(turns, low, key)[0]) > limit:
        return _without_middle(turns, limit)
    while high - low > 1:
        middle = (low + high) // 2
        fits = len(_joined(turns, middle, key)[0]) <= limit
        low, high = (middle, high) if fits else (low, middle)
    return _joined(turns, low, key)


def turns_of(
    trajectory: Trajectory,
    show: Sequence[str],
    clean: Cleaner,
    told: LinesTold,
    label: str = "",
) -> list[list[Spoken]]:
    """Return what was said in each turn; `clean` takes secrets out of every text.

    `label` leads the name of a turn in references, where a text shows two trajectories.
    """
    found = []
    for number, turn in enumerate(trajectory.turns, start=1):
        name = f"turn {number}"
        found.append(list(_said(turn, name, f"{label}{name}", show, clean, told)))
    return found


def actions_of(trace: Any, clean: Cleaner, told: LinesTold) -> list[list[Spoken]]:
    """Return an agent program's own trace, a turn for each action, where it is a list."""
    if not isinstance(trace, list):
        return [[Spoken("[trace]", clean(laid_out(trace)))]]
    found = []
    for number, action in enumerate(trace, start=1):
        name = f"action {number}"
        if not isinstance(action, Mapping):
            found.append([Spoken(f"[{name}]", clean(laid_out(action)))])
            continue
        rest = {k: v for k, v in action.items() if k not in ("name", "input", "arguments")}
        call = clean(call_text(action))
        told.add(call, name)
        said = [Spoken(f"[{name}]", call)]
        if rest:
            shown = told.fresh(clean(laid_out(rest)), name)
            said += [Spoken(f"[{name}] gave:", shown)] if shown else []
        found.append(said)
    return found


def _said(
    turn: Turn, name: str, where: str, show: Sequence[str], clean: Cleaner, told: LinesTold
) -> Iterable[Spoken]:
    if "prompt" in show:
        sent = told.fresh(clean(sent_text(turn.sent)), where)
        if sent:
            yield Spoken(f"[{name}] sent:", sent)
    reply = clean(reply_text(turn.reply)).strip("\n")
    told.add(reply, where)
    finish = "" if turn.finish in ("stop", "tool") else f" ({turn.finish})"
    if reply or not turn.tool_calls:
        yield Spoken(f"[{name}] replied{finish}:", reply if reply else "(no text)")
    for call in turn.tool_calls:
        shown = clean(call_text(call))
        told.add(shown, where)
        yield Spoken(f"[{name}] called:", shown)
    if "trace" in show and turn.observation is not None:
        answered = clean(turn.observation).strip("\n")
        seen = told.fresh(answered, where)
        if not seen:  # a short answer is told again: it costs no more than saying where it is
            seen = answered if len(answered) <= _SHORT_CHARS else "(as before)"
        yield Spoken(f"[{name}] answered:", seen)


def squeezed(text: str, cap: int) -> tuple[str, int]:
    """Return at most about `cap` characters of `text`, head and tail, and how many were cut."""
    if len(text) <= cap:
        return text, 0
    head, tail = cap - cap // 2, cap // 2
    cut = len(text) - head - tail
    return f"{text[:head]} [… {cut} characters cut here …] {text[len(text) - tail :]}", cut


def _joined(
    turns: Sequence[Sequence[Spoken]], cap: int | None, key: frozenset[int]
) -> tuple[str, int]:
    lines, total, unsaid = [], 0, 0
    for number, said in enumerate(turns):
        own = cap if cap is None or number not in key else _KEY_FACTOR * cap
        for one in said:
            if own is not None and own < _PROMPT_CAP and one.is_prompt:
                total, unsaid = total + len(one.text), unsaid + 1
                continue
            text, cut = one.within(own)
            lines.append(text)
            total += cut
    if unsaid and len(turns) > 1:
        lines.append(f"[what was sent in {unsaid} turns is left out]")
    return "\n".join(lines), total


def _without_middle(turns: Sequence[Sequence[Spoken]], limit: int) -> tuple[str, int]:
    """Return the shortest form without turns from the middle, as many as it takes."""
    texts = [_joined([said], _LEAST_CAP, frozenset()) for said in turns]
    whole = [_joined([said], None, frozenset())[0] for said in turns]
    room, kept = limit, set[int]()
    numbers = range(len(turns))
    order = [n for pair in zip(numbers, reversed(numbers), strict=True) for n in pair]
    for number in dict.fromkeys(order):
        room -= len(texts[number][0]) + 1
        if room < 0 and kept:
            break
        kept.add(number)
    lines, cut, left_out = [], 0, [n for n in range(len(turns)) if n not in kept]
    for number in range(len(turns)):
        if number in kept:
            lines.append(texts[number][0])
            cut += texts[number][1]
        elif number == left_out[0]:
            lines.append(f"[turns {left_out[0] + 1} to {left_out[-1] + 1} are left out]")
    text, over = squeezed("\n".join(lines), max(limit, _LEAST_CAP))
    return text, cut + over + sum(len(whole[n]) for n in left_out)


def _key_turns(turns: Sequence[Sequence[Spoken]]) -> frozenset[int]:
    count = len(turns)
    key = {*range(min(_ENDS, count)), *range(max(0, count - _ENDS), count)}
    wrong = first_wrong(turns)
    if wrong is not None:
        key |= {n for n in (wrong - 1, wrong, wrong + 1) if 0 <= n < count}
    return frozenset(key)


def first_wrong(turns: Sequence[Sequence[Spoken]]) -> int | None:
    """Return the first turn whose answer tells of a failure, or that repeats an earlier one."""
    known: set[tuple[str, ...]] = set()
    for number, said in enumerate(turns):
        did = tuple(one.text for one in said if not one.is_prompt)
        answers = [one.text for one in said if one.head.endswith(("answered:", "gave:"))]
        if any(_WRONG.search(text) for text in answers) or (did and did in known):
            return number
        known.add(did)
    return None


def _core(line: str) -> str:
    return _MARKS.sub("", line).rstrip()
