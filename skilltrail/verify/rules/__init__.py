"""Decisions recomputed: for each event type, what must follow from the log before it.

A rule sees an event, the state of the run before it, and the tags that are known here; it
yields what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.verify.result import Fault, Tags
from skilltrail.verify.rules.candidates import check_candidate
from skilltrail.verify.rules.epochs import check_comparison, check_memory
from skilltrail.verify.rules.erasures import check_tombstone
from skilltrail.verify.rules.evaluations import (
    check_evaluation,
    check_measured,
    check_opening,
    check_share,
)
from skilltrail.verify.rules.patches import (
    check_budget,
    check_evidence,
    check_ids,
    check_merge,
    check_selection,
)
from skilltrail.verify.rules.pools import check_parents
from skilltrail.verify.rules.rollouts import check_members, check_scores, check_start
from skilltrail.verify.rules.verdicts import (
    check_finish,
    check_step,
    check_verdict,
    check_version,
)

DecisionRule = Callable[[Event, RunState, Tags], Iterator[Fault]]

DECISIONS: Mapping[str, tuple[DecisionRule, ...]] = {
    "run.started": (check_start,),
    "rollouts.scored": (check_scores, check_members, check_measured),
    "parents.chosen": (check_parents,),
    "budget.decided": (check_budget,),
    "patch.proposed": (check_ids, check_evidence),
    "patch.merged": (check_ids, check_merge),
    "appendix.proposed": (check_ids,),
    "slow_update.proposed": (check_ids,),
    "compaction.proposed": (check_ids,),
    "edits.selected": (check_selection,),
    "candidate.built": (check_candidate,),
    "gate.judged": (check_verdict,),
    "skill.versioned": (check_version,),
    "step.ended": (check_step,),
    "slow_update.compared": (check_comparison,),
    "meta_skill.written": (check_memory,),
    "run.finished": (check_finish,),
    "test.opened": (check_opening,),
    "skill.evaluated": (check_evaluation,),
    "skill.transferred": (check_evaluation, check_share),
    "text.erased": (check_tombstone,),
}
