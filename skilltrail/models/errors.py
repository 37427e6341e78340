"""What can go wrong with a model call, told apart once for every backend.

ModelError
├── ModelConfigError     wrong key, model, or setting: stops the run at once
├── GaveUp               too many failures in a row, over all calls: stops the run
├── RateLimited          too many requests; `retry_after_s` when the provider said so
├── Transient            the network or the provider failed; worth another attempt
│   ├── TimedOut         one whole call used up its time; another attempt may as well
│   ├── EmptyCompletion  no text and finish `length`, again with a higher cap: missing
│   └── LostText         no text, though output came; asked again, then missing
├── TooLong              the request exceeds the model's context: the item's own outcome
├── Unjudged             the judge gave no score that can be used: missing
└── UnseenRequest        the replay backend has no record of this request
"""

from __future__ import annotations

from skilltrail.core.errors import SkilltrailError


class ModelError(SkilltrailError):
    """A model call failed."""


class ModelConfigError(ModelError):
    """No call can work: a key, a model, a setting or an address is wrong."""


class GaveUp(ModelError):
    """The endpoint failed too often in a row."""


class RateLimited(ModelError):
    def __init__(self, asked: str, found: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(asked, found)
        self.retry_after_s = retry_after_s


class Transient(ModelError):
    """`billed` says whether the provider may have counted tokens for the failed call."""

    def __init__(
        self, asked: str, found: str = "", remedy: str = "", *, billed: bool = False
    ) -> None:
        super().__init__(asked, found, remedy)
        self.billed = billed


class TimedOut(Transient):
    """One whole call used up its time."""


class EmptyCompletion(Transient):
    """Hidden reasoning used up the cap, a higher one too."""


class LostText(Transient):
    """Output came, but no text."""


class TooLong(ModelError):
    """The request exceeds the model's context."""


class Unjudged(ModelError):
    """The judge gave no score that can be used."""


class UnseenRequest(ModelError):
    """Nothing is recorded of this request."""
