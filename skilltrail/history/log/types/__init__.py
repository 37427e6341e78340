"""The vocabulary of the history: one frozen class for each type of event.

The JSON Schemas under `schemas/events` are made of these classes (see `history/log/schema.py`),
and a test holds them equal. `docs/history.md` says what each type tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from skilltrail.history.log.types.outcomes import (
    BudgetDecided,
    GateJudged,
    RolloutsScored,
    RunFinished,
    RunStarted,
    SkillEvaluated,
    SkillTransferred,
    SkillVersioned,
    StepEnded,
    TestOpened,
    TextErased,
)
from skilltrail.history.log.types.parts import Part
from skilltrail.history.log.types.proposals import (
    AppendixProposed,
    CandidateBuilt,
    CompactionProposed,
    EditsSelected,
    MetaSkillWritten,
    MethodChosen,
    ParentsChosen,
    PatchMerged,
    PatchProposed,
    ReplyRejected,
    SlowUpdateCompared,
    SlowUpdateProposed,
)


class EventType(str, Enum):
    RUN_STARTED = "run.started"
    ROLLOUTS_SCORED = "rollouts.scored"
    METHOD_CHOSEN = "method.chosen"
    PARENTS_CHOSEN = "parents.chosen"
    BUDGET_DECIDED = "budget.decided"
    PATCH_PROPOSED = "patch.proposed"
    REPLY_REJECTED = "reply.rejected"
    PATCH_MERGED = "patch.merged"
    APPENDIX_PROPOSED = "appendix.proposed"
    EDITS_SELECTED = "edits.selected"
    CANDIDATE_BUILT = "candidate.built"
    GATE_JUDGED = "gate.judged"
    SKILL_VERSIONED = "skill.versioned"
    STEP_ENDED = "step.ended"
    SLOW_UPDATE_COMPARED = "slow_update.compared"
    SLOW_UPDATE_PROPOSED = "slow_update.proposed"
    COMPACTION_PROPOSED = "compaction.proposed"
    META_SKILL_WRITTEN = "meta_skill.written"
    RUN_FINISHED = "run.finished"
    TEST_OPENED = "test.opened"
    SKILL_EVALUATED = "skill.evaluated"
    SKILL_TRANSFERRED = "skill.transferred"
    TEXT_ERASED = "text.erased"


CLASSES: Mapping[EventType, type[Part]] = {
    EventType.RUN_STARTED: RunStarted,
    EventType.ROLLOUTS_SCORED: RolloutsScored,
    EventType.METHOD_CHOSEN: MethodChosen,
    EventType.PARENTS_CHOSEN: ParentsChosen,
    EventType.BUDGET_DECIDED: BudgetDecided,
    EventType.PATCH_PROPOSED: PatchProposed,
    EventType.REPLY_REJECTED: ReplyRejected,
    EventType.PATCH_MERGED: PatchMerged,
    EventType.APPENDIX_PROPOSED: AppendixProposed,
    EventType.EDITS_SELECTED: EditsSelected,
    EventType.CANDIDATE_BUILT: CandidateBuilt,
    EventType.GATE_JUDGED: GateJudged,
    EventType.SKILL_VERSIONED: SkillVersioned,
    EventType.STEP_ENDED: StepEnded,
    EventType.SLOW_UPDATE_COMPARED: SlowUpdateCompared,
    EventType.SLOW_UPDATE_PROPOSED: SlowUpdateProposed,
    EventType.COMPACTION_PROPOSED: CompactionProposed,
    EventType.META_SKILL_WRITTEN: MetaSkillWritten,
    EventType.RUN_FINISHED: RunFinished,
    EventType.TEST_OPENED: TestOpened,
    EventType.SKILL_EVALUATED: SkillEvaluated,
    EventType.SKILL_TRANSFERRED: SkillTransferred,
    EventType.TEXT_ERASED: TextErased,
}
