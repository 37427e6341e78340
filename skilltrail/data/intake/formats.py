"""Rows of files that other tools write, turned into plain columns.

promptfoo   a config or a list of tests, {"vars": …, "assert": [{"type": "equals", …}]}; in CSV
            a column `__expected`
Inspect     an evaluation log, .json or .eval: samples with input, target, choices
DSPy        examples, {"_store": …, "_input_keys": …} or plain; demos of a saved program
OpenAI      chats, {"messages": [{"role", "content"}, …]}: the last answer is expected
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeGuard

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.core.errors import DataError

Row = dict[str, Any]
Unpacked = tuple[str, list[Row], list[str]]
# Assertions of promptfoo's CSV that no check of ours stands for: with a value, and without.
_BARE = {"is-json", "contains-json", "is-xml", "is-sql", "is-html", "is-refusal"}
_OTHERS = _BARE | {
    "fn", "eval", "javascript", "python", "file", "webhook", "grade", "llm-rubric", "similar",
    "factuality", "g-eval", "classifier", "moderation", "model-graded-closedqa",
    "model-graded-factuality", "answer-relevance", "context-recall", "context-relevance",
    "context-faithfulness", "latency", "cost", "perplexity", "levenshtein", "rouge-n", "bleu",
    "contains-any", "contains-all", "icontains-any", "icontains-all",
}  # fmt: skip
# promptfoo's assertion -> our check; `equals` is an accepted answer.
_CHECKS = {
    "contains": "contains",
    "icontains": "contains",
    "not-contains": "not_contains",
    "not-icontains": "not_contains",
    "regex": "regex",
    "not-regex": "not_regex",
}
_MOST_LOG_BYTES = 1 << 30


def unpacked(value: Any, path: Path) -> Unpacked:
    """Return the tool's name, the rows and notes of a file's whole value.

    Raises:
        DataError: it is an object of no tool that is known here.
    """
    if isinstance(value, Mapping):
        for known in (_promptfoo, _inspect, _demos):
            found = known(value)
            if found is not None:
                return found
        lists = [one for one in value.values() if isinstance(one, list) and _objects(one)]
        if len(lists) == 1:
            return unpacked(lists[0], path)
        keys = ", ".join(map(str, list(value)[:8]))
        remedy = "Give a list of objects, JSON lines, or a promptfoo, Inspect or DSPy file"
        raise DataError(f"{path}", f"an object with {keys}", remedy)
    rows = [dict(one) for one in value if isinstance(one, Mapping)]
    if rows and all("vars" in row and isinstance(row["vars"], Mapping) for row in rows):
        return _tests(rows, None)
    if rows and all("_store" in row or "dspy_uuid" in row for row in rows):
        return "DSPy", [_example(row) for row in rows], []
    if rows and all(isinstance(row.get("messages"), list) for row in rows):
        return "chat transcripts", [_chat(row) for row in rows], []
    if rows and any("__expected" in row for row in rows):
        return _csv_tests(rows)
    return "JSON", rows, []


def _yaml(path: Path) -> Any:
    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, YAMLError) as error:
        raise DataError(f"{path}", f"not valid YAML ({error})", "Correct the file") from error


def _eval(path: Path) -> Any:
    """Return an Inspect log of the .eval format, a zip with a file per sample."""
    try:
        with suppress(ModuleNotFoundError):
            import_module("zipfile_zstd")  # teaches `zipfile` what Inspect packs with by now
        with zipfile.ZipFile(path) as log:
            infos = [one for one in log.infolist() if one.filename.startswith("samples/")]
            if sum(one.file_size for one in infos) > _MOST_LOG_BYTES:
                raise ValueError("over 1 GB")
            samples = [json.loads(log.read(one)) for one in infos]
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        remedy = (
            'Run `pip install "skilltrail[inspect]"`, or convert it: `inspect log convert --to '
            "json LOG`"
        )
        raise DataError(f"{path}", f"no readable Inspect log ({error})", remedy) from error
    return {"eval": {}, "samples": samples}


FILES: Mapping[str, Callable[[Path], Any]] = {".yaml": _yaml, ".yml": _yaml, ".eval": _eval}


def _objects(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)
    )


def _promptfoo(value: Mapping[str, Any]) -> Unpacked | None:
    tests = value.get("tests")
    if not _objects(tests) or not any("vars" in one or "assert" in one for one in tests):
        return None
    prompts = value.get("prompts")
    prompts = [prompts] if isinstance(prompts, str) else prompts
    texts = [p for p in prompts if isinstance(p, str)] if isinstance(prompts, list) else []
    template = texts[0] if texts and "{{" in texts[0] else None
    default = value.get("defaultTest")
    shared = default.get("assert", []) if isinstance(default, Mapping) else []
    kind, rows, notes = _tests(
        [{**one, "assert": [*(one.get("assert") or []), *shared]} for one in tests], template
    )
    if template is not None and len(texts) > 1:
        notes = [*notes, f"of {len(texts)} prompts the first is what items ask"]
    return kind, rows, notes


def _tests(tests: Iterable[Mapping[str, Any]], template: str | None) -> Unpacked:
    rows, left = [], 0
    for test in tests:
        variables: Row = dict(test.get("vars") or {})
        asserts = [one for one in test.get("assert") or [] if isinstance(one, Mapping)]
        scored, unknown = _asserted(asserts)
        left += unknown
        row: Row = dict(variables) | scored
        if template is not None:
            row = {"question": _filled(template, variables), **scored}
        elif len(variables) == 1:
            row = {"question": str(next(iter(variables.values()))), **scored}
        rows.append(row)
    notes = [f"{left} assertions have no check of ours and are left out"] if left else []
    return "promptfoo", rows, notes


def _filled(template: str, variables: Mapping[str, Any]) -> str:
    for name, value in variables.items():
        for form in ("{{%s}}", "{{ %s }}"):
            template = template.replace(form % name, str(value))
    return template


def _asserted(asserts: Iterable[Mapping[str, Any]]) -> tuple[Row, int]:
    """Return accepted answers or checks of a test, and how many assertions are neither."""
    answers: list[str] = []
    checks: list[Row] = []
    unknown = 0
    for one in asserts:
        kind, value = str(one.get("type")), one.get("value")
        if kind == "equals" and isinstance(value, (str, int, float)):
            answers.append(str(value))
        elif kind in _CHECKS and isinstance(value, (str, int, float)):
            checks.append({"op": _CHECKS[kind], "arg": str(value)})
        elif kind in ("contains-all", "icontains-all") and isinstance(value, list):
            checks += [{"op": "contains", "arg": str(word)} for word in value]
        else:
            unknown += 1
    if answers:
        return {"answers": answers}, unknown + len(checks)
    return ({"checks": checks} if checks else {}), unknown


def _csv_tests(rows: Iterable[Row]) -> Unpacked:
    """Read promptfoo's CSV: `__expected` is a text, or `contains: text` and the like."""
    tests = []
    for row in rows:
        asserts = []
        for name, cell in row.items():
            if name.startswith("__expected") and str(cell or "").strip():
                asserts.append(_expected(str(cell).strip()))
        variables = {k: v for k, v in row.items() if not k.startswith("__")}
        tests.append({"vars": variables, "assert": asserts})
    return _tests(tests, None)


def _expected(cell: str) -> Row:
    """Return the assertion of a cell: `contains: text`, `is-json`, or a text to equal."""
    kind, colon, value = cell.partition(":")
    name = re.sub(r"\(.*\)$", "", kind.strip())  # similar(0.8): …
    if name in _CHECKS or name == "equals":
        return {"type": name, "value": value.strip()}
    known = name.removeprefix("not-") in (_OTHERS if colon else _BARE)
    return {"type": name if known else "equals", "value": None if known else cell}


def _inspect(value: Mapping[str, Any]) -> Unpacked | None:
    samples = value.get("samples")
    if not _objects(samples) or "eval" not in value:
        return None
    rows = [
        {
            "id": sample.get("id"),
            "question": _said(sample.get("input")),
            "answers": _listed(sample.get("target")),
            **({"choices": sample["choices"]} if sample.get("choices") else {}),
        }
        for sample in samples
    ]
    seen: dict[Any, Row] = {}
    for row in rows:  # a sample has a row per epoch
        seen.setdefault(str(row["id"]), row)
    return "Inspect log", list(seen.values()), []


def _listed(value: Any) -> list[str]:
    return [
        str(one) for one in (value if isinstance(value, list) else [value]) if one is not None
    ]


def _said(value: Any) -> str:
    """Return a prompt's text: a text, or the last message of the user."""
    if not isinstance(value, list):
        return str(value)
    texts = [one.get("content") for one in value
             if isinstance(one, Mapping) and one.get("role") == "user"]  # fmt: skip
    last = texts[-1] if texts else ""
    if isinstance(last, list):
        last = "\n".join(str(p.get("text", "")) for p in last if isinstance(p, Mapping))
    return str(last)


def _chat(row: Row) -> Row:
    messages = row["messages"]
    replies = [one.get("content") for one in messages
               if isinstance(one, Mapping) and one.get("role") == "assistant"]  # fmt: skip
    rest = {key: value for key, value in row.items() if key != "messages"}
    answer = {"answer": str(replies[-1])} if replies and replies[-1] is not None else {}
    return rest | {"question": _said(messages)} | answer


def _demos(value: Mapping[str, Any]) -> Unpacked | None:
    """Read the demos of a DSPy program that was saved as JSON."""
    found = [
        one
        for part in value.values()
        if isinstance(part, Mapping) and _objects(part.get("demos"))
        for one in part["demos"]
    ]
    return ("DSPy", [_example(one) for one in found], []) if found else None


def _example(row: Mapping[str, Any]) -> Row:
    """Return the fields of a `dspy.Example`, without what DSPy keeps for itself."""
    store = row.get("_store")
    fields = dict(store) if isinstance(store, Mapping) else dict(row)
    own = ("augmented", "rationale", "reasoning")
    return {
        k: v for k, v in fields.items() if not k.startswith(("dspy_", "_")) and k not in own
    }
