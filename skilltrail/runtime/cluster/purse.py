"""One account for calls made on many nodes: an actor beside the head holds it.

A call is reserved before a node makes it and settled after, as in one process
(`skilltrail.models.client.budget`). What a lost node held counts at its most: it may have been
paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from skilltrail.core.errors import BudgetError
from skilltrail.models.client.budget import Account, Amount, Budget
from skilltrail.models.client.prices import price_of
from skilltrail.params.model_options import RoleOptions
from skilltrail.runtime.spending import note, spent_in


class Purse:
    """The account of one role; its methods run in the actor's one event loop."""

    def __init__(self, role: str, options: RoleOptions, ledger: Path | None) -> None:
        account = Account()
        if ledger is not None:
            account.resume(spent_in(ledger, role), partial(note, ledger, role))
        self._budget = Budget(role, options.budget, price_of(role, options), account)
        self._held: dict[str, list[Amount]] = {}

    async def reserve(self, ticket: str, amount: Amount) -> BudgetError | None:
        """Hold an amount for a rollout; return why it does not fit, if so."""
        try:
            held = await self._budget.reserve(amount)
        except BudgetError as error:
            return error
        self._held.setdefault(ticket, []).append(held)
        return None

    async def settle(self, ticket: str, held: Amount, usage: Mapping[str, int] | None) -> None:
        """Replace a hold by what was used."""
        if held in self._held.get(ticket, []):
            self._held[ticket].remove(held)
            self._budget.settle(held, usage)

    async def lost(self, ticket: str) -> None:
        """Count what a rollout held at its most: nobody will say what it used."""
        for held in self._held.pop(ticket, []):
            self._budget.settle(held, None)


class RemoteBudget(Budget):
    """What a node sees of a purse; `ticket` names the rollout it is at."""

    def __init__(self, role: str, options: RoleOptions, purse: Any) -> None:
        super().__init__(role, options.budget, price_of(role, options))
        self.ticket, self._purse = "", purse

    async def reserve(self, amount: Amount) -> Amount:
        error = await self._purse.reserve.remote(self.ticket, amount)
        if error is not None:
            raise error
        return amount

    def settle(self, held: Amount, usage: Mapping[str, int] | None) -> None:
        import ray

        # Waited for, so that a rollout's result never comes before what it cost.
        ray.get(self._purse.settle.remote(self.ticket, held, usage))
