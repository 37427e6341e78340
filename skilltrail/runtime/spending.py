"""What a stage of a run has spent, over all its starts: the truth that budgets hold to.

Each role has one account, shared by all its models. Once the run is known its accounts are kept
in a ledger beside the live log: a line for what a call may cost at most, written before it is
sent, and a line for the difference to what it did cost. So a call that was in flight when a
process was killed counts at its most, and a run that is started again goes on with what is
left. The store cannot tell this: failed calls leave no fact, and other runs' facts are free.

Calls count from the moment their role has a limit. `train` and `evaluate` have a ledger each; a
command such as `skilltrail evaluate` starts from nothing.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from pathlib import Path

from skilltrail.core.files import writing
from skilltrail.models.client.budget import Account, Amount


class Accounts:
    """The accounts of one stage, by role."""

    def __init__(self) -> None:
        self._accounts: dict[str, Account] = {}
        self.ledger: Path | None = None

    def of(self, role: str) -> Account:
        """Return the role's account."""
        if role not in self._accounts:
            self._accounts[role] = account = Account()
            self._resume(role, account)
        return self._accounts[role]

    def keep_in(self, ledger: Path) -> None:
        """Go on from what a ledger says was spent, and write there what will be spent."""
        self.ledger = ledger
        for role, account in self._accounts.items():
            self._resume(role, account)

    def _resume(self, role: str, account: Account) -> None:
        if self.ledger is not None:
            account.resume(spent_in(self.ledger, role), partial(note, self.ledger, role))


def note(ledger: Path, role: str, change: Amount) -> None:
    """Append a change of what `role` has spent.

    Raises:
        SkilltrailError: the ledger cannot be written.
    """
    row = {"role": role, "calls": change.calls, "tokens": change.tokens, "usd": str(change.usd)}
    with writing(ledger):
        ledger.parent.mkdir(parents=True, exist_ok=True)
        with ledger.open("a", encoding="utf-8", newline="\n") as file:
            file.write(f"\n{json.dumps(row)}")  # begins anew after a line that a crash cut


def spent_in(ledger: Path, role: str) -> Amount:
    """Return what a ledger says that `role` has spent; a line cut by a crash is passed over."""
    total = Amount()
    if not ledger.exists():
        return total
    for line in ledger.read_text(encoding="utf-8").split("\n"):
        try:
            row = json.loads(line)
            change = Amount(row["calls"], row["tokens"], Fraction(row["usd"]))
            total += change if row["role"] == role else Amount()
        except (ValueError, TypeError, KeyError, RecursionError, ArithmeticError):
            continue
    return total
