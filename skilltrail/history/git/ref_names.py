"""Which ref a run's commits belong to: labels, and the rule that a ref only moves forward.

A run's refs are `refs/evolution/<run>` and `refs/evolution-versions/<run>/v<N>`. `<run>` is a
label, and several runs may want the same one. For each new commit the first of `name`,
`name-2`, … is taken that already holds it, or has its parent as tip, or does not exist. So the
same run told again lands where it was, a run that goes on moves its ref forward, and a run that
parts ways gets a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

RUNS = "refs/evolution/"
VERSIONS = "refs/evolution-versions/"
DETACHED = "detached"
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//+")


@dataclass(frozen=True)
class Placement:
    """Where commits go: `name`, whose tip is `tip` (None: it does not exist yet).

    The first `written` commits of the chain stand in the repository already.
    """

    name: str
    written: int
    tip: str | None


def place(
    label: str,
    chain: Sequence[str],
    index: Mapping[str, int],
    refs: Mapping[str, str],
    history: Callable[[str], Sequence[str]],
) -> Placement:
    """Return where the commits `chain` (oldest first) go.

    Args:
        index: position in `chain` by commit.
        refs: tip by full ref name, all refs under `RUNS`.
        history: commits that a tip holds, newest first.
    """
    placed = 0
    for name in names(label, refs):
        tip = refs.get(RUNS + name)
        if tip is None:
            return Placement(name, placed, None)
        if tip in index:
            if index[tip] + 1 >= placed:
                return Placement(name, index[tip] + 1, tip)
            continue
        shared = next((index[sha] + 1 for sha in history(tip) if sha in index), 0)
        if shared == len(chain):
            return Placement(name, shared, tip)
        placed = max(placed, shared)
    raise AssertionError("names never end")


def names(label: str, refs: Mapping[str, str]) -> Iterator[str]:
    """Yield `label`, `label-2`, …, without names that git cannot keep beside its other refs."""
    base = ref_label(label)
    if _blocked(base, refs):
        base = base.replace("/", "-")
    number = 1
    while True:
        name = base if number == 1 else f"{base}-{number}"
        if not _blocked(name, refs):
            yield name
        number += 1


def ref_label(label: str) -> str:
    """Return `label` as a name that git accepts for a ref."""
    name = _FORBIDDEN.sub("-", label).strip("/")
    parts = [part.strip(".").removesuffix(".lock") for part in name.split("/")]
    name = "/".join(part for part in parts if part)
    return name if name not in ("", "@", "-") else DETACHED


def _blocked(name: str, refs: Mapping[str, str]) -> bool:
    """True when a ref stands where `name` needs a folder, or the other way round."""
    full = RUNS + name
    return any(ref.startswith(full + "/") or full.startswith(ref + "/") for ref in refs)
