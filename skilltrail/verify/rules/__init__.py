"""Decisions recomputed: for each event type, what must follow from the log before it.

Importing this package registers its checks with `verify.levels`. A decision whose tag
is unknown here is counted as not recomputed, which is no fault.
"""

from __future__ import annotations

from skilltrail.verify.rules import candidates, epochs, evaluations, patches, rollouts, verdicts

__all__ = ["candidates", "epochs", "evaluations", "patches", "rollouts", "verdicts"]
