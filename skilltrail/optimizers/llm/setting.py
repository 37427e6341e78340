"""What is trained, and for whom, in words: target, domain, scorer. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from skilltrail.optimizers.failure_types import Domain
from skilltrail.params.model_options import EMBEDDED_BACKENDS, EMBEDDED_MODEL, RoleOptions

_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?([bm])(?![a-z])", re.IGNORECASE)
_SMALL_B = 4.0  # billions of parameters: below, showing works better than telling
_AGENT = {
    "python": "writes Python programs that are run",
    "shell": "has a shell",
    "files": "reads and writes files of its task",
    "tools": "acts over several turns",
}


@dataclass(frozen=True)
class Setting:
    """What every question is told of the run; `target` None = nothing is known of it.

    `others` are further targets of a run with several.
    """

    target: RoleOptions | None = None
    domain: Domain = field(default_factory=Domain)
    others: tuple[RoleOptions, ...] = ()

    @property
    def is_small(self) -> bool:
        """True where a target's size is known to be small."""
        targets = self.others if self.target is None else (self.target, *self.others)
        sizes = [size_of(target.model) for target in targets]
        return any(size is not None and size < _SMALL_B for size in sizes)

    def text(self) -> str:
        """Return the lines of the prompt part `_setting`; "" where nothing is known."""
        lines = [f"- Domain: {line}" for line in self.domain.about]
        lines += [f"- Scorer: {line}" for line in self.domain.scoring]
        if self.domain.agent:
            does = "; ".join(_AGENT[name] for name in self.domain.agent)
            lines.append(f"- The agent {does}.")
        if self.target is not None:
            lines += _of_target(self.target)
        for target in self.others:
            lines += _of_target(target)
        if self.is_small:
            lines.append(
                "- The target is small: it continues patterns better than it follows rules. "
                "Worked examples are the rule here, not the exception: show each kind of task "
                "once or more, in exactly the form the agent meets it, answer last. What "
                "stands late in the document weighs most, and a small model copies words of "
                "examples as answers (`leaked`): vary them."
            )
        return "\n".join(["What is trained, and for whom:", "", *lines]) if lines else ""


def size_of(model: str) -> float | None:
    """Return a model's size in billions of parameters where its name tells it."""
    found = _SIZE.search(model.replace("_", "-").replace("-", " "))
    if found is None:
        return None
    return float(found[1]) / (1 if found[2] in "bB" else 1000)


def _of_target(target: RoleOptions) -> list[str]:
    embedded = target.backend in EMBEDDED_BACKENDS
    completes = target.style == "completion" if embedded else target.api == "completions"
    size = size_of(target.model)
    told = [f"model {target.model}"]
    if size is not None:
        told.append(f"about {size:g} billion parameters")
    told.append("plain text completion, no chat" if completes else "chat")
    if embedded:
        told.append(f"context {target.n_ctx} tokens")
    if target.max_tokens is not None:
        told.append(f"replies of at most {target.max_tokens} tokens")
    place = (
        "the document stands in front of the task as plain text, and the model goes on after it"
        if completes
        else "the document is the system message, the task the message after it"
    )
    if target.model == EMBEDDED_MODEL:
        told[0] += " (embedded)"
    return [f"- Target: {', '.join(told)}; {place}."]
