"""The answer in a reply's text, without the reasoning that a server left in it.

Servers should report reasoning apart; many put some of it into the text, in the form that the
model was trained on. Known forms: a block in tags of any kind (`<think>`, `[THINK]`,
`<|START_THINKING|>`, ...), a closing tag whose opening stood in the prompt, and Harmony's
channels, of which `final` is the answer (https://github.com/openai/harmony). What a prompt may
have asked for, such as `<analysis>` or a heading, is a part of the answer.
"""

from __future__ import annotations

import re

from skilltrail.core.canon import value_of

_NAME = (
    r"(?:(?!end[_-])\w+[:_-])?(?:(?:ant)?thinking(?:[_-]process)?|think|thoughts?(?:[_-]process)?"
    r"|reasoning(?:_content)?|scratchpad|cot|chain[_-]of[_-]thought"
    r"|(?:inner|internal)[_-]monologue)"
)
_OPEN = rf"""(?: <\|?{_NAME}(?:\s[^<>]*)?(?<!/)\|?> | \[(?:THINK|THINKING|REASONING)\] | ◁think▷
    | <\|(?:begin|start)_of_(?:thought|thinking|reasoning)\|> | <\|START_THINKING\|>
    | <\|inner_prefix\|> | <unused94> | <\|channel>[ ]*thought\b | <\|plamo:begin_think:plamo\|>
    | <\|open\|>think<\|sep\|> | (?:<\|message_model\|>)?<\|content_thinking\|> )"""
_CLOSE = rf"""(?: <\|?/{_NAME}\s*\|?> | \[/(?:THINK|THINKING|REASONING)\] | ◁/think▷
    | <\|end_of_(?:thought|thinking|reasoning)\|> | <\|END_THINKING\|>
    | <\|inner_suffix\|> | <unused95> | <channel\|> | <\|plamo:end_think:plamo\|>
    | <\|close\|>think<\|sep\|> | <\|end_message\|>(?:<\|message_model\|>)?<\|content_text\|>
    | (?:<\|begin\|>assistant)?<\|content\|> )"""
_DOTTED = re.DOTALL | re.IGNORECASE | re.MULTILINE
_FLAGS = _DOTTED | re.VERBOSE
_OPENING = re.compile(_OPEN, _FLAGS)
# A block begins a line, or follows a mark of the text's beginning; one that is never closed
# reaches to the end.
_BLOCK = re.compile(
    rf"^(?:[^\S\n]|\ufeff|<s>|<bos>)*(?:{_OPEN}.*?(?:{_CLOSE}|\Z)|<{_NAME}\s*/>)\s*", _FLAGS
)
# A tag in quotes is talked about, not used.
_CLOSING = re.compile(rf"(?P<line>^[ \t]*)?(?<![`'\"]){_CLOSE}\s*", _FLAGS)
_IN_WORDS = re.compile(
    r"""\A[\s*\#]*(?: here(?:'s|\ is)\ my\ thought\ process:
        .*? here(?:'s|\ is)\ my\ response:\**
    | thinking\.\.\.\n .*? \n\.\.\.done\ thinking\.
    | here\ are\ my\ reasoning\ steps: .*? \[BEGIN\ FINAL\ RESPONSE\]
    | /think\n .*? <\|im_end\|>\s*<\|im_start\|>assistant\b
    | <\|im_start\|>think\b .*? <\|im_start\|>answer\b )\s*""",
    _FLAGS,
)
# As a chat interface passes it on; of itself the tag is Markdown like any other.
_FOLDED = re.compile(r"^[ \t]*<details type=.reasoning.[^<>]*>.*?</details>\s*", _DOTTED)
# Markdown that says what it holds; where nothing else was said, it is the answer.
_BESIDE = re.compile(
    r"""^[ \t]*(?: <details[^<>]*>\s*<summary>\W*(?:think|thought|reasoning)[^<>]*</summary>
        .*? </details>
    | ```(?:thinking|thoughts?|reasoning)\n .*? \n``` )\s*""",
    _FLAGS,
)
# What models that reason put around the answer itself.
_WRAPPING = re.compile(
    r"<\|(?:start|end)_(?:response|text)\|>|\A\s*<reflection>.*?</reflection>"
    r"|<\|(?:open|close)\|>response<\|sep\|>"
    r"|\A\s*<(?:response|output)>|</(?:response|output)>\s*\Z|\[END FINAL RESPONSE\]",
    re.IGNORECASE | re.DOTALL,
)
_BOX = re.compile(r"<\|(?:begin|end)_of_(?:solution|box)\|>")
# A chat template's own mark of an end, which no server should pass on.
_ENDED = re.compile(
    r"(?:\s*(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|eos|return|endofturn|stop"
    r"|end_message|plamo:tag)\|>|<end_of_turn>|\[\|endofturn\|\]|<SPECIAL_12>"
    r"|<turn\|>|<｜end▁of▁sentence｜>))+\s*\Z"
)
_ONE_VALUE = re.compile(r"\s*(?:```\w*\s*)?([\[{].*[\]}])\s*(?:```)?\s*", re.DOTALL)
_HARMONY = re.compile(r"<\|(start|channel|message|constrain|end|return|call)\|>")
_CHANNELS = ("analysis", "commentary", "final")
# Harmony without its special tokens: the words of its headers run into the text.
_HARMONY_BARE = re.compile(
    r"\A\s*analysis(?=[A-Z]|.*assistantfinal)|\A(?=.*[.!?)\s]assistantfinal(?! \w))", re.DOTALL
)


def final_answer(text: str) -> tuple[str, bool]:
    """Return the answer in a reply's text, and whether there was reasoning beside it.

    A text without reasoning comes back as it is.
    """
    answer, found = _harmony(text) if _HARMONY.search(text) is not None else (text, False)
    bare = _HARMONY_BARE.match(answer)
    if bare is not None:
        answer, found = answer[bare.end() :].partition("assistantfinal")[2], True
    for block in (_IN_WORDS, _FOLDED, _BLOCK):
        answer, count = block.subn("", answer)
        found = found or count > 0
    beside, count = _BESIDE.subn("", answer)
    if count and beside.strip():
        answer, found = beside, True
    end = _lone_closing(answer)
    if end is not None:
        answer, found = answer[end:], True
    if found and _is_json(text):
        return text, False  # the marks stand in its strings
    answer = _ENDED.sub("", answer)
    if "<s" not in answer:  # of a text's beginning, or of HTML
        answer = re.sub(r"\s*</s>\s*\Z", "", answer)
    if not found:
        return _BOX.sub("", answer), False
    while (inside := _WRAPPING.sub("", _BOX.sub("", answer)).strip()) != answer:
        answer = inside
    return answer, True


def _is_json(text: str) -> bool:
    """Return whether a text is JSON as a whole, in a code fence or not."""
    whole = _ONE_VALUE.fullmatch(text)
    try:
        return whole is not None and value_of(whole[1]) is not None
    except ValueError:
        return False


def _lone_closing(text: str) -> int | None:
    """Return the end of the last closing tag whose opening is not in the text."""
    opening = _OPENING.search(text)
    ends = [
        mark.end()
        for mark in _CLOSING.finditer(text)
        if mark["line"] is not None or opening is None or mark.start() < opening.start()
    ]
    return ends[-1] if ends else None


def _harmony(text: str) -> tuple[str, bool]:
    """Return the last final message, or what follows the messages outside of any, and whether
    there were other channels."""
    before, *rest = _HARMONY.split(text)
    if rest[0] == "message" and before.strip().startswith(_CHANNELS):
        rest = ["channel", before, *rest]  # the first token stood in the prompt
        before = ""
    channel, outside, finals, others = "final", [before], [], False
    for token, part in zip(rest[::2], rest[1::2], strict=True):
        if token == "start":
            channel = "final"
        elif token == "channel":
            channel = part.split()[0] if part.split() else ""
            others = others or channel != "final"
        elif token == "message" and channel == "final":
            finals.append(part)
        elif token in ("end", "return", "call"):
            outside.append(part)
    said = [part for part in finals if part.strip()]
    return (said[-1] if said else "".join(outside)).strip(), others
