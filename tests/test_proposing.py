"""One commit on a branch by plumbing: the files asked for, modes as HEAD has them, no more."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from skilltrail.history.git.proposing import commit_stream
from skilltrail.history.git.repository import Git

WHO = b"A Person <person@example.com> 1767225600 +0000"


def git(folder: Path, *words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=folder, encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["scripts/run.py", "a b/나무.md", 'say "hi".md', "back\\slash"]
)
def test_a_proposed_file_has_its_content_and_the_mode_of_head(
    tmp_path: Path, name: str
) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("before\n", "utf-8")
    path.chmod(0o755)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "A script")
    door = Git.find(tmp_path)
    assert door is not None
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    files = {name: b"after\n", "new.md": b"new\n"}
    stream = commit_stream(
        door, "refs/heads/proposed", head, "Propose\n", files, author=WHO, committer=WHO
    )
    door.fast_import(stream)
    rows = git(tmp_path, "ls-tree", "-r", "-z", "proposed").split("\0")[:-1]
    found = {row.split("\t")[1]: row[:6] for row in rows}
    assert found == {name: "100755", "new.md": "100644"}
    assert git(tmp_path, "show", f"proposed:{name}") == "after\n"
    assert git(tmp_path, "log", "-1", "--format=%an %P", "proposed") == f"A Person {head}\n"
    assert git(tmp_path, "status", "--porcelain") == ""
