"""Foreign JSON made typed, once and at the door: what a provider or a program said.

Nothing here trusts a shape. What has another one than its protocol says is passed over and
named (`Said.blocks`), or the whole body is an unusable answer; null is never a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as count_from
from typing import Any

from skilltrail.core.canon import shallow, value_of
from skilltrail.models.client.classify import WORDS, Endpoint, classify, malformed, own_status
from skilltrail.models.errors import ModelConfigError, ModelError
from skilltrail.models.protocol import Reply

_MOST_TOKENS = 10**12
_ENDS: dict[str, str] = {
    word: end for end, words in WORDS["ends"].items() for word in words.split()
}
_TEXT_PARTS = (None, "", "text", "output_text", "input_text")
# Fields of a message that say nothing of output besides text, calls and refusals.
_KNOWN_FIELDS = re.compile(
    "role|name|id|object|type|status|content|text|refusal|tool_calls|function_call|annotations"
    "|provider_specific_fields|tool_call_id|(?:native_)?finish_reason|stop_reason|matched_stop"
    "|logprobs|recipient"
)
# Where a body without a reply may say what is wrong.
_COMPLAINTS = (
    "errors", "detail", "message", "msg", "error_msg", "Message", "base_resp", "promptFeedback",
    "prompt_feedback",
)  # fmt: skip
_PAGE = re.compile(r"\s*<[a-z!?]", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>\s*(.{0,80}?)\s*</title>", re.IGNORECASE | re.DOTALL)
_STREAM = re.compile(r"\s*(?:data|event|id|retry)?:")


def body_of(endpoint: Endpoint, data: bytes) -> Mapping[str, Any]:
    """Return the JSON object that a 200 brought.

    Raises:
        Refused, ModelError: it is none, or it tells of an error.
    """
    try:
        value = shallow(json.loads(data))
    except (ValueError, RecursionError) as error:
        text = data[:4000].decode("utf-8-sig", "replace")
        raise page_error(endpoint, text) or malformed(
            endpoint, f"no JSON ({error}): {text[:80]!r}"
        ) from error
    body = next(iter(rows(value)), value)
    if not isinstance(body, Mapping):
        raise malformed(endpoint, f"no JSON object: {json.dumps(body)[:80]}")
    told = body.get("error")
    if told and (holds(told) or own_status(body, 0)):
        raise classify(endpoint, 200, body)
    return body


def page_error(endpoint: Endpoint, text: str) -> ModelError | None:
    """Return the error that a web page or an event stream in place of JSON means."""
    what, remedy = "a web page came back", endpoint.address_remedy
    if _STREAM.match(text):
        what = "an event stream came back, although none was asked for"
        remedy = f"{remedy}, or switch streaming off at the server"
    elif not _PAGE.match(text):
        return None
    title = _TITLE.search(text)
    return ModelConfigError(
        endpoint.asked, what if title is None else f"{what}: {title[1]!r}", remedy
    )


def no_reply(endpoint: Endpoint, body: Mapping[str, Any], what: str) -> ModelError:
    """Return the error for a 200 without a reply; `what` is missing in it.

    Raises:
        Refused: the provider declined the content.
    """
    told = {name: body[name] for name in _COMPLAINTS if holds(body.get(name))}
    if told:
        return classify(endpoint, 200, {**body, **told} if own_status(body, 0) else told)
    came = ", ".join(f"{name} {json.dumps(value)[:40]}" for name, value in body.items())
    return malformed(endpoint, f"{what}; what came: {came if came else 'nothing'}")


def mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def rows(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of `value` if it is a list, else none."""
    return list(filter(None, map(mapping, value))) if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return `value` if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def holds(value: Any) -> bool:
    """Return whether any text in a JSON value is not empty."""
    if isinstance(value, Mapping):
        return any(map(holds, value.values()))
    return any(map(holds, value)) if isinstance(value, list) else text_of(value) != ""


def ended(word: Any) -> str:
    """Return why a reply ended: `stop`, `length`, `tool`, `refusal`; `broken` if it did not."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text_of(word)).partition(":")[0]
    plain = re.sub(r"[\s-]+", "_", plain.rpartition(".")[2].strip().lower())
    return _ENDS.get(plain.removeprefix("finish_reason_"), "stop")


def count(holder: Any, *path: str) -> int | None:
    """Return the token count at `path`, None where there is none that could be one."""
    for name in path:
        holder = mapping(holder).get(name)
    if isinstance(holder, float) and holder.is_integer():
        holder = int(holder)  # some servers count in floats
    return holder if type(holder) is int and 0 <= holder <= _MOST_TOKENS else None


def usage_of(input: int | None, output: int | None, **parts: int | None) -> dict[str, int]:
    """Return token counts; what is not known is not in it.

    Every request has tokens: where 0 of them are counted, 0 of output says nothing either.
    """
    told = {"input": input if input else None, "output": output if input or output else None}
    known = {name: n for name, n in told.items() if n is not None}
    return known | {name: n if n else 0 for name, n in parts.items()} if known else {}


def openai_usage(told: Any, sent: str, back: str) -> dict[str, int]:
    """Return the token counts of OpenAI's APIs; `sent` and `back` are the API's words for the
    two sides, as in `prompt_tokens`.

    Some providers leave reasoning out of the output; their total holds it.
    """
    fresh, output = count(told, f"{sent}_tokens"), count(told, f"{back}_tokens")
    total = count(told, "total_tokens")
    if fresh is not None and output is not None and total is not None:
        output = max(output, total - fresh)
    return usage_of(
        fresh,
        output,
        cached=count(told, f"{sent}_tokens_details", "cached_tokens"),
        reasoning=count(told, f"{back}_tokens_details", "reasoning_tokens"),
    )


def message_usage(told: Any) -> dict[str, int]:
    """Return the token counts of the Messages API; tokens read from and written to a cache are
    part of the input here, unlike there."""
    read = count(told, "cache_read_input_tokens")
    written = count(told, "cache_creation_input_tokens")
    fresh = count(told, "input_tokens")
    whole = None if fresh is None else sum(n for n in (fresh, read, written) if n is not None)
    output = count(told, "output_tokens")
    return usage_of(whole, output, cached=read, written=written, reasoning=0)


@dataclass(frozen=True)
class Said:
    """What one reply says.

    Attributes:
        calls: tool calls, as in `Reply`.
        blocks: kinds of what came besides text, calls and refusals, such as `thinking`.
    """

    text: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    blocks: tuple[str, ...] = ()
    refused: bool = False

    def ended_at(self, *words: Any, of: Sequence[str]) -> Said:
        """Return what is said where the server names the stop, one of `of`, that it ended at:
        one that nothing stands before is the text, and no sign of a text that got lost."""
        met = [word for word in words if isinstance(word, str) and word in of]
        nothing = not (self.text or self.calls or self.blocks or self.refused)
        return replace(self, text=met[0]) if met and nothing else self

    def reply(self, endpoint: Endpoint, word: Any, model: str, usage: dict[str, int]) -> Reply:
        """Return the reply; `word` is the provider's for why it ended.

        Raises:
            Transient: it did not end.
        """
        finish, blocks = ended(word), self.blocks
        if finish == "broken":
            raise malformed(endpoint, f"finish reason {word!r}")
        if self.refused:
            finish = "refusal"
        elif self.calls and finish == "stop":
            finish = "tool"
        elif finish == "tool" and not self.calls:
            finish, blocks = "stop", (*blocks, "a tool call that is none")
        if (self.text or self.calls) and not usage.get("output"):
            usage = {name: n for name, n in usage.items() if name != "output"}
        return Reply(self.text, finish, self.calls, model, usage, blocks=blocks)


def said_in(endpoint: Endpoint, content: Any) -> Said:
    """Return what a message's content says: a text, or a list of parts. A part that is neither
    text nor refusal is named in `blocks`.

    Raises:
        Transient: it has another shape.
    """
    if content is None or isinstance(content, str):
        return Said(text_of(content))
    if not isinstance(content, list):
        raise malformed(endpoint, f"content of type {type(content).__name__}")
    texts, blocks, refused = [], [], False
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = mapping(part).get("type")
        text = mapping(part).get("text")
        text = mapping(text).get("value", text)
        if isinstance(text, str) and kind in _TEXT_PARTS:
            texts.append(text)
        elif kind == "refusal":
            refused = True
        else:
            blocks.append(text_of(kind) if text_of(kind) else "an unknown part")
    return Said("".join(texts), (), tuple(dict.fromkeys(blocks)), refused)


def beside(message: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of a message that hold output besides what the protocol names, such as
    `reasoning_content`."""
    told = (name for name in message if not _KNOWN_FIELDS.fullmatch(name))
    return tuple(name for name in told if holds(message[name]))


def with_calls(endpoint: Endpoint, said: Said, calls: list[tuple[Any, Any, Any]]) -> Said:
    """Return `said` with tool calls, each (id, name, arguments).

    Raises:
        Transient: a call has no name.
    """
    if not calls:
        return said
    if not all(text_of(name) for _, name, _ in calls):
        raise malformed(endpoint, "a tool call without a name")
    ids = _own_ids([text_of(id) for id, _, _ in calls])
    read = tuple(
        {"id": id, "name": name, "arguments": arguments(told)}
        for id, (_, name, told) in zip(ids, calls, strict=True)
    )
    return replace(said, calls=read)


def _own_ids(told: list[str]) -> list[str]:
    """Return an id for each call, as told where no other call of the reply has it."""
    ids: list[str] = []
    for number, id in enumerate(told, start=1):
        free = (f"call_{n}" for n in count_from(number) if f"call_{n}" not in (*told, *ids))
        ids.append(id if id and id not in ids else next(free))
    return ids


def arguments(told: Any) -> Mapping[str, Any]:
    """Return a tool call's arguments, given as JSON text or as an object.

    Broken JSON stays visible to the environment as {"_unparsed": text}: it is the model's
    output, to be judged, not a failure of the line.
    """
    text = told if isinstance(told, str) else json.dumps({} if told is None else told)
    try:
        value = value_of(text) if text.strip() else {}
    except ValueError:
        return {"_unparsed": text}
    return value if isinstance(value, dict) else {"_unparsed": text}
