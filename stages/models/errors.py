"""What can go wrong with a model call, told apart once for every backend.

ModelError
├── ModelConfigError     wrong key, model, or setting: stops the run at once
├── RateLimited          too many requests; `retry_after_s` when the provider said so
├── Transient            the network or the provider failed; worth another attempt
├── TooLong              the request exceeds the model's context: the item's own outcome
└── UnseenRequest        the replay backend has no record of this request
"""

from __future__ import annotations

from stages.core.errors import SkilltrailError


class ModelError(SkilltrailError):
    pass


class ModelConfigError(ModelError):
    pass


class RateLimited(ModelError):
    def __init__(self, asked: str, found: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(asked, found)
        self.retry_after_s = retry_after_s


class Transient(ModelError):
    pass


class TooLong(ModelError):
    pass


class UnseenRequest(ModelError):
    pass
