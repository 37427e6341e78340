"""Update: apply the selected edits to the current skill, which gives a candidate.

Nothing is evaluated here. A candidate that is not a well-formed document is recorded with its
faults and goes no further; the text that the gate scores is the text that is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stages.core.apply import TAG, Candidate, apply_edits
from stages.core.canon import text_digest
from stages.core.edit import Edit
from stages.core.tokens import count_tokens
from stages.run import Run, State


@dataclass(frozen=True)
class Built:
    """A recorded candidate. `event` is the sequence number of its `candidate.built`."""

    candidate: Candidate
    patch: str
    event: int

    @property
    def usable(self) -> bool:
        """True when it differs from its parent and is a well-formed document."""
        return self.candidate.changed and not self.candidate.faults


def update(
    run: Run,
    state: State,
    edits: Sequence[Edit],
    *,
    epoch: int,
    step: int,
    patch: str,
    source: str = "step",
    owner: str | None = None,
) -> Built:
    """Build and record the candidate of `edits`; `owner` may write its protected region."""
    candidate = apply_edits(state.skill, edits, owner=owner)
    event = run.history.append(
        "candidate.built",
        {
            "epoch": epoch,
            "step": step,
            "source": source,
            "mode": "patch",
            "parent": state.digest,
            "candidate": text_digest(candidate.text),
            "results": [result.to_json() for result in candidate.results],
            "faults": list(candidate.faults),
            "diff": candidate.diff,
            "tokens": count_tokens(candidate.text),
            "rule": TAG,
            "reply": None,
        },
    )
    return Built(candidate, patch, event.seq)
