"""Which column is what: names in any case, of the usual pairs, in English and Korean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ROLES = ("question", "answer", "context", "choices", "id", "task_type", "group")
# The usual names of each role; earlier ones win.
NAMES: Mapping[str, tuple[str, ...]] = {
    "question": (
        "question", "instruction", "prompt", "input", "query", "problem", "task", "utterance",
        "request", "user", "text", "sentence", "q", "질문", "문제", "입력", "질의",
    ),
    "answer": (
        "answers", "answer", "expected", "expectedoutput", "expectedanswer", "target",
        "output", "completion", "response", "label", "gold", "goldanswer", "groundtruth",
        "reference", "ideal", "correctanswer", "correct", "answerkey", "solution", "category",
        "a",
        "정답", "답변", "답", "출력", "기대값",
    ),
    "context": (
        "context", "passage", "document", "article", "background", "paragraph", "snippet",
        "body", "source", "본문", "지문", "문맥", "맥락", "배경",
    ),
    "choices": ("choices", "options", "candidates", "보기", "선택지"),
    "id": ("id", "key", "uid", "uuid", "qid", "questionid", "exampleid", "sampleid", "번호"),
    "task_type": (
        "tasktype", "type", "questiontype", "category", "topic", "subject", "domain", "skill",
        "유형", "분류", "범주",
    ),
    "group": ("group", "groupid", "documentid", "docid", "sourceid", "그룹"),
}  # fmt: skip
# Columns that together hold the choices: A, B, C, … or option_a, choice1, …
_LETTER = re.compile(r"(?:option|choice|opt)?([a-h]|[1-8])")


@dataclass(frozen=True)
class Columns:
    """The column of each role that was found; `options` are columns of one choice each."""

    of: Mapping[str, str]
    options: tuple[str, ...] = ()
    guessed: bool = False

    def get(self, role: str) -> str | None:
        return self.of.get(role)


def bare(name: str) -> str:
    """Return a column's name as it is compared: no case, blanks, underscores or signs."""
    return re.sub(r"[\W_]+", "", name).casefold()


def find_columns(names: Sequence[str], given: Mapping[str, str] | None = None) -> Columns:
    """Return what the columns `names` are; `given` (role -> column) is what a person says.

    A table of two columns without known names is taken as question and answer, `guessed`.
    """
    found: dict[str, str] = {} if given is None else dict(given)
    # Of a field inside an object, `input.question`, its own name counts, after plain columns'.
    plain = {bare(name.rpartition(".")[2]): name for name in reversed(names) if "." in name}
    plain |= {bare(name): name for name in reversed(names)}
    options = _options(names)
    for role in ROLES:
        taken = {*found.values(), *options}
        if role in found:
            continue
        for known in NAMES[role]:
            if known in plain and plain[known] not in taken:
                found[role] = plain[known]
                break
    _alpaca(found, plain, given)
    guessed = False
    rest = [name for name in names if name != found.get("id")]
    if len(rest) == 2 and not {"question", "answer"} <= found.keys() and not given:
        found |= {"question": rest[0], "answer": rest[1]}
        found = {k: v for k, v in found.items() if k in ("id", "question", "answer")}
        guessed = True
    return Columns(found, options if "choices" not in found else (), guessed)


def _alpaca(
    found: dict[str, str], plain: Mapping[str, str], given: Mapping[str, str] | None
) -> None:
    """Take `input` beside `instruction` for what the instruction is about."""
    if given or "instruction" not in plain or "input" not in plain:
        return
    if found.get("question") == plain["instruction"] and "context" not in found:
        found["context"] = plain["input"]


def _options(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns A, B, C (, …) or option1, option2, … in order; () below two."""
    found = {}
    for name in names:
        match = _LETTER.fullmatch(bare(name))
        if match is not None:
            found[match[1]] = name
    letters = [one for one in "abcdefgh" if one in found]
    digits = [one for one in "12345678" if one in found]
    for line, whole in ((letters, "abcdefgh"), (digits, "12345678")):
        if len(line) >= 3 and "".join(line) == whole[: len(line)]:
            return tuple(found[one] for one in line)
    return ()
