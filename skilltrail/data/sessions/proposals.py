"""Proposed items: episodes as records of `qa`, without secrets and personal data, one each.

`proposed.jsonl` is written by `harvest`, `items.jsonl` by a person's review; `reviewed.jsonl`
keeps what was decided, so that nothing is proposed twice. A session is a group: its items stay
in one split. Text of a session is data here and is never followed or run.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skilltrail.core.canon import canonical, cleaned, text_digest
from skilltrail.core.errors import DataError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.core.hidden import UNSEEN
from skilltrail.data.sessions.episodes import Episode

PROPOSED, ITEMS, REVIEWED = "proposed.jsonl", "items.jsonl", "reviewed.jsonl"
_ABOUT = ("found", "command", "sessions")  # of a proposal, and no field of an item
_PERSONAL = (
    (re.compile(r"(?<![\w.+-])[\w.+-]{1,200}@[\w-]{1,200}\.[\w.-]{0,200}\w"), "[mail]"),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)"), "[address]"),
    (re.compile(r"(?<!\w)\+\d[\d ()/-]{7,}\d"), "[phone]"),
    (re.compile(r"(?<!\w)(?:\(\d{2,5}\)|0\d{2,4})[ /-]\d[\d -]{4,}\d(?!\w)"), "[phone]"),
    (re.compile(r"(?:/home|/Users|[A-Z]:\\Users)[/\\][^/\\\s'\"`:]+"), "~"),
)


@dataclass
class Harvest:
    """What a harvest came to.

    Attributes:
        proposals: records, sorted by id.
        sessions, unread: files read, and lines passed over in them.
        found: episodes by kind, before near-duplicates were joined.
    """

    proposals: list[dict[str, Any]] = field(default_factory=list)
    sessions: int = 0
    unread: int = 0
    found: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@dataclass
class Collector:
    """Joins near-duplicates as episodes come; memory grows with different requests alone.

    Args:
        hide: takes secrets out of a text.
    """

    hide: Callable[[str], str]
    harvest: Harvest = field(default_factory=Harvest)
    _seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    _sessions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, episodes: Iterable[Episode]) -> None:
        """Take one session's episodes in; of near-duplicates the first outcome stays.

        Of what was merely asked nothing is kept until it is asked again.
        """
        for episode in episodes:
            same = same_request(episode.request)
            again = same in self._sessions
            self._sessions[same].add(text_digest(episode.session)[:16])
            known = self._seen.get(same)
            if episode.kind != "asked":
                self.harvest.found[episode.kind] += 1
                if known is None or known["found"] == "asked":
                    self._seen[same] = self._record(episode)
            elif again and known is None:
                self._seen[same] = self._record(episode)

    def done(self, decided: frozenset[str]) -> Harvest:
        """Return the harvest without what was decided before."""
        for same, record in self._seen.items():
            count = len(self._sessions[same])
            if record["found"] == "asked":
                if count < 2:
                    continue
                record["found"] = "repeated"
                self.harvest.found["repeated"] += 1
            record["sessions"] = count
            if record["id"] not in decided:
                self.harvest.proposals.append(record)
        self.harvest.proposals.sort(key=lambda record: str(record["id"]))
        return self.harvest

    def _record(self, episode: Episode) -> dict[str, Any]:
        asked, reply, said = map(self._clean, (episode.request, episode.reply, episode.said))
        record: dict[str, Any] = {
            "id": f"session:{same_request(episode.request)}",
            "question": asked,
            "answers": [reply],
            "scorer": "judge",
            "group": text_digest(episode.session)[:16],
            "task_type": episode.kind,
            "found": episode.kind,
        }
        if said:
            record["feedback" if episode.kind == "corrected" else "command"] = said
        return record

    def _clean(self, text: str) -> str:
        text = UNSEEN.sub("", self.hide(text))
        for pattern, instead in _PERSONAL:
            text = pattern.sub(instead, text)
        return str(cleaned(text)).strip()


def same_request(text: str) -> str:
    """Return what near-duplicates of a request share: a digest of its words, whatever their
    order, all numbers as one (16 hex digits)."""
    words = re.findall(r"\w+", re.sub(r"\d+", "0", text.casefold()))
    return text_digest(" ".join(sorted(set(words))))[:16]


def write_proposals(folder: Path, proposals: Sequence[Mapping[str, Any]]) -> int:
    """Write the proposals beside those that wait there, of another source perhaps; return how
    many there are."""
    path = folder / PROPOSED
    waiting = proposed_in(folder) if path.is_file() else []
    rows = {str(row["id"]): dict(row) for row in (*waiting, *proposals)}
    write_atomic(path, "".join(f"{canonical(rows[id])}\n" for id in sorted(rows)))
    return len(rows)


def decided_in(folder: Path) -> frozenset[str]:
    """Return the ids that a review has decided on."""
    return frozenset(str(row["id"]) for row in _rows(folder / REVIEWED))


def proposed_in(folder: Path) -> list[dict[str, Any]]:
    """Return the proposals that nobody has decided on.

    Raises:
        UsageError: there is no file of them.
    """
    if not (folder / PROPOSED).is_file():
        remedy = "Make one: `skilltrail harvest --from claude`"
        raise UsageError(f"Reviewing {folder}", f"no {PROPOSED} there", remedy)
    decided = decided_in(folder)
    return [row for row in _rows(folder / PROPOSED) if row["id"] not in decided]


def decide(folder: Path, record: Mapping[str, Any], *, accepted: bool) -> None:
    """Keep a decision; an accepted record becomes an item, once."""
    if accepted:
        item = {name: value for name, value in record.items() if name not in _ABOUT}
        rows = {row["id"]: row for row in _rows(folder / ITEMS)} | {item["id"]: item}
        write_atomic(folder / ITEMS, "".join(f"{canonical(r)}\n" for r in rows.values()))
    line = {"id": record["id"], "accepted": accepted}
    with (folder / REVIEWED).open("a", encoding="utf-8") as file:
        file.write(canonical(line) + "\n")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
                row["id"]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                asked = f"{path.name}, line {number}"
                raise DataError(asked, "no record", "Mend or remove the line") from error
            yield row
