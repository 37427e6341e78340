"""The page's data, made from events and facts: one JSON value that the page's script reads.

Everything is compact: a text that occurs often is stored once, items and events are named by
number, rollouts stand in columns. A pure function of its arguments, so the same log gives the
same bytes.
"""

from __future__ import annotations

from skilltrail.report.book.assemble import book_of
from skilltrail.report.book.facts import RunFacts, read_facts

__all__ = ["RunFacts", "book_of", "read_facts"]
