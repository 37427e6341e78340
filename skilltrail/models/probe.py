"""One small call to a configured role: does it work, by which API, and if not, why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from skilltrail.core.errors import SkilltrailError
from skilltrail.models.client.identity import provider_label, resolved_api
from skilltrail.models.client.prices import price_of
from skilltrail.models.environ import redactor
from skilltrail.models.errors import EmptyCompletion, TooLong
from skilltrail.models.protocol import Decoding, Request
from skilltrail.models.registry import key_env_of, open_model, warning_of
from skilltrail.params.model_options import RetryOptions, RoleOptions

_ASK = Request(
    system="You are being tested.\n\n",
    prompt="Answer with the one word: ok",
    decoding=Decoding(max_tokens=16),
)
_ONCE = RetryOptions(attempts=1, after_timeout=0)


@dataclass(frozen=True)
class ProbeResult:
    """What a probe call found.

    Attributes:
        api: the protocol that is spoken, with its reason; "" where there is no choice.
        answered: the model's name as the provider returned it; "" when there was no reply.
        abilities: of schema, tools, vision: what the role counts on.
        priced: whether the role's price is known.
        problem: what is wrong and what to do; "" when all is well.
        warning: what is not wrong and had better be otherwise, or "".
    """

    role: str
    provider: str
    api: str
    answered: str
    abilities: tuple[str, ...]
    priced: bool
    problem: str
    warning: str = ""

    @property
    def ok(self) -> bool:
        return self.problem == ""


async def probe(
    role: str, options: RoleOptions, environ: Mapping[str, str] | None = None
) -> ProbeResult:
    """Make one call with the role's own settings, without retries, and say what came of it.

    A setting that the provider refuses shows here, before any money is spent. A reply cut by
    its cap still proves that the role works; one that ended without a text does not. Secrets
    are taken out of all texts.
    """
    answered, problem = "", ""
    abilities: tuple[str, ...] = ()
    try:
        model = open_model(role, replace(options, retry=_ONCE), environ=environ)
        abilities = tuple(sorted(model.abilities))
        try:
            reply = await model.complete(_ASK)
            answered = reply.model if reply.model else options.model
        except (EmptyCompletion, TooLong):
            answered = options.model
        finally:
            await model.close()
    except SkilltrailError as error:
        problem = str(error)
    api, why = resolved_api(options)
    speaks = options.backend in ("openai", "azure", "vllm", "minimax")
    key_env, warning = key_env_of(options), warning_of(role, options)
    hide = redactor(environ, () if key_env is None else (key_env,)).text
    return ProbeResult(
        role=role,
        provider=provider_label(options),
        api=f"{api} ({why})" if speaks else "",
        answered=hide(answered),
        abilities=abilities,
        priced=price_of(role, options) is not None,
        problem=hide(problem),
        warning="" if warning is None else warning,
    )
