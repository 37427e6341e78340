"""Rules at level *log* on what a reader is shown: logs, best skill, and what is drawn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from os.path import commonprefix
from pathlib import Path
from typing import Any

from skilltrail.core.layout import BEST_SKILL, EVENTS, METRICS
from skilltrail.history.log.erasure import ERASED
from skilltrail.history.log.replay import version_of
from skilltrail.history.log.words import count
from skilltrail.runtime.outputs import TEST_ROLLOUTS, TRAIN_ROLLOUTS
from skilltrail.store.exports import shard_files
from skilltrail.verify.chain import names_here
from skilltrail.verify.doors import run_name
from skilltrail.verify.evidence import OPENED, Evidence
from skilltrail.verify.log import FINISHED
from skilltrail.verify.result import Check, Fault

CURVE, PAGE = METRICS.with_name("curve.tsv"), METRICS.with_name("index.html")
_SHOWN_CHARS = 40


def training_log(evidence: Evidence) -> Check:
    """Chain, schemas, versions and every decision that follows."""
    report = evidence.training
    if evidence.own:
        ends = [at for at, event in enumerate(report.events) if event.type == FINISHED]
        after = report.events[ends[0] + 1 :] if ends else []
        for event in (event for event in after if event.type != ERASED):
            fault = Fault.of(event, "place", "after the end of the run", "no event")
            report.faults.append(fault)
    return report.check


def evaluation_log(evidence: Evidence) -> Check | None:
    """The same of the evaluation, which goes on from the training log."""
    report = evidence.evaluation
    if report is None:
        return None
    if report.events and report.events[0].type != OPENED:
        fault = Fault.of(report.events[0], "place", report.events[0].type, OPENED)
        report.faults.append(fault)
    return report.check


def kept_evaluations(evidence: Evidence) -> Check | None:
    """The logs of the run's evaluations, whoever asked for them, as far as each goes."""
    checks = [report.check for report in evidence.kept]
    faults = tuple(fault for check in checks for fault in check.faults)
    done, of = sum(c.done for c in checks), sum(c.of for c in checks)
    return Check(done, of, count(len(checks), "log"), faults) if checks else None


def best_skill(evidence: Evidence) -> Check:
    """`skills/best_skill.md` is the best version of the log."""
    path = evidence.place.workspace / BEST_SKILL
    if not path.is_file():
        return Check(0, 1, "none is here")
    best = version_of(evidence.training.events, "best")
    # A frontmatter may keep CR LF; else a checkout may have made them of LF.
    texts = (path.read_bytes(), _lf(path))
    digests = [hashlib.sha256(data).hexdigest() for data in texts]
    if best.digest in digests:
        return Check(1, 1, f"version {best.number}")
    right = f"{best.digest}, version {best.number}"
    return Check(1, 1, "", (Fault(None, BEST_SKILL.as_posix(), "sha256", digests[0], right),))


def live_log(evidence: Evidence) -> Check | None:
    """The live log of this run, where it was made here, says the same."""
    e, folder = evidence, evidence.place.state / "runs"
    path = folder / (run_name(e) if folder.is_dir() else "") / EVENTS.name
    if not path.is_file():
        return None
    found, right = _lf(e.place.workspace / EVENTS), _lf(path)
    if found == right:
        return Check(1, 1, path.parent.name)
    faults = tuple(_lines(EVENTS, found.decode("utf-8", "replace"), right.decode()))
    return Check(1, 1, f"compared with the live log {path.parent.name}", faults)


def drawn(path: Path) -> Callable[[Evidence], Check]:
    """Return the rule that a file of the report is what the logs give."""

    def rule(evidence: Evidence) -> Check:
        return _drawn(evidence, path)

    return rule


def _drawn(evidence: Evidence, path: Path) -> Check:
    e = evidence
    if not (e.place.workspace / path).is_file():
        return Check(0, 1, "none is here")
    found = _lf(e.place.workspace / path).decode("utf-8", "replace")
    texts = iter(e.drawn[path])
    right = next(texts)
    if found == right or found in texts:
        return _named(e) if path == PAGE else Check(1, 1)
    compare = _numbers if path == METRICS else _lines
    faults = list(compare(path, found, right))
    if path != CURVE and not _exports(e):
        faults = [] if path == PAGE else [f for f in faults if f.what != "tokens"]
        check = e.held("report", 1, faults)
        return check if faults else Check(0, 1, "the rollouts behind it are not here")
    return e.held("report", 1, faults)


def _named(evidence: Evidence) -> Check:
    """Return the check of a page that is right but for the run's name, which no log holds."""
    name, names = evidence.run_name, names_here(evidence.place.root, evidence.training.last)
    if name is None or not names:  # without refs, the level `anchored` is not checked
        return Check(1, 1)
    held = any(one == name or one.endswith(f"/{name}") for one in names)
    return Check(1, 1, name) if held else Check(0, 1, f"no ref calls this run {name!r}")


def _exports(evidence: Evidence) -> bool:
    folders = (evidence.place.workspace / one for one in (TRAIN_ROLLOUTS, TEST_ROLLOUTS))
    return all(shard_files(folder) for folder in folders)


def _numbers(path: Path, found: str, right: str) -> Iterator[Fault]:
    """Yield a fault for each number that differs."""
    try:
        recorded = dict(_leaves(json.loads(found)))
    except (ValueError, RecursionError) as error:
        yield Fault(None, path.as_posix(), "form", str(error), "JSON")
        return
    wanted = dict(_leaves(json.loads(right)))
    names = [n for n in {**wanted, **recorded} if recorded.get(n) != wanted.get(n)]
    for name in names:
        yield Fault(None, path.as_posix(), name, recorded.get(name), wanted.get(name))
    if not names:
        yield from _lines(path, found, right)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{name}.{key}" if name else key)


def _lines(path: Path, found: str, right: str) -> Iterator[Fault]:
    """Yield a fault for the first line that differs, where it does."""
    ours, theirs = found.split("\n"), right.split("\n")
    pairs = enumerate(zip(ours, theirs, strict=False), 1)
    line, (a, b) = next(
        ((n, pair) for n, pair in pairs if pair[0] != pair[1]),
        (min(len(ours), len(theirs)), (f"{len(ours)} lines", f"{len(theirs)} lines")),
    )
    same = len(commonprefix((a, b)))
    start = max(0, same - _SHOWN_CHARS)
    shown = slice(start, same + _SHOWN_CHARS)
    yield Fault(None, path.as_posix(), f"line {line}", a[shown], b[shown])


def _lf(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n")
