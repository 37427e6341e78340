"""Two small tasks in the form of Inspect: a price list to read, a ledger to look into.

All names and numbers are made up; the same seed gives the same samples. Licence: that of the
project.
"""

import random

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

_NAMES = ("Rosa", "Emil", "Greta", "Ivo", "Nadia", "Tomas", "Vera", "Jonas")
_WARES = ("kettle", "lamp", "rope", "mirror", "ladder", "basket", "hammer", "blanket")


def _lists(count: int, seed: int) -> list[tuple[str, dict[str, str]]]:
    draw = random.Random(seed)
    return [
        (
            draw.choice(_NAMES),
            {w: f"{draw.randint(200, 9900) / 100:.2f}" for w in draw.sample(_WARES, 4)},
        )
        for _ in range(count)
    ]


@task
def price(count: int = 60, seed: int = 7) -> Task:
    """What one thing on a list costs."""
    samples = []
    for number, (name, prices) in enumerate(_lists(count, seed), 1):
        told = ", ".join(f"the {ware} {cost}" for ware, cost in prices.items())
        ware = list(prices)[number % 4]
        asked = f"Price list of {name}, in crowns: {told}.\nWhat does the {ware} cost?"
        samples.append(Sample(input=asked, target=prices[ware], id=f"price-{number}"))
    return Task(dataset=samples, solver=generate(), scorer=match(location="exact"))


@tool
def look_up():
    async def execute(name: str, ware: str) -> str:
        """Look up what a person paid for something.

        Args:
            name: The person.
            ware: What was bought.
        """
        return _LEDGER.get(f"{name} {ware}", "There is no such entry.")

    return execute


_LEDGER = {
    f"{name} {ware}": cost for name, prices in _lists(40, 11) for ware, cost in prices.items()
}


@task
def ledger(count: int = 40) -> Task:
    """What somebody paid, known only to a tool."""
    samples = []
    for number, (entry, cost) in enumerate(list(_LEDGER.items())[:count], 1):
        name, ware = entry.split(" ", 1)
        asked = f"What did {name} pay for the {ware}?"
        samples.append(Sample(input=asked, target=cost, id=f"ledger-{number}"))
    return Task(
        dataset=samples, solver=[use_tools(look_up()), generate()], scorer=match(location="any")
    )
