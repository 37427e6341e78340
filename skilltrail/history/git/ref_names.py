"""Which ref a run's commits belong to: labels, and the rule that a ref only moves forward.

A run's refs are `refs/evolution/<run>` and `refs/evolution-versions/<run>/v<N>`. `<run>` is a
label, and several runs may want the same one. For each new commit the first of `name`,
`name-2`, … is taken that already holds it, or has its parent as tip, or does not exist. So the
same run told again lands where it was, a run that goes on moves its ref forward, and a run that
parts ways gets a name of its own.

The evaluation that the pipeline makes goes on from its run's last commit on the same ref. Each
further one, and each that a person asks for, has `refs/evolution-evaluations/<run>/<n>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from skilltrail.core.hidden import HIDDEN

RUNS = "refs/evolution/"
VERSIONS = "refs/evolution-versions/"
EVALUATIONS = "refs/evolution-evaluations/"
DETACHED = "detached"
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//+")


@dataclass(frozen=True)
class Placement:
    """Where commits go: `ref`, whose tip is `tip` (None: it does not exist yet).

    The first `written` commits of the chain stand in the repository already.
    """

    ref: str
    written: int
    tip: str | None


def place(
    wanted: Iterable[str],
    chain: Sequence[str],
    index: Mapping[str, int],
    refs: Mapping[str, str],
    history: Callable[[str], Sequence[str]],
) -> Placement:
    """Return where the commits `chain` (oldest first) go.

    Args:
        wanted: full names of refs, the best first, without end.
        index: position in `chain` by commit.
        refs: tip by full ref name.
        history: commits that a tip holds, newest first.
    """
    placed = 0
    for ref in wanted:
        tip = refs.get(ref)
        if tip is None:
            return Placement(ref, placed, None)
        if tip in index:
            if index[tip] + 1 >= placed:
                return Placement(ref, index[tip] + 1, tip)
            continue
        shared = next((index[sha] + 1 for sha in history(tip) if sha in index), 0)
        if shared == len(chain):
            return Placement(ref, shared, tip)
        placed = max(placed, shared)
    raise AssertionError("names never end")


def run_refs(label: str, refs: Mapping[str, str]) -> Iterator[str]:
    """Yield the refs that a run called `label` may have, the best first."""
    return (RUNS + name for name in names(label, refs))


def evaluation_refs(run: str, *, apart: bool) -> Iterator[str]:
    """Yield the refs that an evaluation of `run` may have, the best first.

    `apart`: a person asked for it, so the run's own ref does not move.
    """
    if not apart:
        yield RUNS + run
    for number in count(1):
        yield f"{EVALUATIONS}{run}/{number}"


def names(label: str, refs: Mapping[str, str]) -> Iterator[str]:
    """Yield `label`, `label-2`, …, without names that git cannot keep beside its other refs."""
    base = ref_label(label)
    if _blocked(base, refs):
        base = base.replace("/", "-")
    for number in count(1):
        name = base if number == 1 else f"{base}-{number}"
        if not _blocked(name, refs):
            yield name


def ref_label(label: str) -> str:
    """Return `label` as a name that git accepts for a ref."""
    name = _FORBIDDEN.sub("-", label).strip("/")
    parts = [part.strip(".").removesuffix(".lock") for part in name.split("/")]
    name = "/".join(part for part in parts if part)
    return name if name not in ("", "@", "-") else DETACHED


def is_label(text: str) -> bool:
    """Return whether `text` can be a run's name, and shows as what it is."""
    return ref_label(text) == text and HIDDEN.search(text) is None


def _blocked(name: str, refs: Mapping[str, str]) -> bool:
    """True when a ref stands where `name` needs a folder, or the other way round."""
    full = RUNS + name
    return any(ref.startswith(full + "/") or full.startswith(ref + "/") for ref in refs)
