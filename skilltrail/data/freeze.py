"""Put the items into train, selection and test, and freeze them.

Ready-made splits are taken as they are; otherwise the ratio decides, group by group. Either
way nothing may stand in two splits, and the result under data/splits/ names no path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrail.core.item import SPLITS, Item
from skilltrail.data.assign import assign, limited, parse_ratio
from skilltrail.data.find import find_source
from skilltrail.data.load import Loaded, SourceRead, read_items
from skilltrail.data.overlap import Overlap, overlap_counts, overlaps, refuse_overlaps
from skilltrail.data.splits import manifest_of, write_splits
from skilltrail.data.suspect import DataWarning, cut_contexts, warnings_for
from skilltrail.envs.protocol import Environment
from skilltrail.params.fields import Params
from skilltrail.params.sections import Data

_FEW = 10  # selection items below which one item moves the gate's mean by more than a tenth


@dataclass(frozen=True)
class SplitReport:
    """What `split` did.

    Attributes:
        manifest: what stands in data/splits/manifest.json.
        warnings: what a person should look at.
        overlaps: what stands where it must not, by leave of `data.allow_overlap`.
    """

    manifest: Mapping[str, Any]
    warnings: tuple[DataWarning, ...] = ()
    overlaps: tuple[Overlap, ...] = ()

    def lines(self) -> list[str]:
        """Return the summary for people, one line each."""
        counts = ", ".join(
            f"{name} {self.manifest['splits'][name]['items']}" for name in SPLITS
        )
        lines = [f"split: {counts} ({self.manifest['how']})"]
        if self.overlaps:
            lines.append(f"allowed: {overlap_counts(self.overlaps)}")
        return lines + [f"warning: {warning.message}" for warning in self.warnings]


def split(
    params: Params,
    environment: Environment,
    root: Path,
    say: Callable[[str], None] = lambda line: None,
) -> SplitReport:
    """Write data/splits/ under `root` from the items that `params.data` names.

    Raises:
        DataError: items cannot be read, are too few, or stand in two splits.
        ParamError: a param of `data` that does not fit the items.
    """
    report, chosen, about = frozen(params, environment, root)
    write_splits(root, chosen, about)
    for line in report.lines():
        say(line)
    return report


def frozen(
    params: Params, environment: Environment, root: Path
) -> tuple[SplitReport, dict[str, list[Item]], dict[str, Any]]:
    """Return what `split` would do, the items of each split, and what the manifest says of
    them, without writing anything.

    Raises:
        DataError, ParamError: as `split`.
    """
    data = params.data
    reading, splits = _read(data, environment, root)
    found = overlaps(reading.items, splits)
    if not data.allow_overlap:
        refuse_overlaps(found, reading.items)
    chosen = _chosen(reading.items, splits, data)
    warnings = [
        *_warnings(reading, environment, data),
        *_size_warnings(chosen, splits, data),
    ]
    drawn = not reading.assigned or any(limit > 0 for limit in vars(data.limit).values())
    about = {
        "env": environment.name,
        "how": "ready-made" if reading.assigned else f"ratio {data.ratio}",
        "split_seed": data.split_seed if drawn else None,
        "group_key": data.group_key,
        "allow_overlap": data.allow_overlap,
        "items_found": {name: list(splits.values()).count(name) for name in SPLITS},
        "overlaps": [overlap.to_json() for overlap in found],
        "warnings": [warning.to_json() for warning in warnings],
    }
    if reading.apart:
        about["set_apart"] = [one.to_json() for one in reading.apart]
    report = SplitReport(manifest_of(chosen, about), tuple(warnings), tuple(found))
    return report, chosen, about


def split_sizes(params: Params, environment: Environment, root: Path) -> dict[str, int]:
    """Return how many items each split would hold, without writing anything.

    Raises:
        DataError, ParamError: as `split`.
    """
    reading, splits = _read(params.data, environment, root)
    chosen = _chosen(reading.items, splits, params.data)
    return {name: len(chosen[name]) for name in SPLITS}


def look_at_items(
    params: Params, environment: Environment, root: Path
) -> tuple[SourceRead, list[DataWarning]]:
    """Return the items and what a person should look at in them, without writing anything.

    Raises:
        DataError, ParamError: as `split`, where the items cannot be read.
    """
    reading = _items(params.data, environment, root)
    return reading, _warnings(reading, environment, params.data)


def _items(data: Data, environment: Environment, root: Path) -> SourceRead:
    source = find_source(root, environment.name, data.path, data.split_dir)
    return read_items(source, environment, root, data.group_key)


def _read(
    data: Data, environment: Environment, root: Path
) -> tuple[SourceRead, dict[str, str]]:
    """Return the items, and the split of each by its id."""
    reading = _items(data, environment, root)
    if reading.assigned:
        return reading, {one.item.id: one.split for one in reading.items}
    return reading, assign(reading.items, parse_ratio(data.ratio), data.split_seed)


def _warnings(reading: SourceRead, environment: Environment, data: Data) -> list[DataWarning]:
    apart = [DataWarning("set_apart", reading.told_apart())] if reading.apart else []
    found = warnings_for(reading.items, data.group_key)
    return apart + found + cut_contexts(reading.items, environment)


def _chosen(
    loaded: list[Loaded], splits: Mapping[str, str], data: Data
) -> dict[str, list[Item]]:
    """Return the items of each split that the limits leave."""
    items = {one.item.id: one.item for one in loaded}
    chosen: dict[str, list[Item]] = {}
    for name in SPLITS:
        ids = [id for id, split in splits.items() if split == name]
        chosen[name] = [
            items[id] for id in limited(ids, getattr(data.limit, name), data.split_seed)
        ]
    return chosen


def _size_warnings(
    chosen: Mapping[str, list[Item]], splits: Mapping[str, str], data: Data
) -> list[DataWarning]:
    found = []
    n_selection = len(chosen["selection"])
    if n_selection < _FEW:
        found.append(
            DataWarning(
                "small_selection",
                f"the selection split has {n_selection} items, so that one item moves its mean "
                f"by {1 / n_selection:.2f}",
            )
        )
    for name in SPLITS:
        limit: int = getattr(data.limit, name)
        here = list(splits.values()).count(name)
        if limit > here:
            found.append(
                DataWarning(
                    "limit_unused",
                    f"data.limit.{name} is {limit}, but the split has only {here} items",
                )
            )
    return found
