"""Where the files of a workspace lie, from its root."""

from __future__ import annotations

from pathlib import Path

EVENTS = Path("skills/events.jsonl")
BEST_SKILL = Path("skills/best_skill.md")
EVALUATION = Path("reports/out/evaluation.jsonl")
METRICS = Path("reports/out/metrics.json")
CURVE = Path("reports/out/curve.tsv")
PAGE = Path("reports/out/index.html")
