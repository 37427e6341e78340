"""A candidate: what a set of changes makes of its parent document, line by line.

Each of its lines knows where it comes from: a line of the parent (its 0-based number) or the
edit that wrote it (its id). That follows from the changes themselves: lines outside them are
carried over; inside a replaced span, lines that stay word for word are carried too; and a line
that is taken out in one place and written back word for word in another has moved.
"""

from __future__ import annotations

import difflib
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from skilltrail.skill.alignment import comparable
from skilltrail.skill.document import (
    Document,
    frontmatter_text,
    parse,
    raw_lines,
    split_lines,
    unified_diff,
)
from skilltrail.skill.edit import EditResult, EditStatus
from skilltrail.skill.folder import MAIN, FolderFile, folder_text, gap, main_text, parts_of
from skilltrail.skill.markdown import is_blank
from skilltrail.skill.structure import structure_faults

# Where a line comes from: a line number of the parent, or the id of the edit that wrote it.
Source = int | str


@dataclass(frozen=True)
class Splice:
    """Put `lines` (without ends) in place of the parent's lines `start` up to `end`."""

    start: int
    end: int
    lines: tuple[str, ...]
    edit: str


@dataclass(frozen=True)
class Candidate:
    """A parent document after its edits.

    Attributes:
        results: exactly one per proposed edit, in the order they were proposed.
        sources: one per line of `text`.
        added, removed: lines written and lines taken out (a moved line is both).
        owned: names of the regions that were written by their owner.
        held: True where a frozen frontmatter made a difference: an edit was refused for its
            sake, or a text's own was left out.
        freed: True where leave to make and remove references made a difference.
    """

    parent: str
    text: str
    results: tuple[EditResult, ...]
    sources: tuple[Source, ...]
    added: int
    removed: int
    owned: frozenset[str] = frozenset()
    held: bool = False
    freed: bool = False

    @property
    def changed(self) -> bool:
        return self.text != self.parent

    @property
    def applied(self) -> tuple[str, ...]:
        """Ids of the edits that are in the text: the only ones a verdict may be credited to."""
        return tuple(r.edit for r in self.results if r.status is EditStatus.APPLIED)

    @property
    def not_applied(self) -> tuple[str, ...]:
        return tuple(r.edit for r in self.results if r.status is not EditStatus.APPLIED)

    @cached_property
    def diff(self) -> str:
        return unified_diff(self.parent, self.text)

    @cached_property
    def faults(self) -> tuple[str, ...]:
        """Why the text must not be evaluated; () = it can be. An unchanged text has none."""
        if not self.changed:
            return ()
        return (*structure_faults(self.text), *self._region_faults(), *self._held_faults())

    def _held_faults(self) -> Iterator[str]:
        if self.held and frontmatter_text(self.parent) != frontmatter_text(self.text):
            yield "the frozen frontmatter is not what it was"

    def _region_faults(self) -> Iterator[str]:
        before, after = _region_texts(self.parent), _region_texts(self.text)
        for name in sorted(before.keys() | after.keys()):
            if name not in self.owned and before.get(name) != after.get(name):
                yield f"the protected region {name} is not what it was"


def composed(first: Candidate, second: Candidate) -> Candidate:
    """Return the candidate of two changes, one after the other; lines keep their sources.

    Raises:
        ValueError: the second does not start from what the first made.
    """
    if second.parent != first.text:
        raise ValueError("the second candidate does not start from the first one's text")
    sources = (first.sources[s] if isinstance(s, int) else s for s in second.sources)
    return Candidate(
        first.parent,
        second.text,
        first.results + second.results,
        tuple(sources),
        first.added + second.added,
        first.removed + second.removed,
        first.owned | second.owned,
        first.held or second.held,
        first.freed or second.freed,
    )


def joined(
    parent: str,
    made: Mapping[str, Candidate],
    results: Sequence[EditResult],
    removed: Collection[str] = (),
) -> Candidate:
    """Return the candidate of a folder of which some files were `made` anew, by path.

    A made file that the parent does not have is new; those `removed` are among the made ones.
    `results` are those of all edits, in the order they were proposed.
    """
    before = parts_of(parent)
    parts = {part.path: part for part in before}
    texts = {path: part.text for path, part in parts.items()}
    texts |= {path: one.text for path, one in made.items()}
    gaps = {after.path: gap(one.text) for one, after in pairwise(before)}
    sources: list[Source] = []
    ended, author = True, ""  # whether what stands so far ends with a line end, and who wrote
    for path in [MAIN, *sorted(texts.keys() - {MAIN})]:
        part, one = parts.get(path), made.get(path)
        wrote = one.applied[-1] if one is not None and one.applied else ""
        if path in removed:
            author = wrote
            continue
        if path != MAIN:  # the line that names it, and a blank one after a whole line
            if ended:
                sources.append(_blank_above(part, gaps, author, wrote))
            sources.append(wrote if part is None else part.start - 1)
        start = 0 if part is None else part.start
        own = range(len(split_lines(texts[path]))) if one is None else one.sources
        sources += [s + start if isinstance(s, int) else s for s in own]
        ended = not texts[path] or texts[path].endswith("\n")
        author = wrote or author
    text = folder_text({path: one for path, one in texts.items() if path not in removed})
    old = split_lines(parent)
    added = sum(isinstance(source, str) for source in sources)
    return Candidate(
        parent,
        text,
        tuple(results),
        tuple(moved(old, split_lines(text), sources)),
        added,
        len(old) - (len(sources) - added),
        frozenset(name for one in made.values() for name in one.owned),
        any(one.held for one in made.values()),
    )


def _blank_above(
    part: FolderFile | None, gaps: Mapping[str, int], author: str, wrote: str
) -> Source:
    """Return the source of the blank line above the line that names a file: the parent's own,
    else the edit that made the file, or that let the text before end with a whole line."""
    if part is None:
        return wrote
    return part.start - 2 if gaps[part.path] == 2 else author


def _region_texts(text: str) -> dict[str, list[str]]:
    """Return the regions' texts by name, with line ends read as LF."""
    document = parse(main_text(text))
    texts: dict[str, list[str]] = defaultdict(list)
    for region in document.regions:
        texts[region.name].append("\n".join(document.lines[region.start : region.end]))
    return texts


def build(
    document: Document,
    splices: Sequence[Splice],
    results: Sequence[EditResult],
    owned: frozenset[str] = frozenset(),
    keep_ends: bool = False,
) -> Candidate:
    """Return the candidate of `splices`, which are in order and do not overlap.

    A line ends as the document's lines do (`Document.end`); lines of the frontmatter, and with
    `keep_ends` all that are carried over, end as they did.
    Without splices the text is the parent's, byte for byte.
    """
    parent, old = document.text, document.lines
    text, sources = _spliced(document, splices, keep_ends)
    added = sum(isinstance(source, str) for source in sources)
    removed = len(old) - (len(sources) - added)
    traced = moved(old, split_lines(text), sources)
    return Candidate(parent, text, tuple(results), tuple(traced), added, removed, owned)


def _spliced(
    document: Document, splices: Sequence[Splice], keep_ends: bool
) -> tuple[str, list[Source]]:
    parent, old = document.text, document.lines
    if not splices:
        return parent, list(range(len(old)))
    ends = [raw[len(line) :] for raw, line in zip(raw_lines(parent), old, strict=True)]
    for number, end in enumerate(ends):
        if end and not keep_ends and number >= document.frontmatter:
            ends[number] = document.end
    texts: list[str] = []
    sources: list[Source] = []
    at = 0
    for one in [*splices, Splice(len(old), len(old), (), "")]:
        for number in range(at, one.start):
            texts.append(old[number] + ends[number])
            sources.append(number)
        texts += [line + document.end for line in one.lines]
        sources += _carried(old, one)
        at = one.end
    # Only the last line may lack its end.
    texts[:-1] = [text if text.endswith("\n") else text + document.end for text in texts[:-1]]
    return "".join(texts), sources


def _carried(old: Sequence[str], one: Splice) -> list[Source]:
    """Return the sources of a splice's lines: unchanged ones keep theirs."""
    sources: list[Source] = [one.edit] * len(one.lines)
    for old_at, new_at, length in align(old[one.start : one.end], one.lines):
        for offset in range(length):
            sources[new_at + offset] = one.start + old_at + offset
    return sources


def align(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return runs (old index, new index, length) of lines that are the same, in order.

    Equal heads and tails are paired first; between them `difflib.SequenceMatcher` decides
    (longest common run first, then left and right of it).
    """
    shortest = min(len(old), len(new))
    head = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    tail = next(
        (n for n in range(shortest - head) if old[-1 - n] != new[-1 - n]), shortest - head
    )
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    lines = comparable(middle_old, middle_new)
    runs = difflib.SequenceMatcher(None, *lines).get_matching_blocks()
    return [
        (0, 0, head),
        *((run.a + head, run.b + head, run.size) for run in runs),
        (len(old) - tail, len(new) - tail, tail),
    ]


def moved(old: Sequence[str], new: Sequence[str], sources: Sequence[Source]) -> list[Source]:
    """Return `sources` with lines that were written back elsewhere traced to the parent."""
    carried = {source for source in sources if isinstance(source, int)}
    gone: dict[str, deque[int]] = defaultdict(deque)
    for number, line in enumerate(old):
        if number not in carried and not is_blank(line):
            gone[line].append(number)
    traced = list(sources)
    for index, (source, line) in enumerate(zip(sources, new, strict=True)):
        if isinstance(source, str) and gone.get(line):
            traced[index] = gone[line].popleft()
    return traced
