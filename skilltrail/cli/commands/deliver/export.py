"""`skilltrail export`: a run's tables, curve, page, audits or SKILL.md as files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skilltrail.cli.sinks import export_to_sinks, write_inspect
from skilltrail.cli.skill_files import as_skill_md, live_text, place_of
from skilltrail.cli.sources import tell_fallback
from skilltrail.core.errors import FaultError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.core.layout import EVALUATION
from skilltrail.history.ask.sources import Project, find_skill, open_source
from skilltrail.runtime.console import emit, emit_exact, emit_json, say
from skilltrail.skill.folder import files_of, main_text
from skilltrail.skill.skill_file import SKILL_MD

if TYPE_CHECKING:
    from skilltrail.history.log.events import Event

File = Annotated[Path | None, typer.Option(metavar="FILE", help="Write there; - is stdout.")]
Curve = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The run chart, .svg or .png.")
]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="The report as one file.")]
Audit = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The audit of every version, Markdown.")
]
SkillMd = Annotated[
    Path | None,
    typer.Option(
        "--skill-md", metavar="FILE", help="Best skill as SKILL.md, or its folder; - is stdout."
    ),
]
Inspect = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Rollouts as .eval logs of Inspect.")
]
Mlflow = Annotated[
    str | None, typer.Option(metavar="URI", help="The run, to a tracking store of MLflow.")
]
Otlp = Annotated[
    str | None, typer.Option(metavar="URL", help="Recorded calls, as OpenTelemetry spans.")
]
AgentSkill = Annotated[
    Path | None,
    typer.Option(
        "--agent-skill", metavar="DIR", help="The skill that teaches agents this tool."
    ),
]


def export(
    run: Annotated[str | None, typer.Argument(help="A run, log file or revision.")] = None,
    table: Annotated[str, typer.Option(help="steps, rollouts, versions or events.")] = "steps",
    csv: File = None,
    json: File = None,
    parquet: File = None,
    curve: Curve = None,
    html: Html = None,
    runs: Annotated[bool, typer.Option("--runs", help="Put all runs into --html.")] = False,
    audit: Audit = None,
    skill: SkillMd = None,
    inspect: Inspect = None,
    mlflow: Mlflow = None,
    otlp: Otlp = None,
    agent: AgentSkill = None,
    name: Annotated[str | None, typer.Option(help="Name in SKILL.md.")] = None,
    description: Annotated[str | None, typer.Option(help="Description in SKILL.md.")] = None,
) -> None:
    """Write a run to files that other programs read, or hand it to one that keeps runs.

    Example: skilltrail export --csv steps.csv --curve curve.svg
    Example: skilltrail export --mlflow file:mlruns --otlp http://127.0.0.1:4318/v1/traces
    """
    named = (csv, json, parquet, curve, html, audit, skill, inspect)
    targets = [path for path in named if path is not None]
    if agent is not None:
        _write_agent_skill(agent)
        if not targets and mlflow is None and otlp is None:
            return
    if not targets and mlflow is None and otlp is None:
        raise UsageError("skilltrail export", "nothing to write", "Say what, e.g. --csv -")
    here = Project.here()
    source = open_source(here, run)
    if run is None:
        tell_fallback(here)
    training, evaluation = source.events, _evaluation(here, source.events)
    _write_tables(table, training, evaluation, csv, json, parquet)
    if curve is not None:
        _write_curve(curve, training)
    if html is not None:
        _write(html, _page(here, training, evaluation, runs=runs))
    if audit is not None:
        _write(audit, _audits(training))
    if skill is not None:
        best = find_skill(here, "best" if run is None else f"{run}:best").text
        _write_skill(skill, best, training[0].data, name, description)
    if inspect is not None:
        write_inspect(inspect, [*training, *evaluation])
    export_to_sinks(mlflow, otlp, here, source, evaluation)
    _tell_written(targets)


def _write_agent_skill(folder: Path) -> None:
    """Write the skill as a folder of its own below an agent's folder of skills."""
    from skilltrail.runtime.template import SOURCE

    path = folder / "skilltrail" / SKILL_MD
    text = (SOURCE / "skills" / "skilltrail" / SKILL_MD).read_text(encoding="utf-8")
    if live_text(path) not in ("", text):
        remedy = "Move it away first, or choose another folder"
        raise UsageError(f"--agent-skill {folder}", f"{path} holds another text", remedy)
    _write(path, text)
    emit(f"wrote {path}")


def _tell_written(targets: Sequence[Path]) -> None:
    written = [path for path in targets if str(path) != "-"]
    told = emit if len(written) == len(targets) else say
    for path in written:  # what goes to stdout is alone there
        told(f"wrote {path}")


def _write_skill(
    path: Path, best: str, started: Any, name: str | None, description: str | None
) -> None:
    path = path if str(path) == "-" else place_of(path)
    rest = list(files_of(best))[1:]
    if rest and path.name != SKILL_MD:
        raise UsageError(f"--skill-md {path}", "the skill is a folder", "Name a folder")
    text = as_skill_md(main_text(best), started, name, description, path, live_text(path))
    wanted = {path: text} | {path.parent / one: files_of(best)[one] for one in rest}
    for one, told in wanted.items():
        if live_text(one) not in ("", told):
            raise UsageError(
                f"--skill-md {one}",
                "another text stands there",
                f"See the diff and agree: `skilltrail adopt {path}`",
            )
    for one, told in wanted.items():
        _write(one, told)


def _evaluation(here: Project, training: Sequence[Event]) -> list[Event]:
    """Return the evaluation log here if it goes on from `training`."""
    from skilltrail.history.log.log import read_log

    try:
        return read_log(here.workspace / EVALUATION, after=training[-1])
    except FaultError:
        return []


def _write_tables(
    name: str,
    training: Sequence[Event],
    evaluation: Sequence[Event],
    csv: Path | None,
    json: Path | None,
    parquet: Path | None,
) -> None:
    if csv is None and json is None and parquet is None:
        return
    from skilltrail.report.flat import columns_of, csv_text, table_of

    rows = table_of(name, training, evaluation)
    if csv is not None:
        _write(csv, csv_text(rows, columns_of(name)))
    if json is not None:
        if str(json) == "-":
            emit_json(rows)
        else:
            from skilltrail.core.canon import canonical

            _write(json, canonical(rows) + "\n")
    if parquet is not None:
        _write_parquet(parquet, rows, columns_of(name))


def _write_parquet(path: Path, rows: list[dict[str, Any]], columns: Sequence[str]) -> None:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise UsageError(
            "--parquet",
            f"{error.name} is not installed",
            "Run `pip install pyarrow`, or use --csv",
        ) from error
    if str(path) == "-":
        raise UsageError("--parquet -", "Parquet is no text", "Name a file")
    data = {column: [row[column] for row in rows] for column in columns}
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(data), path)


def _write_curve(path: Path, training: Sequence[Event]) -> None:
    from skilltrail.report.book.summary import headline, points_of
    from skilltrail.report.charts import run_chart
    from skilltrail.report.svg import standalone

    start = headline(training, ())["selection"]["seed"]
    drawn = standalone(run_chart(points_of(training), start))
    if path.suffix == ".svg" or str(path) == "-":
        _write(path, drawn)
        return
    if path.suffix != ".png":
        raise UsageError(
            f"--curve {path}", "no picture this can draw", "End it in .svg or .png"
        )
    try:
        resvg = import_module("resvg_py")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--curve {path}",
            "resvg_py is not installed",
            "Run `pip install resvg_py`, or use .svg",
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(resvg.svg_to_bytes(svg_string=drawn, zoom=2)))


def _page(
    here: Project, training: Sequence[Event], evaluation: Sequence[Event], *, runs: bool
) -> str:
    from skilltrail.cli.commands.ask.runs import all_runs
    from skilltrail.history.git.opening import name_here
    from skilltrail.report.book import read_facts
    from skilltrail.report.book.runs import Beside, run_rows
    from skilltrail.report.page import page
    from skilltrail.store.place import find_place

    name = name_here(here.root, training[-1])
    facts = read_facts(here.workspace, [*training, *evaluation], here.root, name)
    if not runs:
        return page(training, evaluation, facts)
    found = all_runs(here)
    beside = Beside.read(here, find_place().state, found)
    return page(training, evaluation, facts, run_rows(found, beside))


def _audits(training: Sequence[Event]) -> str:
    from skilltrail.cli.commands.ask.audit import audits_of
    from skilltrail.history.ask.audit_text import audit_markdown
    from skilltrail.history.log.run_log import RunLog

    log = RunLog(training)
    audits = audits_of(log, [version.number for version in log.versions if version.number])
    if not audits:
        raise UsageError("--audit", "no change was accepted", "Train longer, or see the log")
    return "# Why each change was made\n\n" + "\n".join(map(audit_markdown, audits))


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        emit_exact(text)
        return
    write_atomic(path, text)
