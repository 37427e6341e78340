"""`skilltrail audit`, `blame`, `bisect`: why a line is there, and what it did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer

from skilltrail.cli.options import JSON, RUN
from skilltrail.cli.sources import answer, source_of
from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.history.ask.audit import audit_line, audit_patch, audit_text, audit_version
from skilltrail.history.ask.audit_record import Audit, LogOnly, RolloutEvidence
from skilltrail.history.ask.bisect import BisectResult
from skilltrail.history.ask.sources import LogFound, number_of
from skilltrail.history.log.run_log import RunLog
from skilltrail.runtime.command import until_stopped
from skilltrail.runtime.console import emit, emit_json, table
from skilltrail.skill.folder import MAIN

FILE = Annotated[
    str | None, typer.Option(metavar="PATH", help="File of a skill folder; lines are its own.")
]


def audit(
    version: Annotated[str | None, typer.Option(help="Of this version.")] = None,
    patch: Annotated[str | None, typer.Option(help="Of this patch or edit.")] = None,
    line: Annotated[int | None, typer.Option(help="Of this line (of --version).")] = None,
    text: Annotated[str | None, typer.Option(help="Of every line with this text.")] = None,
    file: FILE = None,
    run: RUN = None,
    everything: Annotated[bool, typer.Option("--all", help="Cut no list.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    as_json: JSON = False,
) -> None:
    """Answer why a change was made: evidence, proposal, merge, selection, verdict, aftermath.

    Example: skilltrail audit --line 12
    Example: skilltrail audit --line 3 --file references/units.md
    """
    from skilltrail.history.ask.audit_text import audit_markdown
    from skilltrail.history.ask.audit_text import audit_text as in_words

    def show(source: LogFound) -> None:
        with evidence() as facts:
            audits = _audits(source.log, facts, version, patch, line, text, file)
        if as_json:
            emit_json(audits)
        elif markdown:
            emit("\n".join(audit_markdown(one) for one in audits))
        else:
            emit("\n".join(in_words(one, everything=everything) for one in audits))

    answer(run, show)


def _audits(
    log: RunLog,
    facts: RolloutEvidence,
    version: str | None,
    patch: str | None,
    line: int | None,
    text: str | None,
    file: str | None,
) -> list[Audit]:
    asked = sum(value is not None for value in (patch, line, text))
    if asked > 1 or (version is None and asked == 0):
        raise UsageError(
            "skilltrail audit",
            f"{asked} questions",
            "One of --version, --patch, --line, --text",
        )
    if patch is not None:
        return [audit_patch(log, patch, facts)]
    if text is not None:
        return audit_text(log, text, facts)
    wanted = number_of("best" if version is None else version)
    if line is not None and file is not None:
        from skilltrail.history.ask.blame import line_in

        line = line_in(log.version(wanted).text, file, line)
    if line is not None:
        return [audit_line(log, wanted, line, facts)]
    return [audit_version(log, log.version(wanted).number, facts)]


def audits_of(log: RunLog, numbers: Iterable[int]) -> list[Audit]:
    """Return the audits of some versions, with the evidence that is here."""
    with evidence() as facts:
        return [audit_version(log, number, facts) for number in numbers]


@contextmanager
def evidence() -> Iterator[RolloutEvidence]:
    """Open the store and the train split for reading; without them the log has to do."""
    from skilltrail.data.splits import read_split
    from skilltrail.runtime.evidence import StoredEvidence
    from skilltrail.runtime.workspace import environment_of, load_params
    from skilltrail.store.place import find_place
    from skilltrail.store.reader import open_reading

    place = find_place()
    try:
        env = environment_of(load_params(place.workspace))
        train = read_split(place.workspace, "train")
    except SkilltrailError:
        # Audits answer from the log; trajectories are shown where params and split are there.
        yield LogOnly()
        return
    with open_reading(place.root) as store:
        yield StoredEvidence(store, env, train)


def blame(
    version: Annotated[str, typer.Option(help="A number, seed, best or last.")] = "best",
    run: RUN = None,
    file: FILE = None,
    as_json: JSON = False,
) -> None:
    """Show for every line of a version where it comes from.

    Example: skilltrail blame --version 3
    Example: skilltrail blame --file references/units.md
    """
    answer(run, lambda source: _blame(source.log, version, file, as_json=as_json))


def _blame(log: RunLog, version: str, file: str | None, *, as_json: bool) -> None:
    from skilltrail.history.ask.blame import blame as lines_of
    from skilltrail.history.ask.blame import line_in

    rows = lines_of(log, number_of(version))
    if file is not None:
        line_in(log.version(number_of(version)).text, file, 1)
        rows = [row for row in rows if file == (MAIN if row.file is None else row.file)]
    if as_json:
        emit_json([row.to_json() for row in rows])
        return
    lines = []
    for row in rows:
        gain = "" if row.gain is None else f"{row.gain:+.3f}"
        step = "" if row.step is None else f"step {row.step}"
        patch = "seed" if row.patch is None else row.patch
        verdict = "" if row.verdict is None else row.verdict
        head = f"v{row.version:<3} {step:8} {patch:7} {verdict:10} {gain:7}"
        number = row.line if file is None or row.file_line is None else row.file_line
        lines.append(f"{head} {number:>4}  {row.text}")
    emit("\n".join(lines))


def bisect(
    item: Annotated[str, typer.Option(help="The item's id.")],
    good: Annotated[int | None, typer.Option(help="Version to start from (default 0).")] = None,
    bad: Annotated[int | None, typer.Option(help="Version to end at (default last).")] = None,
    run: RUN = None,
    as_json: JSON = False,
) -> None:
    """Find the version that first broke, or fixed, an item; recorded rollouts are reused.

    Example: skilltrail bisect --item q17
    """
    from skilltrail.history.ask.audit_text import audit_text as in_words
    from skilltrail.history.log.words import score

    log = source_of(run).log
    found: list[BisectResult] = []
    asyncio.run(until_stopped(_bisect(log, item, good, bad, found)))
    (result,) = found
    asked = [] if result.version is None else [result.version]
    answer = next(iter(audits_of(log, asked)), None)
    if as_json:
        emit_json(asdict(result) | {"audit": answer})
        return
    table(
        ("version", "hard", "soft", "from"),
        [
            (f"v{t.version}", score(t.hard), score(t.soft), "log" if t.recorded else "rollout")
            for t in result.tested
        ],
    )
    turns = "" if not result.turns else f"; its score changed at {_versions(result.turns)}"
    if answer is None:
        emit(f"item {item}: the same at both ends{turns}")
    else:
        emit(f"item {item}: v{result.version} {result.change} it{turns}\n")
        emit(in_words(answer))


def _versions(numbers: tuple[int, ...]) -> str:
    return ", ".join(f"v{number}" for number in numbers)


async def _bisect(
    log: RunLog, item: str, good: int | None, bad: int | None, found: list[BisectResult]
) -> None:
    from skilltrail.core.item import SPLITS
    from skilltrail.data.splits import read_split
    from skilltrail.history.ask.bisect import bisect as search
    from skilltrail.history.ask.bisect import recorded_scores
    from skilltrail.history.log.replay import Version
    from skilltrail.runtime.session import open_session

    if len(recorded_scores(log, item)) == len(log.versions):
        found.append(await search(log, item, None, good=good, bad=bad))
        return
    async with open_session("evaluate", command="bisect") as session:
        workspace = session.place.workspace
        items = {name: {i.id: i for i in read_split(workspace, name)} for name in SPLITS}
        if item in items.pop("test"):
            raise UsageError(
                f"--item {item}",
                "it is of the test split, which `skilltrail evaluate` alone opens",
                "Say `skilltrail evaluate --split test --skill v0 --skill v1 …` for that",
            )
        rollouts = session.rollouts()
        every = [one for some in items.values() for one in some.values()]
        known = {one.case: one for one in rollouts.cases(every)}
        if item not in known:
            named = [case for case, one in known.items() if one.id == item]
            remedy = f"Say on which target: {named[0]!r}" if named else "See data/splits"
            raise UsageError(f"--item {item}", "no split has it", remedy)

        async def measure(version: Version) -> tuple[float | None, float | None]:
            (rollout,) = await rollouts.all([known[item]], version.text)
            return rollout.score.hard, rollout.score.soft

        found.append(await search(log, item, measure, good=good, bad=bad))
