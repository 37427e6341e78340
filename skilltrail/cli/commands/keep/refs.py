"""`skilltrail rebuild`, `share`, `fetch`, `anchor`, `erase`: care for what is kept of runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skilltrail.cli.options import JSON
from skilltrail.cli.sources import project
from skilltrail.core.errors import FaultError, SkilltrailError, UsageError
from skilltrail.core.layout import EVENTS
from skilltrail.history.ask.sources import Project, live_logs
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_whole, scan_log
from skilltrail.runtime.console import emit, emit_json, say, table
from skilltrail.store.place import Place, find_place

if TYPE_CHECKING:
    from skilltrail.history.git.sharing import Exchanged
    from skilltrail.runtime.erase import Found

REMOTE = Annotated[
    str | None, typer.Argument(help="A remote of git; default: the only one, or origin.")
]


def git_of(here: Project, command: str) -> Git:
    """Return git in the main repository.

    Raises:
        UsageError: the project is not in git.
    """
    found = Git.find(here.root)
    if found is None:
        raise UsageError(
            f"skilltrail {command}", "this project is not in git", "Run `git init`"
        )
    return found


def rebuild(as_json: JSON = False) -> None:
    """Drop every refs/evolution ref and make it again from the logs, with the same hashes.

    Example: skilltrail rebuild
    """
    from skilltrail.history.ask.evaluations import evaluation_logs
    from skilltrail.history.git.opening import label_of
    from skilltrail.history.git.rebuild import rebuild as rebuild_refs

    here = project()
    git = git_of(here, "rebuild")
    own = here.workspace / EVENTS
    logs = [_whole(path) for path in (*live_logs(here), *([own] if own.exists() else []))]
    asked = [
        (events, "opened_before" in events[0].data)
        for path in evaluation_logs(here)
        if (events := _whole(path)) and events[0].type == "test.opened"
    ]
    rows = rebuild_refs(git, logs, label_of(git, None), asked)
    if as_json:
        emit_json(rows)
        return
    table(
        ("run", "outcome", "tip", "detail"),
        [(r.name, r.outcome, "-" if r.tip is None else r.tip[:12], r.detail) for r in rows],
    )


def _whole(path: Path) -> list[Event]:
    read = read_whole(path, continues=True)
    if read.torn is not None:
        say(f"{path.parent.name}/{read.torn} Its {len(read.events)} whole events are taken")
    return read.events


def share(
    remote: REMOTE = None,
    name: Annotated[
        str | None, typer.Option("--as", help="Your runs' name there; kept as git's share.as.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Put your runs on a remote, under a name of your own; nothing there is overwritten.

    Example: skilltrail share origin --as anna
    """
    from skilltrail.history.git.sharing import share as share_runs

    where, rows = share_runs(git_of(project(), "share"), remote, name)
    _tell_exchanged(rows, as_json=as_json)
    if any(row.outcome == "refused" for row in rows):
        raise FaultError(
            f"Some runs on {where} are not what yours go on from, and were left as they are",
            "another clone shares under your name, or these were rewritten here (`erase`)",
            "`skilltrail share --as ANOTHER-NAME`; what was erased goes by `git push --force`",
        )
    if rows:
        say("recorded calls go by DVC: commit dvc.lock, `git push` the branch, `dvc push`")
    else:
        say("there is no run of yours to share: `dvc repro` makes one")


def fetch(remote: REMOTE = None, as_json: JSON = False) -> None:
    """Bring others' runs from a remote, each under its owner's name; yours stay as they are.

    Example: skilltrail fetch origin
    """
    from skilltrail.history.git.sharing import fetch as fetch_runs

    where, rows = fetch_runs(git_of(project(), "fetch"), remote)
    _tell_exchanged(rows, as_json=as_json)
    if any(row.outcome == "refused" for row in rows):
        raise FaultError(
            f"Some runs on {where} do not go on from what is here, and were not taken",
            "they were rewritten there (`erase`), or made here under the same name",
            "`git fetch --force` with their names takes them over what is here",
        )
    if rows:
        say("`skilltrail runs` shows them. Their recorded calls come by DVC: `git switch` to")
        say("a branch that holds their dvc.lock, and `dvc pull`")
    else:
        say(f"nobody else has shared a run on {where} (`skilltrail share` does)")


def _tell_exchanged(rows: Sequence[Exchanged], *, as_json: bool) -> None:
    if as_json:
        emit_json([row.to_json() for row in rows])
        return
    told = [row for row in rows if not row.is_version or row.outcome == "refused"]
    table(
        ("run", "outcome", "tip", "on the remote"),
        [(row.name, row.outcome, row.tip[:12], row.theirs) for row in told],
    )


def anchor(
    run: Annotated[
        str | None, typer.Argument(help="A run; default: that of skills/events.jsonl.")
    ] = None,
    sign: Annotated[
        bool | None,
        typer.Option(
            "--sign/--no-sign",
            help="Make a signed tag; default: where git has a signing key.",
        ),
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Its name.")] = None,
    as_json: JSON = False,
) -> None:
    """Make a signed tag on a run's last commit, or print the hash to publish.

    Example: skilltrail anchor main
    """
    from skilltrail.history.git.signing import anchors_of, can_sign
    from skilltrail.history.git.signing import sign as sign_tag

    git = git_of(project(), "anchor")
    name = _default_run(git) if run is None else run
    anchors = anchors_of(git, name)
    wanted = tag is not None or can_sign(git) if sign is None else sign
    signed = sign_tag(git, name, anchors, tag) if wanted else None
    if as_json:
        emit_json({"run": name, "tag": signed, "anchors": anchors})
        return
    for one in anchors:
        emit(f"{one.commit}  {one.what} of {name}  {one.ref}")
    if signed is None:
        say("publish these where nobody can rewrite them; `skilltrail verify --anchor HASH`")
        say("holds the run against one. With a signing key of git this makes a signed tag")
    else:
        say(f"signed tag {signed}: push it with `git push REMOTE {signed}`;")
        say(f"`skilltrail verify --anchor {signed}` holds the run against it")


def _default_run(git: Git) -> str:
    """Return the run whose commits hold skills/events.jsonl.

    Raises:
        UsageError: none does.
    """
    from skilltrail.history.git.branches import run_holding
    from skilltrail.history.git.commits import commits_of
    from skilltrail.history.git.opening import label_of

    here = project()
    training = scan_log(here.workspace / EVENTS)
    *_, last = commits_of(training, git.object_format())
    found = run_holding(git, last.sha, label_of(git, None))
    if found is None:
        raise UsageError(
            "skilltrail anchor",
            f"no run in refs/evolution holds {EVENTS.as_posix()}",
            "`skilltrail rebuild` makes its commits, or name a run",
        )
    return found


def erase(
    text: Annotated[
        str | None,
        typer.Option(
            "--text", help="What to erase; without it stdin is read, or you are asked."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say where it stands.")
    ] = False,
    everywhere: Annotated[
        bool,
        typer.Option("--everywhere", help="Also in files, branches and tags of your own."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it begins.")] = False,
    as_json: JSON = False,
) -> None:
    """Take a secret out of recorded calls, exports, logs, outputs and commits.

    What it stood in says that it was erased. Nothing brings it back.

    Example: skilltrail erase --dry-run
    """
    from skilltrail.runtime.erase import TextSearch
    from skilltrail.runtime.erase import erase as carry_out

    place = find_place()
    wanted = _text_to_erase(text)
    search = TextSearch(place, wanted)
    found = search.find()
    _tell_unread("packed files", [n for n, held in search.packed.items() if held is None])
    _tell_unread("repositories inside this one", search.nested)
    if dry_run or not found:
        _tell_found(found, as_json=as_json)
        return
    if not as_json:
        _tell_found(found, as_json=False)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("skilltrail erase", "not interactive", "Use --yes")
        typer.confirm("Erase it? Nothing brings it back", abort=True, err=True)
    left = carry_out(place, wanted, lambda: _report(place), everywhere=everywhere)
    if as_json:
        emit_json({"erased": found, "left": left})
    if left:
        where = ", ".join(one.place for one in left[:8])
        raise FaultError("It is erased, but still found in", where, _remedy(left, everywhere))
    say("it is gone from here. Copies elsewhere are beyond this: other clones, remotes of git")
    say("and DVC, what a provider keeps. Commit what changed, and revoke a secret")


def _tell_unread(what: str, names: Sequence[str]) -> None:
    if names:
        first = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        say(f"not looked into: {what} ({len(names)}): {first}")


def _remedy(left: Sequence[Found], everywhere: bool) -> str:
    """Return what takes the text out of where it is left."""
    from skilltrail.runtime.erase.search import LINKED, PACKED

    told = [what for what in (PACKED, LINKED) if any(one.what == what for one in left)]
    if any(one.own and one.what not in told for one in left):
        here = "drop or edit it yourself, then run it again"
        told.insert(0, here if everywhere else "say --everywhere, or edit them yourself")
    words = "; ".join(told)
    return words[0].upper() + words[1:] if told else "Run it again"


def _text_to_erase(text: str | None) -> str:
    if text is not None:
        return text
    if sys.stdin.isatty():
        return str(typer.prompt("Text to erase", hide_input=True, err=True))
    return sys.stdin.read()


def _tell_found(found: Sequence[Found], *, as_json: bool) -> None:
    if as_json:
        emit_json(found)
    elif found:
        rows = [(one.place, one.what, "yours" if one.own else "") for one in found]
        table(("where", "what", ""), rows)
        if any(one.own for one in found):
            say("what is yours is left as it is, unless you say --everywhere")
    else:
        emit("not found anywhere in this project")


def _report(place: Place) -> None:
    """Write the report anew from cleaned logs; what stands there is clean without it too."""
    from skilltrail.report.build import build

    try:
        build(place.workspace, place.root)
    except SkilltrailError as error:
        say(f"the report could not be written anew: {error}")
