"""Taking a text out of a repository: its refs are written anew and the old objects dropped.

The side branches follow from logs, so they are made again from cleaned ones. Commits that are
somebody's own (DVC experiments, and branches and tags where asked for) pass through `git
fast-export` and `fast-import` with their files cleaned; their hashes change and their
signatures go. Objects that nothing names any more are gone after `git gc --prune=now`; as long
as a reflog, the index or a stash names one, it stays and is told of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from skilltrail.core.errors import FaultError
from skilltrail.history.git.branches import branch_of
from skilltrail.history.git.rebuild import write_refs
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS, VERSIONS
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.erasure import Cleaning
from skilltrail.history.log.events import Event

EXPERIMENTS, OWN = ("refs/exps",), ("refs/heads", "refs/tags", "refs/notes")
OTHERS = ("refs/stash", "refs/remotes", "refs/bisect")  # never written here
_RAW = "--no-replace-objects"
_BATCH_BYTES = 64_000_000
# Lines of a fast-export stream that tell paths and people.
_TOLD = (b"M ", b"D ", b"R ", b"C ", b"author ", b"committer ", b"tagger ")
Clean = Callable[[bytes], bytes]
Holds = Callable[[bytes], bool]


def side_branches(git: Git) -> tuple[dict[str, list[list[Event]]], list[str]]:
    """Return the logs of every side branch, a training's and an evaluation's, by ref; and the
    refs whose commits hold no valid log."""
    found, damaged = {}, []
    for ref in git.refs(RUNS, EVALUATIONS):
        try:
            branch = branch_of(git, ref)
            found[ref] = [branch.training, branch.evaluation]
        except (FaultError, GitError):
            damaged.append(ref)
    return found, damaged


def clean_side_branches(
    git: Git, logs: Mapping[str, list[list[Event]]], cleaning: Cleaning
) -> None:
    """Write the side branches anew from cleaned logs; one of which nothing is left goes.

    Raises:
        GitError: git refused; the old refs still stand.
    """
    chains = {}
    for ref, (training, evaluation) in logs.items():
        events = [*cleaning.log(training), *cleaning.log(evaluation)]
        if events:
            chains[ref] = events
    write_refs(git, chains)


def side_refs(git: Git) -> list[str]:
    return list(git.refs(RUNS, EVALUATIONS, VERSIONS))


def dirty_objects(git: Git, holds: Holds) -> set[str]:
    """Return the objects, named by a ref or by nothing, whose content holds the text."""
    out = git.run(_RAW, "cat-file", "--batch-check", "--batch-all-objects", "--unordered")
    rows = [line.split() for line in out.decode().splitlines()]
    sizes = {row[0]: int(row[2]) for row in rows}
    found = set()
    for names in _batches(sizes):
        for name, content in _contents(git, names):
            if holds(content):
                found.add(name)
    return found


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for name, one in sizes.items():
        if batch and size + one > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(name)
        size += one
    if batch:
        yield batch


def _contents(git: Git, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    out = git.run(_RAW, "cat-file", "--batch", stdin="".join(f"{n}\n" for n in names).encode())
    at = 0
    for name in names:
        end = out.index(b"\n", at)
        size = int(out[at:end].split(b" ")[2])
        yield name, out[end + 1 : end + 1 + size]
        at = end + size + 2


def holders(git: Git, dirty: set[str], *prefixes: str) -> list[str]:
    """Return the refs under `prefixes` from which one of the objects is reached."""
    return [ref for ref in git.refs(*prefixes) if _reaches(git, [ref], dirty)]


def _reaches(git: Git, tips: Iterable[str], dirty: set[str]) -> bool:
    if not dirty:
        return False
    out = git.run(_RAW, "rev-list", "--objects", *tips).decode("utf-8", "replace")
    return any(line.split(" ", 1)[0] in dirty for line in out.split("\n"))


def rewrite_refs(git: Git, refs: Sequence[str], clean: Clean, keep: Sequence[str] = ()) -> None:
    """Pass the commits of `refs` through `clean`, but for those that a ref of `keep` holds.

    Raises:
        GitError: git refused.
    """
    if not refs:
        return
    stream = git.run(
        _RAW, "fast-export", "--reencode=no", "--signed-tags=strip", "--use-done-feature",
        "--tag-of-filtered-object=rewrite", "--reference-excluded-parents",
        *refs, *(("--not", *keep) if keep else ()),
    )  # fmt: skip
    git.run("fast-import", "--force", "--quiet", stdin=b"".join(_cleaned(stream, clean)))


def _cleaned(stream: bytes, clean: Clean) -> Iterator[bytes]:
    """Yield a fast-export stream with its contents, messages, paths and people cleaned."""
    at = 0
    while at < len(stream):
        end = stream.index(b"\n", at) + 1
        line = stream[at:end]
        at = end
        if line.startswith(b"data "):
            size = int(line[5:])
            content = clean(stream[at : at + size])
            at += size
            yield b"data %d\n" % len(content) + content
        elif line.startswith(_TOLD):
            yield clean(line)
        else:
            yield line


def clean_index(git: Git, dirty: set[str], clean: Clean, wanted: Callable[[str], bool]) -> None:
    """Put cleaned files in place of those of `dirty` in the index, where `wanted` by path."""
    rows = []
    for entry in git.here("ls-files", "--stage", "-z").split(b"\0")[:-1]:
        about, path = entry.split(b"\t", 1)
        mode, name, stage = about.decode().split()
        if name in dirty and wanted(path.decode("utf-8", "replace")):
            content = clean(git.run(_RAW, "cat-file", "blob", name))
            made = git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
            rows.append(f"{mode} {made} {stage}\t".encode() + path + b"\0")
    if rows:
        git.here("update-index", "-z", "--index-info", stdin=b"".join(rows))
    with suppress(GitError):  # it says so where files differ from the index
        git.here("update-index", "-q", "--refresh")


def other_trees(git: Git, dirty: set[str]) -> list[Path]:
    """Return the other work trees of this repository, deleted ones too, whose index names one
    of the objects."""
    found = []
    for own in (git.git_dir, *sorted(git.git_dir.glob("worktrees/*"))):
        if own == git.own_dir or not (own / "index").is_file():
            continue
        listed = git.here(f"--git-dir={own}", "ls-files", "--stage", "-z").split(b"\0")[:-1]
        if any(entry.split(b" ", 2)[1].decode() in dirty for entry in listed):
            named = own / "gitdir"
            lies = Path(named.read_text("utf-8").strip()) if named.is_file() else own
            found.append(lies.parent)
    return found


def drop_replaced(git: Git, dirty: set[str]) -> None:
    """Delete replacements (`git replace`) of or by what holds the text."""
    refs = git.refs("refs/replace")
    old = [ref for ref, new in refs.items() if {ref.rpartition("/")[2], new} & dirty]
    old += [ref for ref in refs if ref not in old and _reaches(git, [ref], dirty)]
    git.update_refs(f"delete {ref}" for ref in old)


def messages(git: Git, holds: Holds) -> list[Path]:
    """Return the files in which git keeps messages (reflogs, drafts) that hold the text."""
    folder = git.git_dir
    drafts = (*folder.glob("*MSG*"), *folder.glob("worktrees/*/*MSG*"))
    found = [path for path in drafts if path.is_file()]
    for logs in (folder / "logs", *folder.glob("worktrees/*/logs")):
        found += [path for path in logs.rglob("*") if path.is_file()]
    return [path for path in found if holds(path.read_bytes())]


def forget(git: Git, refs: Iterable[str]) -> None:
    """Drop the reflogs of `refs` and every object that nothing names any more.

    Raises:
        GitError: git refused.
    """
    for ref in refs:
        git.ask("reflog", "expire", "--expire=now", "--expire-unreachable=now", ref)
    git.run("gc", "--quiet", "--prune=now")
