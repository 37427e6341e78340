"""What environments share that the optimizer `rules` can work for (`envs.kit.teaching`).

The catalogue is the `rules.yaml` beside the environment's `env.py`; items are alike by the
words of their questions and by their task type.
"""

from __future__ import annotations

import inspect
from functools import cached_property
from pathlib import Path

from skilltrail.core.item import Item
from skilltrail.envs.kit.reasons import question_words
from skilltrail.envs.kit.teaching import Catalogue, load_catalogue


class Taught:
    """Base of an environment: its catalogue, and the traits of its items."""

    @cached_property
    def catalogue(self) -> Catalogue:
        """Failure types and instruction lines, from `rules.yaml`."""
        return load_catalogue(Path(inspect.getfile(type(self))).with_name("rules.yaml"))

    def traits(self, item: Item) -> frozenset[str]:
        """Return the words of what the item asks, and its task type in brackets."""
        kind = [] if item.task_type is None else [f"<{item.task_type}>"]
        return question_words(self.asked(item)) | frozenset(kind)

    def asked(self, item: Item) -> str:
        """Return what the item asks for, in words."""
        return str(item.input["question"])
