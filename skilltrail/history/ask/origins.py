"""Where a line's words came from: the train item whose text first carried them.

A text that anyone may have written (a page, a file, a tool's answer) reaches a skill through a
rollout that an analyst read. Runs of `_RUN` words of each written line are looked for, in any
case and punctuation, in what the rollouts before the change held. Runs that most items hold are
the task's own words; of the rest the item with most of them is named, the earliest of equals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from skilltrail.history.ask.audit_record import LineOrigin, RolloutEvidence
from skilltrail.history.log.types.outcomes import RolloutsScored
from skilltrail.skill.risks import risks_of

_RUN = 5
_LEAST = 3  # words; a shorter line says nothing of its own
_COMMON = 0.5
_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W_]+")


def origins(
    lines: Sequence[str], learned: Sequence[RolloutsScored], evidence: RolloutEvidence
) -> tuple[LineOrigin, ...]:
    """Return, for each line that came from somewhere or carries a risk, what is known of it.

    Args:
        learned: the train rollouts before the change, in order.
    """
    runs = {line: _runs(line) for line in lines if line.strip()}
    wanted = {run for own in runs.values() for run in own}
    holders = _holders(wanted, learned, evidence) if wanted else {}
    items = {row.item for said in learned for row in said.items}
    most = max(1, int(_COMMON * len(items)))
    found = []
    for line, own in runs.items():
        risks = tuple(risk.value for risk in risks_of(line))
        held = [run for run in own if run in holders]
        telling = [run for run in held if len(holders[run]) <= most]
        if risks and not telling:
            telling = held
        if not telling and not risks:
            continue
        item, where, step = _most_common(holders[run] for run in telling)
        said = [run for run in telling if any(place[0] == item for place in holders[run])]
        found.append(
            LineOrigin(line, risks, item, where, step, said[0].strip() if said else "")
        )
    return tuple(found)


Place = tuple[str, str, int | None]  # item, what of it, step


def _holders(
    wanted: set[str], learned: Sequence[RolloutsScored], evidence: RolloutEvidence
) -> dict[str, list[Place]]:
    """Return for each run of words the places that hold it: one of each item, in order."""
    holders: dict[str, list[Place]] = {}
    seen: set[tuple[str, str]] = set()
    by_word: dict[str, list[str]] = {}
    for run in sorted(wanted):
        by_word.setdefault(run.split()[0], []).append(run)
    for said in learned:
        for row in said.items:
            for where, text in evidence.texts(row.item, row.key):
                words = list(_words(text))
                joined = f" {' '.join(words)} "
                for run in (run for word in by_word.keys() & words for run in by_word[word]):
                    if run in joined and (row.item, run) not in seen:
                        seen.add((row.item, run))
                        holders.setdefault(run, []).append((row.item, where, said.step))
    return holders


def _most_common(groups: Iterable[Sequence[Place]]) -> tuple[str | None, str, int | None]:
    """Return the place of the item that most groups name, the first of equals."""
    counts: dict[str, int] = {}
    places: dict[str, Place] = {}
    for group in groups:
        for place in group:
            counts[place[0]] = counts.get(place[0], 0) + 1
            places.setdefault(place[0], place)
    if not counts:
        return None, "", None
    return places[max(counts, key=lambda item: counts[item])]


def _runs(line: str) -> list[str]:
    words = list(_words(line))
    size = min(_RUN, len(words))
    if size < _LEAST:
        return []
    return [f" {' '.join(words[at : at + size])} " for at in range(len(words) - size + 1)]


def _words(text: str) -> Iterator[str]:
    return (word.casefold() for word in _WORD.findall(text))
