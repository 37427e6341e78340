"""How long the report of a long run takes, and how large it is.

Lays out a log of 10,000 events with 100,000 rollouts and their exported facts, as training on
many items for many steps leaves them, and builds the page from it.

    python benchmarks/bench_report.py
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from reports.book import book_of, read_facts
from reports.page import rendered
from stages.core.canon import digest, text_digest
from stages.core.diffs import unified_diff
from stages.history.events import Event
from stages.history.log import follow
from stages.store.exports import line_of
from stages.store.protocol import Fact

STEPS, TRAIN, SELECTION, BATCH = 1_250, 400, 40, 40
MOST_S, MOST_BYTES = 30.0, 10_000_000


def make_log(facts: dict[str, dict[str, Any]]) -> list[Event]:
    """Return the log; what each rollout said goes to `facts`."""
    events: list[Event] = []

    def tell(type: str, **data: Any) -> int:
        events.append(follow(events[-1] if events else None, type, data))
        return len(events)

    items = {
        split: [
            {"item": f"{split}-{n:04}", "digest": digest("b", [split, n])} for n in range(size)
        ]
        for split, size in (("train", TRAIN), ("selection", SELECTION))
    }
    text = "# Skill\n\nAnswer in few words.\n"
    tell(
        "run.started",
        env="bench",
        agent={"version": "bench/1"},
        **items,
        target={"model": "m"},
        seed=1,
        seed_skill={"text": text, "digest": text_digest(text)},
        parent=None,
    )
    version = 0
    tell(
        "skill.versioned",
        version=0,
        parent=None,
        digest=text_digest(text),
        best=True,
        patch=None,
        candidate=None,
        gate=None,
        edits=[],
        not_applied=[],
        lines_added=0,
        lines_removed=0,
        tokens=5,
    )

    def rolled(split: str, purpose: str, step: int | None, skill: str, some: int) -> None:
        rows = [
            _row(items[split][(some + n) % len(items[split])]["item"], step or 0, facts)
            for n in range(SELECTION)
        ]
        where = {} if step is None else {"step": step, "epoch": 1 + step // 10}
        hard = sum(row["hard"] for row in rows) / len(rows)
        tell(
            "rollouts.scored",
            purpose=purpose,
            skill=text_digest(skill),
            items=rows,
            coverage={"scored": len(rows), "asked": len(rows)},
            mean_hard=hard,
            mean_soft=hard,
            **where,
        )

    rolled("selection", "baseline", None, text, 0)
    for step in range(1, STEPS + 1):
        at = {"step": step, "epoch": 1 + step // 10}
        rolled("train", "train", step, text, step * BATCH)
        tell(
            "budget.decided",
            **at,
            budget=4,
            schedule="constant",
            rule="constant/1",
            lr=4,
            reason="",
            reply=None,
        )
        seq = len(events) + 1
        ids = [row["item"] for row in items["train"][:8]]
        edits = [_edit(f"{seq}.{n}", step, n, ids) for n in range(4)]
        tell(
            "patch.proposed",
            **at,
            patch=f"p{seq}",
            source="failure",
            items=ids,
            shown={},
            edits=edits,
            reasoning=f"In step {step} many answers were too long. " * 3,
            failure_types=dict.fromkeys(ids, "too_long"),
            rule="rules/1",
            reply=None,
        )
        better = text + f"- rule of step {step}\n"
        sources = [[1, len(text.splitlines())], [f"{seq}.0", 1]]
        tell(
            "candidate.built",
            **at,
            source="step",
            mode="patch",
            parent=text_digest(text),
            candidate=text_digest(better),
            results=[],
            faults=[],
            diff=unified_diff(text, better),
            sources=sources,
            tokens=9,
            rule="apply/1",
            reply=None,
        )
        rolled("selection", "selection", step, better, 0)
        accepted = step % 10 == 0
        tell(
            "gate.judged",
            **at,
            source="step",
            rule="strict/1",
            metric="hard",
            current=text_digest(text),
            candidate=text_digest(better),
            before=0.5,
            after=0.5,
            after_max=None,
            judged=SELECTION,
            total=SELECTION,
            order="gate_order/1",
            flips={"won": [], "lost": []},
            statistic=None,
            verdict="accepted" if accepted else "rejected",
            forced=False,
            saved=0,
            reason="mean higher",
            tokens_before=9,
            tokens_after=9,
        )
        if accepted:
            version += 1
            tell(
                "skill.versioned",
                **at,
                version=version,
                parent=text_digest(text),
                digest=text_digest(better),
                best=False,
                patch=f"p{seq}",
                candidate=seq + 1,
                gate=seq + 3,
                edits=[f"{seq}.0"],
                not_applied=[],
                lines_added=1,
                lines_removed=0,
                tokens=9,
            )
            text = better
        tell(
            "step.ended",
            **at,
            result="accepted" if accepted else "rejected",
            reason="",
            counts={"selected": 1, "applied": 1, "merged": 4},
            version=version,
        )
    return events


def _row(item: str, step: int, facts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    key = digest("bench", [item, step])
    reply = f"the answer of {item} in step {step}, at some length"
    turn = {
        "sent": f"Context: {item} {'some words ' * 45}\nQuestion: which?\nAnswer:",
        "reply": reply,
        "finish": "stop",
        "tool_calls": [],
        "observation": None,
    }
    facts[key] = {
        "skill": "s",
        "trajectory": {
            "turns": [turn],
            "answer": reply,
            "ending": "answered",
            "model": "m",
            "usage": {"input": 200, "output": 12},
            "extra": {},
        },
    }
    right = float((len(item) * step + int(item[-4:])) % 3 == 0)
    return {
        "item": item,
        "outcome": "scored",
        "hard": right,
        "soft": right,
        "reason": "correct" if right else "wrong",
        "key": key,
    }


def _edit(id: str, step: int, n: int, items: list[str]) -> dict[str, Any]:
    return {
        "edit": id,
        "op": "append",
        "target": "",
        "content": f"- rule {n} of step {step}",
        "section": None,
        "inline": False,
        "kind": "rule",
        "reason": "answers were too long",
        "items": items[:3],
        "support": 3,
        "parents": [],
    }


def export(folder: Path, facts: dict[str, dict[str, Any]]) -> None:
    """Write the facts as `stages.store.exports` does, in shards."""
    target = folder / "data/rollouts/train"
    target.mkdir(parents=True)
    for name, lines in _shards(facts):
        (target / name).write_bytes(b"".join(lines))


def _shards(facts: dict[str, dict[str, Any]]) -> Iterator[tuple[str, list[bytes]]]:
    keys = sorted(facts)
    for start in range(0, len(keys), 5_000):
        some = keys[start : start + 5_000]
        yield (
            f"shard-{start:06}.jsonl",
            [line_of(Fact.of("rollout", key, facts[key])) for key in some],
        )


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        folder, facts = Path(name), {}
        events = make_log(facts)
        export(folder, facts)
        rollouts = sum(len(e.data["items"]) for e in events if e.type == "rollouts.scored")
        before, cpu = time.perf_counter(), time.process_time()
        book = book_of(events, [], read_facts(folder, events))
        page = rendered(book, events, [])
        wall, used = time.perf_counter() - before, time.process_time() - cpu
        size = len(page.encode())
        console.print(
            f"{len(events):,} events, {rollouts:,} rollouts: "
            f"{wall:.1f} s ({used:.1f} s of CPU), "
            f"{size / 1e6:.1f} MB, texts whole up to {book['longest']:,} characters"
        )
        (Path.cwd() / ".skilltrail").mkdir(exist_ok=True)
        (Path.cwd() / ".skilltrail/bench_report.html").write_text(page, encoding="utf-8")
        fine = used <= MOST_S and size <= MOST_BYTES
        console.print(json.dumps({"fine": fine}))
        raise SystemExit(0 if fine else 1)


if __name__ == "__main__":
    main()
