"""Verify: every rule, by level, in one table; nothing is repaired, fetched or asked of a model.

    log        the files alone: chain, schemas, versions, every decision that follows; the best
               skill, the live log, and what is drawn of the logs
    facts      splits and params here; every rollout scored again under its own key; the loop
               and the evaluation run again on recorded facts
    anchored   the commits of this repository, and what was published of them

A rule says how many things it could check, of how many, and what is wrong with them. What
cannot be checked is counted as not checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.layout import METRICS
from skilltrail.verify import anchored, facts, rerun, shown, tables
from skilltrail.verify.evidence import Evidence
from skilltrail.verify.result import BROKEN, Check, Level, Row, Verification

LOG, FACTS, ANCHORED = Level


@dataclass(frozen=True)
class Rule:
    """One rule: its level, its name, what it is about, and the check.

    `about` is `run` (a training log), `evaluation`, or `workspace` (files beside the logs,
    looked at when no other log is named).
    """

    level: Level
    name: str
    about: str
    check: Callable[[Evidence], Check | None]


RULES: Sequence[Rule] = (
    Rule(LOG, "training log", "run", shown.training_log),
    Rule(LOG, "evaluation log", "evaluation", shown.evaluation_log),
    Rule(LOG, "all evaluations", "workspace", shown.kept_evaluations),
    Rule(LOG, "best skill", "workspace", shown.best_skill),
    Rule(LOG, "live log", "workspace", shown.live_log),
    Rule(LOG, "metrics", "workspace", shown.drawn(METRICS)),
    Rule(LOG, "curve", "workspace", shown.drawn(shown.CURVE)),
    Rule(LOG, "page", "workspace", shown.drawn(shown.PAGE)),
    Rule(FACTS, "splits", "workspace", facts.splits),
    Rule(FACTS, "start of the run", "run", facts.start),
    Rule(FACTS, "test split opened", "evaluation", facts.opening),
    Rule(FACTS, "rollouts", "any", facts.rollouts),
    Rule(FACTS, "task types and metrics", "evaluation", tables.tables),
    Rule(FACTS, "models", "any", facts.models),
    Rule(FACTS, "exports", "workspace", facts.exports),
    Rule(FACTS, "training replayed", "run", rerun.training_again),
    Rule(FACTS, "evaluations replayed", "evaluation", rerun.evaluation_again),
    Rule(ANCHORED, "commits of the run", "run", anchored.training_commits),
    Rule(ANCHORED, "commits of the evaluation", "evaluation", anchored.evaluation_commits),
    Rule(ANCHORED, "commits of all evaluations", "workspace", anchored.kept_commits),
    Rule(ANCHORED, "versions", "run", anchored.versions),
    Rule(ANCHORED, "objects", "any", anchored.objects),
    Rule(ANCHORED, "published anchor", "any", anchored.published),
)


def verify(evidence: Evidence, rules: Sequence[Rule] = RULES) -> Verification:
    """Return what every rule that fits says."""
    rows = []
    for rule in rules:
        if not _fits(rule, evidence):
            continue
        try:
            check = rule.check(evidence)
        except SkilltrailError as error:
            check = Check(0, 1, str(error))
        except BROKEN as error:
            check = Check(0, 1, f"cannot be followed ({type(error).__name__}: {error})")
        if check is not None:
            rows.append(Row(rule.level, rule.name, check))
    reports = evidence.reports
    unknown: Counter[str] = Counter()
    for report in reports:
        unknown += report.tags.unknown
    events = sum(len(report.events) for report in reports)
    return Verification(evidence.name, events, tuple(rows), dict(unknown), evidence.anchor)


def _fits(rule: Rule, evidence: Evidence) -> bool:
    if rule.about == "workspace":
        return evidence.own
    if rule.about == "run":
        return not evidence.goes_on
    return rule.about == "any" or evidence.own or evidence.goes_on
