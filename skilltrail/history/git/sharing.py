"""Sharing: runs of several people on one remote, each under the name that he chose.

Here a run is `refs/evolution/main`; on the remote it stands as `refs/evolution/anna/main`, and
so it comes to everybody else. Versions and evaluations go with their run. The name is git's
setting `share.as`: it belongs to a clone, not to a run, and no event and no key holds it. Whose
runs came from elsewhere is kept beside it, in `share.other`, so that nobody passes on another's
runs as his own.

Nothing is forced, on either side: a ref moves forward or is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS, VERSIONS, ref_label
from skilltrail.history.git.repository import Git, GitError

NAME, OTHERS = "share.as", "share.other"
KINDS = (RUNS, VERSIONS, EVALUATIONS)  # a run comes before what goes with it
ARRIVING = "refs/evolution-arriving/"
NEW, MOVED, SAME, REFUSED = "new", "moved", "same", "refused"
_AT_ONCE = 500  # refs named in one command line


@dataclass(frozen=True)
class Exchanged:
    """What became of one ref: its name here, its name on the remote, its commit.

    Attributes:
        outcome: `new`, `moved` (forward), `same`, or `refused` for it would not move forward.
    """

    ref: str
    theirs: str
    tip: str
    outcome: str = SAME

    @property
    def name(self) -> str:
        """The run's name here; an evaluation with a ref of its own is `run/n`."""
        return _name_of(self.ref)

    @property
    def is_version(self) -> bool:
        return self.ref.startswith(VERSIONS)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name} | asdict(self)


def share(git: Git, remote: str | None, name: str | None) -> tuple[str, list[Exchanged]]:
    """Put this clone's own runs on a remote; return the remote and what became of each ref.

    Args:
        remote: a remote or a URL; None = the only remote, or `origin`.
        name: becomes `share.as`; None = what that is already.

    Raises:
        UsageError: no remote, or no usable name.
        GitError: the remote does not answer, or refused.
    """
    remote, label = _remote(git, remote), _label(git, name)
    there, others = _refs_on(git, remote), _others(git)
    own = [
        Exchanged(ref, _prefixed(label, ref), tip)
        for ref, tip in git.refs(*KINDS).items()
        if _name_of(ref).split("/")[0] not in others
    ]
    rows = _judged(git, [(row, there.get(row.theirs)) for row in own])
    for some in _portions(row for row in rows if row.outcome in (NEW, MOVED)):
        refspecs = [f"{row.tip}:{row.theirs}" for row in some]
        try:
            git.here("push", "--quiet", "--no-verify", "--", remote, *refspecs)
        except GitError as error:
            remedy = "Nothing there was overwritten; once the remote takes it, share again"
            raise GitError(f"Sharing with {remote}", error.found, remedy) from error
    if name is not None:
        git.here("config", NAME, label)
    return remote, rows


def fetch(git: Git, remote: str | None) -> tuple[str, list[Exchanged]]:
    """Bring others' runs from a remote; return the remote and what became of each ref.

    Raises:
        UsageError: there is no remote.
        GitError: the remote does not answer, or a ref is locked.
    """
    remote = _remote(git, remote)
    here, there = git.refs(*KINDS), _refs_on(git, remote)
    names = _names_here(git, there, here)
    offers = [
        Exchanged(_renamed(ref, names), ref, tip)
        for ref, tip in there.items()
        if _name_of(ref).split("/")[0] in names
    ]
    git.update_refs(f"delete {ref}" for ref in git.refs(ARRIVING))
    for some in _portions(row for row in offers if here.get(row.ref) != row.tip):
        refspecs = [f"{row.theirs}:{_arriving(row.ref)}" for row in some]
        quietly = ("--quiet", "--no-tags", "--no-prune", "--no-recurse-submodules")
        try:
            git.here("fetch", *quietly, "--", remote, *refspecs)
        except GitError as error:
            remedy = "No run here has changed; once the remote answers, fetch again"
            raise GitError(f"Fetching from {remote}", error.found, remedy) from error
    offers = _beside_own_evaluations(git, offers, here)
    rows = _judged(git, [(row, here.get(row.ref)) for row in offers])
    moves = [
        f"create {row.ref} {row.tip}"
        if row.outcome == NEW
        else f"update {row.ref} {row.tip} {here[row.ref]}"
        for row in rows
        if row.outcome in (NEW, MOVED)
    ]
    git.update_refs([*moves, *(f"delete {ref}" for ref in git.refs(ARRIVING))])
    for label in sorted(set(names.values()) - _others(git)):
        git.here("config", "--add", OTHERS, label)
    return remote, rows


def _judged(git: Git, offers: Iterable[tuple[Exchanged, str | None]]) -> list[Exchanged]:
    """Say what becomes of each ref beside what stands in its place; a run's all or none."""
    rows: list[Exchanged] = []
    refused: set[str] = set()
    kinds = {kind: at for at, kind in enumerate(KINDS)}
    for row, before in sorted(offers, key=lambda one: (kinds[_kind(one[0].ref)], one[0].ref)):
        run = row.name if row.ref.startswith(RUNS) else row.name.rpartition("/")[0]
        if run in refused or not _fits(git, before, row.tip):
            outcome = REFUSED
        elif before is None:
            outcome = NEW
        else:
            outcome = SAME if before == row.tip else MOVED
        if outcome == REFUSED and row.ref.startswith(RUNS):
            refused.add(run)
        rows.append(replace(row, outcome=outcome))
    return rows


def _beside_own_evaluations(
    git: Git, offers: Sequence[Exchanged], here: Mapping[str, str]
) -> list[Exchanged]:
    """Give evaluations that stand where one made here of the same run does another number."""
    taken = {*here, *(row.ref for row in offers)}
    found = []
    for row in offers:
        before = here.get(row.ref)
        if row.ref.startswith(EVALUATIONS) and not _fits(git, before, row.tip):
            base = row.ref.rpartition("/")[0] + "/"
            known = [r for r, tip in here.items() if tip == row.tip and r.startswith(base)]
            free = (f"{base}{n}" for n in count(1) if f"{base}{n}" not in taken)
            row = replace(row, ref=known[0] if known else next(free))
            taken.add(row.ref)
        found.append(row)
    return found


def _fits(git: Git, before: str | None, tip: str) -> bool:
    return before is None or before == tip or _goes_on(git, before, tip)


def _goes_on(git: Git, before: str, tip: str) -> bool:
    """True when `tip` holds `before`; a commit that is not here is held by nothing here."""
    return git.ask("merge-base", "--is-ancestor", before, tip) is not None


def _remote(git: Git, wanted: str | None) -> str:
    """Return the remote to speak with.

    Raises:
        UsageError: there is none, or several and none was named.
    """
    if wanted is not None:
        return wanted
    known = git.here("remote").decode().split()
    if len(known) == 1:
        return known[0]
    if "origin" in known:
        return "origin"
    found = f"there are {', '.join(known)}" if known else "this repository has no remote"
    remedy = "Name one of them" if known else "`git remote add origin URL`"
    raise UsageError("The remote to share runs by", found, remedy)


def _label(git: Git, wanted: str | None) -> str:
    """Return the name under which this clone's runs go.

    Raises:
        UsageError: none was chosen, git cannot use it, or it is another's.
    """
    said = git.ask("config", "--get", NAME)
    label = (b"" if said is None else said).decode().strip() if wanted is None else wanted
    if not label:
        raise UsageError(
            "skilltrail share",
            "nobody said under which name your runs go",
            "`skilltrail share --as NAME` once; it is kept in this clone as git's share.as",
        )
    if label != ref_label(label) or "/" in label or not label.isprintable():
        remedy = "Choose letters, digits, `-`, `_` and `.`"
        raise UsageError(f"share.as {label!r}", "this cannot be part of a ref's name", remedy)
    if label in _others(git):
        raise UsageError(
            f"share.as {label!r}",
            "runs of that name came here from somebody else",
            "Choose another name: `skilltrail share --as NAME`",
        )
    return label


def _others(git: Git) -> set[str]:
    said = git.ask("config", "--get-all", OTHERS)
    return set() if said is None else set(said.decode().split("\n")) - {""}


def _refs_on(git: Git, remote: str) -> dict[str, str]:
    """Return the commit of each run's ref on a remote that stands under somebody's name.

    Raises:
        GitError: it does not answer.
    """
    try:
        out = git.here("ls-remote", "--quiet", "--", remote, *(f"{kind}*" for kind in KINDS))
    except GitError as error:
        remedy = "See `git remote -v`, and whether `git ls-remote` reaches it"
        raise GitError(f"The remote {remote}", error.found, remedy) from error
    rows = (line.split("\t", 1) for line in out.decode("utf-8", "replace").splitlines())
    found = {name: sha for sha, name in rows if name.isprintable()}
    depth = {RUNS: 1, VERSIONS: 2, EVALUATIONS: 2}  # least slashes of a name with a label
    return {
        ref: sha for ref, sha in found.items() if _name_of(ref).count("/") >= depth[_kind(ref)]
    }


def _names_here(git: Git, there: Iterable[str], here: Iterable[str]) -> Mapping[str, str]:
    """Return what each other person is called here, by the name on the remote.

    That is the same name, or, where a run of one's own stands in its way, `name-2`, ….
    """
    said = git.ask("config", "--get", NAME)
    own = None if said is None else said.decode().strip()
    others = _others(git)
    taken = {_name_of(ref).split("/")[0] for ref in here} - others
    labels = sorted({_name_of(ref).split("/")[0] for ref in there} - {own})
    names: dict[str, str] = {}
    for label in labels:
        numbered = (label if n == 1 else f"{label}-{n}" for n in count(1))
        names[label] = next(n for n in numbered if n not in taken)
        taken.add(names[label])
    return names


def _renamed(ref: str, names: Mapping[str, str]) -> str:
    label, _, rest = _name_of(ref).partition("/")
    return f"{_kind(ref)}{names[label]}/{rest}"


def _prefixed(label: str, ref: str) -> str:
    return f"{_kind(ref)}{label}/{_name_of(ref)}"


def _arriving(ref: str) -> str:
    return ARRIVING + ref.removeprefix("refs/")


def _kind(ref: str) -> str:
    return next(kind for kind in KINDS if ref.startswith(kind))


def _name_of(ref: str) -> str:
    return ref.removeprefix(_kind(ref))


def _portions(rows: Iterable[Exchanged]) -> Iterator[Sequence[Exchanged]]:
    whole = list(rows)
    return (whole[at : at + _AT_ONCE] for at in range(0, len(whole), _AT_ONCE))
