"""The same job by several tools, each as its own documentation would have it done.

The job: score three documents on the same items, one call each; `third` names the third one, so
that a job with another name has two documents in common with it. A module has
`run(url, items, workers, folder, third)`; `folder` is where a tool may keep what outlives it.
"""

from __future__ import annotations

TIMEOUT_S = 3.0  # of one call, for all
PROMPT = "Context: " + "some words of context " * 60
DOCUMENTS = ("- A rule of the skill.\n" * 20, "- Another rule.\n" * 20)


def documents(third: str) -> list[str]:
    """Return the three documents of a job."""
    return [*DOCUMENTS, f"- The rule of {third}.\n" * 20]


def questions(items: int) -> list[str]:
    return [f"{PROMPT}\nQuestion: which {n}?" for n in range(items)]
