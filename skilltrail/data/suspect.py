"""What is suspicious in the items, but no fault: a person should look at it."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from skilltrail.core.item import Item
from skilltrail.data.load import Loaded
from skilltrail.data.overlap import normalised
from skilltrail.data.split_field import OTHERS, SPLIT_OF, said
from skilltrail.envs.protocol import Environment

_EXAMPLES = 3  # ids shown in a message; the counts are always whole


@dataclass(frozen=True)
class DataWarning:
    """Something a person should look at; `kind` is a fixed word, `message` a sentence."""

    kind: str
    message: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "message": self.message}


def warnings_for(loaded: list[Loaded], group_key: str | None = None) -> list[DataWarning]:
    """Return what a person should look at, whatever the splits; the same for any file order."""
    ordered = sorted(loaded, key=lambda one: one.item.id)
    found = [_ids_alike(ordered), _repeated_content(ordered), _split_unread(ordered)]
    if not group_key:
        found += _group_candidates(ordered)
    return [warning for warning in found if warning is not None]


def _ids_alike(loaded: list[Loaded]) -> DataWarning | None:
    alike: dict[str, list[str]] = defaultdict(list)
    for one in loaded:
        alike[unicodedata.normalize("NFKC", one.item.id).casefold()].append(one.item.id)
    sets = [ids for ids in alike.values() if len(ids) > 1]
    if not sets:
        return None
    return DataWarning(
        "ids_alike",
        f"{len(sets)} sets of ids differ only in capitals or Unicode form, such as "
        f"{' and '.join(repr(id) for id in sets[0])}; they count as different items",
    )


def _repeated_content(loaded: list[Loaded]) -> DataWarning | None:
    same: dict[str, list[str]] = defaultdict(list)
    for one in loaded:
        same[normalised(one.content)].append(one.item.id)
    sets = [ids for ids in same.values() if len(ids) > 1]
    if not sets:
        return None
    return DataWarning(
        "repeated_content",
        f"{len(sets)} contents stand in more than one item, such as "
        f"{' and '.join(repr(id) for id in sets[0][:_EXAMPLES])}; they weigh double",
    )


def _split_unread(loaded: list[Loaded]) -> DataWarning | None:
    """Return a warning where another field than `split` names splits and the ratio decides."""
    named = {
        name: {said(one.record, name) for one in loaded}
        for name in OTHERS
        if not loaded[0].split and all(said(one.record, name) in SPLIT_OF for one in loaded)
    }
    told = "; ".join(f"{name}: {', '.join(sorted(words))}" for name, words in named.items())
    if not told:
        return None
    return DataWarning(
        "split_unread",
        f"a field names splits ({told}), and not all three; data.ratio decides",
    )


def cut_contexts(loaded: list[Loaded], environment: Environment) -> list[DataWarning]:
    """Return a warning where contexts are longer than the agent is shown.

    For environments with the param `context_chars`; the answers counted as lost are those that
    stand, word for word, only in what is cut off.
    """
    chars = getattr(environment.params, "context_chars", None)
    if chars is None:
        return []
    long = [one.item for one in loaded if len(one.item.input.get("context", "")) > chars]
    if not long:
        return []
    lost = sum(_is_lost(item, chars) for item in long)
    return [
        DataWarning(
            "cut_context",
            f"{len(long)} items have a context of more than {chars} characters: the agent is "
            f"shown its beginning ({lost} of them have their answer only beyond); "
            f"envs.{environment.name}.context_chars is the limit",
        )
    ]


def _is_lost(item: Item, chars: int) -> bool:
    gold = item.gold.get("answers") if isinstance(item.gold, Mapping) else item.gold
    answers = [one for one in (() if gold is None else gold) if isinstance(one, str)]
    context = item.input["context"]
    return any(one in context for one in answers) and not any(
        one in context[:chars] for one in answers
    )


_SOURCE_WORDS = frozenset(
    ("article", "book", "case", "context", "doc", "document", "file", "game", "gamefile")
    + ("group", "image", "paragraph", "passage", "patient", "repo", "repository", "scene")
    + ("source", "story", "table", "template", "title", "url")
)
_NOT_SOURCES = frozenset(("split", "type", "no", "number", "page", "count"))


def _group_candidates(loaded: list[Loaded]) -> list[DataWarning]:
    """Return a warning per field that looks like a source and ties items of several groups.

    In ready-made splits only values that stand in more than one split count.
    """
    found = []
    for name in sorted({name for one in loaded for name in one.record}):
        if not _names_a_source(name):
            continue
        tied: dict[str, list[Loaded]] = defaultdict(list)
        for one in loaded:
            value = one.record.get(name)
            if isinstance(value, (str, int)) and str(value).strip():
                tied[str(value)].append(one)
        torn = [ones for ones in tied.values() if _may_part(ones)]
        if torn:
            found.append(
                DataWarning(
                    "group_candidate",
                    f"field {name!r} repeats: {len(torn)} of its values stand in "
                    f"{sum(map(len, torn))} items that are not held in one split; if it names "
                    f"a source that items share, set data.group_key: {name}",
                )
            )
    return found


def _may_part(ones: list[Loaded]) -> bool:
    splits = {one.split for one in ones}
    return len({one.source for one in ones}) > 1 and (len(splits) > 1 or "" in splits)


def _names_a_source(field: str) -> bool:
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", field).lower()))
    singular = words | {word.removesuffix("s") for word in words}
    return bool(singular & _SOURCE_WORDS) and not words & _NOT_SOURCES
