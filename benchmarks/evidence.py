"""How much of a run reaches the analyst: characters, and the share of its actions.

    python -m benchmarks.evidence

The longest run of each environment whose agent acts is rolled out from a script of replies in
the real environment (`tests/planted.py`): 50 lost turns of `alfworld`, 30 failing programs of
`spreadsheet`, 24 searches of `officeqa`, one page of `docvqa`. *Before* is what the first
version did: every turn as it came, head and tail of 4,000 characters. *Now* is what stands in
the analyst's request at three contexts of the optimizer. An action is a reply or a tool call;
it is visible where its end stands at its own turn.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

import planted  # noqa: E402
from env_world import env_of, own_items, scripted  # noqa: E402
from llm_script import optimizer_of, run, step_view  # noqa: E402

from skilltrail.core.item import Item  # noqa: E402
from skilltrail.core.trajectory import Turn  # noqa: E402
from skilltrail.envs.contract.fakes import FakeModel  # noqa: E402
from skilltrail.envs.protocol import Environment  # noqa: E402
from skilltrail.envs.spreadsheet.env import Spreadsheet, SpreadsheetParams  # noqa: E402
from skilltrail.optimizers.llm.shown.layout import call_text, sent_text  # noqa: E402
from skilltrail.optimizers.protocol import Observation  # noqa: E402
from skilltrail.skill.fence import clip  # noqa: E402

BEFORE_CHARS = 4000
CONTEXTS = (128_000, 8192, 4096)
HEAD = (
    "| environment | turns | as it came | before: shown, actions |"
    + "".join(f" {tokens:,} tokens: shown, actions |" for tokens in CONTEXTS)
    + "\n|---|---|---|---|"
    + "---|" * len(CONTEXTS)
)
_END = 40  # characters of an action that tell it


def longest(folder: Path) -> Iterator[tuple[str, Observation]]:
    """Yield the longest run of each environment that has agents."""
    yield "alfworld", planted.observed(planted.ALFWORLD[0], folder)
    yield "spreadsheet", _programs(folder)
    yield "officeqa", _searches()
    yield "docvqa", planted.observed(planted.DOCVQA[0], folder)


def _programs(folder: Path) -> Observation:
    """Thirty programs that each look for another sheet than the one there is.

    Each fails in a line of its own, so that its traceback names no path of this machine.
    """
    env = Spreadsheet(SpreadsheetParams(data_dirs=(str(folder),), sandbox="none"))
    record = planted.workbook_task(folder, "Write the sum of column B into E1.")
    before, after = planted.PROGRAM.format("sheet['E1'] = 1").split("sheet = ")
    looking = "assert 'Stock' in book.sheetnames, book.sheetnames\nsheet = "
    program = f"{before}{looking}{after}"
    replies = [
        f"Another sheet then.\n```python\n{program.replace('Stock', f'Sheet{n}')}```"
        for n in range(1, 31)
    ]
    return _rolled(env, env.parse(record, planted.WHERE), scripted(replies, style="chat"))


def _searches() -> Observation:
    """Searches for words that the documents do not have, and an answer at last."""
    item = {one.item.id: one.item for one in own_items("officeqa")}["OWN1951-4"]
    calls = [
        planted.call("grep", path=planted.BOOK, pattern=f"tax of year {n}")
        for n in range(1, 24)
    ]
    replies = [*calls, planted.said("Stamp duty")]
    model = scripted(replies, style="chat", abilities=frozenset({"tools"}))
    return _rolled(env_of("officeqa"), item, model)


def _rolled(env: Environment, item: Item, model: FakeModel) -> Observation:
    trajectory = asyncio.run(env.rollout(item, planted.SKILL, model))
    return planted.observation_of(env, item, trajectory)


def as_it_came(seen: Observation) -> str:
    """Return all turns as text, nothing left out and nothing laid out."""
    parts = []
    for number, turn in enumerate(seen.trajectory.turns, start=1):
        parts.append(f"[turn {number}] sent:\n{sent_text(turn.sent)}")
        parts.append(f"[turn {number}] replied: {turn.reply}")
        parts += [f"[turn {number}] called: {call_text(call)}" for call in turn.tool_calls]
        if turn.observation is not None:
            parts.append(f"[turn {number}] answered: {turn.observation}")
    return "\n".join(parts)


def in_request(seen: Observation, env: str, tokens: int) -> str:
    """Return what an analyst's request holds of the run."""
    optimizer, model = optimizer_of([{"edits": []}] * 4, env=env, context_tokens=tokens)
    run(optimizer.reflect(step_view([seen], skill=planted.SKILL)))
    told = model.requests[0].messages[0].parts[0].text
    found = re.search(r"==== BEGIN run 1 .*?\n(.*)\n==== END run 1 ", told, re.DOTALL)
    assert found is not None
    return found[1]


def visible(seen: Observation, text: str) -> float:
    """Return the share of actions whose end stands in `text` at their own turn."""
    shown = total = 0
    for number, turn in enumerate(seen.trajectory.turns, start=1):
        at = text.find(f"[turn {number}] ")
        end = text.find(f"[turn {number + 1}] ", at + 1)
        here = "" if at < 0 else text[at : end if end > 0 else len(text)]
        for told in actions(turn):
            total += 1
            shown += told in here
    return shown / total


def actions(turn: Turn) -> list[str]:
    said = [turn.reply.strip()[-_END:].split("\n")[-1]] if turn.reply.strip() else []
    return said + [call_text(call)[-_END:].split("\n")[-1] for call in turn.tool_calls]


def rows() -> Iterator[tuple[str, list[float], str]]:
    """Yield environment, shares of visible actions (before, then by context), and row."""
    with tempfile.TemporaryDirectory() as folder:
        for env, seen in longest(Path(folder)):
            whole = as_it_came(seen)
            texts = [clip(whole, BEFORE_CHARS)[0]]
            texts += [in_request(seen, env, tokens) for tokens in CONTEXTS]
            shares = [visible(seen, text) for text in texts]
            cells = [env, str(len(seen.trajectory.turns)), f"{len(whole):,}"]
            cells += [
                f"{len(text):,}, {share:.0%}" for text, share in zip(texts, shares, strict=True)
            ]
            yield env, shares, f"| {' | '.join(cells)} |"


def table() -> str:
    """Return the table in Markdown."""
    return "\n".join([HEAD, *(row for _, _, row in rows())])


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
