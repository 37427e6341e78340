"""A branch that holds a run, for a pull request: one commit on HEAD, made by plumbing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from skilltrail.cli.skill_files import place_of
from skilltrail.core.errors import UsageError
from skilltrail.history.git.merging import CHOSEN_WITH, GENERATED
from skilltrail.history.git.proposing import commit_stream
from skilltrail.history.git.repository import Git, GitError
from skilltrail.report.comment import CommentContent, verdict
from skilltrail.runtime.workspace import load_params
from skilltrail.store.place import Place

PREFIX = "skilltrail/"


@dataclass(frozen=True)
class ProposedBranch:
    """A branch that was made: `files` are those that it changes, from the repository's root."""

    branch: str
    commit: str
    title: str
    files: list[str]
    remote: str


def propose(
    place: Place, told: CommentContent, branch: str | None, adopt: Path | None
) -> ProposedBranch:
    """Make the branch.

    Raises:
        UsageError: nothing differs from HEAD, or a file lies outside the repository.
        GitError: no repository, no identity, a bad name, or a branch that holds something else.
    """
    git = Git.find(place.workspace)
    if git is None:
        raise GitError("skilltrail pr", "this project is not in git", "Run `git init`")
    head = _head(git)
    name = branch if branch is not None else PREFIX + (told.run or "run")
    git.run("check-ref-format", "--branch", name)
    contents: dict[str, bytes | None] = dict(_run_files(place.workspace, git.prefix))
    if adopt is not None:
        contents.update(_adopted(place.workspace, git, adopt))
    files = [path for path, data in contents.items() if _committed(git, head, path) != data]
    if not files:
        remedy = "Train first: `dvc repro`"
        raise UsageError("skilltrail pr", "HEAD holds this run already", remedy)
    title = f"Train the skill: {told.title.removeprefix('Skilltrail: ')}"
    ref = f"refs/heads/{name}"
    existing = git.refs(ref).get(ref)
    if existing is None or not _same(git, existing, head, files, contents):
        if existing is not None:
            remedy = "Name another: --branch NAME; or remove it: `git branch -D NAME`"
            raise UsageError(f"branch {name}", "it holds something else", remedy)
        chosen = {path: contents[path] for path in files}
        message = f"{title}\n\n{verdict(told).capitalize()}.\n"
        people = {"author": _ident(git, "AUTHOR"), "committer": _ident(git, "COMMITTER")}
        git.fast_import(commit_stream(git, ref, head, message, chosen, **people))
    return ProposedBranch(name, git.resolve(ref), title, sorted(files), _remote(git))


def _head(git: Git) -> str:
    head = git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if head is None:
        remedy = "Commit the workspace: `git add . && git commit -m 'A skill workspace'`"
        raise UsageError("skilltrail pr", "nothing is committed here yet", remedy)
    return head.decode().strip()


def _run_files(workspace: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield path from the repository's root and content of all that makes up the run."""
    params = load_params(workspace)
    named = [*GENERATED, CHOSEN_WITH, params.skill.seed]
    named += [params.data.path, params.data.split_dir]
    for name in named:
        if not name or name.startswith(("/", "..", "data/none")):
            continue
        path = workspace / name
        some = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in some:
            if file.is_file() and not file.is_symlink():
                yield prefix + file.relative_to(workspace).as_posix(), file.read_bytes()


def _adopted(workspace: Path, git: Git, target: Path) -> Iterator[tuple[str, bytes | None]]:
    """Yield path from the repository's root and new text of the live files that change, None
    of those that go."""
    from skilltrail.cli.commands.deliver.adopt import changes_of
    from skilltrail.history.ask.sources import Project, find_skill

    root = Path((git.ask("rev-parse", "--show-toplevel") or b"").decode().strip()).resolve()
    best = find_skill(Project(workspace, workspace), "best")
    for one in changes_of(best, place_of(target), None, None):
        try:
            name = one.path.resolve().relative_to(root).as_posix()
        except ValueError as error:
            found = f"lies outside of {root}"
            raise UsageError(f"--adopt {target}", found, "Name another") from error
        yield name, None if one.text is None else one.text.encode()


def _committed(git: Git, commit: str, path: str) -> bytes | None:
    try:
        return git.run("cat-file", "blob", f"{commit}:{path}")
    except GitError:
        return None


def _same(
    git: Git, tip: str, head: str, files: list[str], contents: Mapping[str, bytes | None]
) -> bool:
    """Return whether a branch is what would be made: HEAD and these files, nothing else."""
    changed = git.run("diff-tree", "-r", "--name-only", "-z", head, tip).decode()
    same_files = set(filter(None, changed.split("\0"))) == set(files)
    return same_files and all(_committed(git, tip, one) == contents[one] for one in files)


def _ident(git: Git, role: str) -> bytes:
    return git.here("var", f"GIT_{role}_IDENT").strip()


def _remote(git: Git) -> str:
    names = git.run("remote").decode().split()
    return "origin" if "origin" in names or not names else names[0]
