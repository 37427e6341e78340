"""The vocabulary of the history: one frozen class for each type of event.

The JSON Schemas under `schemas/events` are made of these classes (see `history/log/schema.py`),
and a test holds them equal. `docs/history.md` says what each type tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

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
from skilltrail.history.log.types.parts import EventPart
from skilltrail.history.log.types.proposals import (
    AppendixProposed,
    CandidateBuilt,
    CompactionProposed,
    EditsSelected,
    InstructionChosen,
    MetaSkillWritten,
    MethodChosen,
    ParentsChosen,
    PatchMerged,
    PatchProposed,
    ReplyRejected,
    SlowUpdateCompared,
    SlowUpdateProposed,
)

__all__ = [
    "CLASSES", "AppendixProposed", "BudgetDecided", "CandidateBuilt", "CompactionProposed",
    "EditsSelected", "GateJudged", "InstructionChosen", "MetaSkillWritten", "MethodChosen",
    "ParentsChosen", "PatchMerged", "PatchProposed", "ReplyRejected", "RolloutsScored",
    "RunFinished", "RunStarted", "SkillEvaluated", "SkillTransferred", "SkillVersioned",
    "SlowUpdateCompared", "SlowUpdateProposed", "StepEnded", "TestOpened", "TextErased",
    "type_of",
]  # fmt: skip


@cache
def type_of(said: type[EventPart]) -> str:
    """Return what events of a class are called: `SkillVersioned` is skill.versioned."""
    *what, done = re.findall("[A-Z][a-z]+", said.__name__)
    return f"{'_'.join(what)}.{done}".lower()


# In the order in which a run tells them.
CLASSES: Mapping[str, type[EventPart]] = {
    type_of(said): said
    for said in (
        RunStarted,
        RolloutsScored,
        MethodChosen,
        ParentsChosen,
        InstructionChosen,
        BudgetDecided,
        PatchProposed,
        ReplyRejected,
        PatchMerged,
        AppendixProposed,
        EditsSelected,
        CandidateBuilt,
        GateJudged,
        SkillVersioned,
        StepEnded,
        SlowUpdateCompared,
        SlowUpdateProposed,
        CompactionProposed,
        MetaSkillWritten,
        RunFinished,
        TestOpened,
        SkillEvaluated,
        SkillTransferred,
        TextErased,
    )
}
