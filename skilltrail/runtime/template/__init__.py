"""A workspace in anybody's git repository: what `skilltrail init` writes there.

The files come from this project's own workspace; a wheel carries them. Where the library is
installed and not part of the workspace, DVC cannot see its code: `stages/library.json` stands
for it, a small tracked file with the library's version and code digest.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from skilltrail import __version__
from skilltrail.core.errors import UsageError
from skilltrail.core.files import write_atomic
from skilltrail.envs.registry import environment_names
from skilltrail.history.git.repository import Git
from skilltrail.runtime.code_identity import PACKAGE, code_digest

LIBRARY = Path("stages/library.json")
# A wheel carries these files inside the package; in a checkout they stand beside it.
SOURCE = next(p for p in (PACKAGE / "template", PACKAGE.parent) if (p / "dvc.yaml").is_file())
FILES = ("params.yaml", ".dvcignore", ".dvc/plots/verdicts.json")
FOLDERS = ("skills/seeds", "data/none", "envs")
# What must not stand there already; everything else is left as it is, or added to.
OWN = ("dvc.yaml", "params.yaml", "stages", "data", "skills", "envs")
_CODE = re.compile(r"(?:      - (?:schemas|skilltrail/\w+)\n)+")
IGNORED = """\
# Skilltrail: DVC's outputs and the live state
/data/splits
/data/rollouts/
/reports/out/evaluation.jsonl
/reports/out/index.html
/reports/out/proposal/
.skilltrail/
.env
__pycache__/
"""


@dataclass(frozen=True)
class Library:
    """Which library a workspace was written for.

    Attributes:
        version: of the package.
        code: digest of what can change a result (`code_digest`).
        pages: SHA-256 of each page as it was written, by path: a page that still has it was
            edited by nobody.
    """

    version: str
    code: str
    pages: Mapping[str, str]

    @staticmethod
    def here() -> Library:
        """Return that of the library that runs this."""
        pages = {name: _sha256(text) for name, text in _pages()}
        return Library(__version__, code_digest(), pages)

    @staticmethod
    def of(workspace: Path) -> Library | None:
        """Return what the workspace's file says; None where its code is part of the workspace.

        Raises:
            UsageError: the file is damaged.
        """
        path = workspace / LIBRARY
        if not path.is_file():
            return None
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return Library(str(data["version"]), str(data["code"]), dict(data["pages"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            remedy = "Write it anew: `skilltrail init --upgrade`"
            raise UsageError(f"Reading {LIBRARY}", f"damaged ({error})", remedy) from error

    def write(self, workspace: Path) -> None:
        """Write the workspace's file."""
        write_atomic(workspace / LIBRARY, json.dumps(asdict(self), indent=2) + "\n")


def require_library(workspace: Path) -> None:
    """Refuse to run with another library than the one that DVC knows of.

    Raises:
        UsageError: they differ; DVC would take old results for those of this code.
    """
    known = Library.of(workspace)
    if known is not None and known.code != code_digest():
        raise UsageError(
            f"This workspace was written for skilltrail {known.version}",
            f"{__version__} runs here, with other code",
            "`skilltrail init --upgrade`, then run again; no recorded call is lost",
        )


def init_workspace(
    folder: Path, example: str | None, beside: tuple[str, ...] = (), env: str | None = None
) -> list[str]:
    """Write a workspace into `folder` and return what was written, relative to it.

    Args:
        example: the environment whose generated items come along; None = no items.
        beside: names of `OWN` that may stand there already; still nothing is written over.
        env: an environment that will be chosen; what we tell of its items comes along.

    DVC tracks the chosen environment's folder of items, so there is one for each: `-S env=NAME`
    works alone.

    Raises:
        UsageError: the folder is in no git repository, or some of it stands there already;
            nothing is written then.
    """
    below = _refuse(folder, example, beside)
    folder.mkdir(parents=True, exist_ok=True)
    written = _init_dvc(folder, below=below)
    for name in _names(example, env):
        if not (folder / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SOURCE / name, folder / name)
            written.append(name)
    for name, text in (*_pages(), *_item_folders(folder)):
        write_atomic(folder / name, text)
        written.append(name)
    Library.here().write(folder)
    written += [LIBRARY.as_posix(), _readme(folder)]
    written += _add_lines(folder / ".gitignore", IGNORED)
    written += _add_lines(folder / ".gitattributes", _attributes())
    return sorted(written)


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade did: pages written anew, and edited pages left to a person."""

    before: Library | None
    now: Library
    written: tuple[str, ...]
    left: tuple[str, ...]


def upgrade_workspace(workspace: Path) -> Upgrade:
    """Let a workspace stand for the library that runs this.

    Pages that nobody edited are written anew; beside an edited one the new text is put, with
    `.new` at its name's end.

    Raises:
        UsageError: the library is part of the workspace, where DVC sees its code itself.
    """
    if PACKAGE.parent == workspace.resolve():
        raise UsageError(
            "skilltrail init --upgrade",
            "the library is part of this workspace, and DVC sees its code",
            "`dvc repro` runs what changed",
        )
    try:
        before = Library.of(workspace)
    except UsageError:
        before = None  # a damaged file is what is repaired here
    now, known = Library.here(), {} if before is None else before.pages
    written: list[str] = []
    left: list[str] = []
    for name, text in _pages():
        path = workspace / name
        found = path.read_text(encoding="utf-8") if path.is_file() else None
        if found == text:
            continue
        edited = found is not None and _sha256(found) != known.get(name)
        write_atomic(path.with_name(f"{path.name}.new") if edited else path, text)
        (left if edited else written).append(name)
    written += _add_lines(workspace / ".gitattributes", _attributes())
    now.write(workspace)
    return Upgrade(before, now, tuple(written), tuple(left))


def installed_pipeline(text: str) -> str:
    """Return dvc.yaml's text with the library's file in place of its folders."""
    return _CODE.sub(f"      - {LIBRARY.as_posix()}\n", text)


def _pages() -> Iterator[tuple[str, str]]:
    """Yield name and text of dvc.yaml and of the pages that it runs."""
    yield "dvc.yaml", installed_pipeline((SOURCE / "dvc.yaml").read_text(encoding="utf-8"))
    for path in sorted((SOURCE / "stages").glob("*.py")):
        yield f"stages/{path.name}", path.read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def examples() -> list[str]:
    """Return the environments that have items of their own to bring."""
    found = (path.parent.name for path in (SOURCE / "data").glob("*/README.md"))
    return sorted(name for name in found if name != "none")


def _refuse(folder: Path, example: str | None, beside: tuple[str, ...] = ()) -> bool:
    """Return whether the folder lies below the top of its repository."""
    if example is not None and example not in examples():
        raise UsageError(
            f"--example {example}", "no such items", f"There are {', '.join(examples())}"
        )
    git = Git.find(next(one for one in (folder, *folder.parents) if one.is_dir()))
    if git is None:
        raise UsageError(
            f"A workspace in {folder}",
            "this is in no git repository, and events become commits",
            "`git init` first",
        )
    existing = [name for name in OWN if name not in beside and (folder / name).exists()]
    if existing:
        raise UsageError(
            f"A workspace in {folder}",
            f"{', '.join(existing)} already there, and nothing is written over",
            "Choose a subfolder: `skilltrail init --dir training`",
        )
    return git.prefix != "" or git.folder != folder


def _names(example: str | None, env: str | None) -> Iterator[str]:
    yield from FILES
    if env is not None and (SOURCE / "data" / env / "README.md").is_file():
        yield f"data/{env}/README.md"
    data = () if example is None else (f"data/{example}",)
    for folder in (*FOLDERS, *data):
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(SOURCE).as_posix()


def _item_folders(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield a page for the folder of items of each environment that has none yet."""
    for env in environment_names():
        if not (folder / "data" / env).exists():
            yield f"data/{env}/README.md", f"Items of the environment `{env}`, or none.\n"


def _attributes() -> str:
    """Return the git attributes of our own files; those of all files are the owner's matter."""
    lines = (SOURCE / ".gitattributes").read_text(encoding="utf-8").splitlines()
    ours = [line for line in lines if "/" in line.split(" ")[0]]
    ends = [
        f"/{name} text=auto eol=lf" for name in ("data/**", "envs/**", "skills/**", "stages/**")
    ]
    return "\n".join(["# Skilltrail", *ends, *ours, "*.xlsx binary"]) + "\n"


def _add_lines(path: Path, wanted: str) -> list[str]:
    """Add the lines that a file lacks, keeping what stands there; return its name, if any."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    missing = [line for line in wanted.splitlines() if line not in text.splitlines()]
    if not missing:
        return []
    joint = "" if text.endswith("\n") or not text else "\n"
    write_atomic(path, text + joint + "\n".join(missing) + "\n")
    return [path.name]


def _readme(folder: Path) -> str:
    name = "SKILLTRAIL.md" if (folder / "README.md").exists() else "README.md"
    text = Path(__file__).with_name("workspace.md").read_text(encoding="utf-8")
    write_atomic(folder / name, text)
    return name


def _init_dvc(folder: Path, *, below: bool) -> list[str]:
    """Make the folder a DVC project; below the top of a repository it is one of its own."""
    if (folder / ".dvc" / "config").exists():
        return []
    command = [sys.executable, "-m", "dvc", "init", "--quiet", *(["--subdir"] if below else [])]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        raise UsageError("`dvc init`", done.stderr.strip(), "Fix that, then run it again")
    shutil.copyfile(SOURCE / ".dvc/config", folder / ".dvc/config")
    return [".dvc/config"]
