"""A merge, rebase or bisect of a person's own: named, and never ended or undone by a repair."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from test_repair import LOCK, PARAMS, case_of, fixed, found, git, kept, start_experiment, write
from test_repair import root as root  # noqa: PLC0414 (a fixture)

from skilltrail.cli.checks import OK, WARNING, git_check
from skilltrail.cli.repair.back import back
from skilltrail.core.errors import UsageError
from skilltrail.runtime.command import told_detached
from skilltrail.store.place import find_place

# How each begins on branch main, where `other` changed notes.md too, and how it is given up.
CONFLICTS = {
    "merge": ("merge other", "merge --abort"),
    "rebase": ("rebase other", "rebase --abort"),
    "cherry-pick": ("cherry-pick other", "cherry-pick --abort"),
    "revert": ("revert --no-edit HEAD~1", "revert --abort"),
    "am": ("am --3way ../one.patch", "am --abort"),
}


def fails(root: Path, *args: str) -> None:
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, check=False)
    assert done.returncode != 0, done.stdout


def commit(root: Path, name: str, text: str) -> None:
    write(root / name, text)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", f"{name}: {text.splitlines()[-1]}")


def parted(
    root: Path, name: str = "notes.md", ours: str = "ours\n", theirs: str = "theirs\n"
) -> None:
    """Let main and other part in one file."""
    git(root, "switch", "-q", "other")
    commit(root, name, theirs)
    patch = git(root, "format-patch", "-1", "--stdout")
    write(root.parent / "one.patch", patch + "\n\n")
    git(root, "switch", "-q", "main")
    commit(root, name, f"early {ours}")
    commit(root, name, ours)


def state(root: Path) -> list[str]:
    """All that a person would lose: HEAD, index, refs, texts, what is under way."""
    signs = sorted(path.name for path in (root / ".git").iterdir() if path.name != "index")
    texts = [p.read_text("utf-8") for p in sorted(root.glob("*.*")) if p.is_file()]
    index = git(root, "ls-files", "--stage")
    return [git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD"), index,
            git(root, "for-each-ref"), *texts, *signs]  # fmt: skip


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_git_is_in_the_middle_of_is_named_with_the_way_out(root: Path, name: str) -> None:
    parted(root)
    begin, give_up = CONFLICTS[name]
    fails(root, *begin.split())
    check = git_check(root)
    assert check.verdict == WARNING
    assert check.found == f"a {name} is under way, unmerged: notes.md"
    assert "then `git add` it" in check.remedy
    assert f"`git {name} --continue`" in check.remedy
    before = state(root)
    assert fixed(root, yes=True) == []
    with pytest.raises(UsageError, match=f"a {name} is under way"):
        list(back(case_of(root, yes=True)))
    assert state(root) == before
    git(root, *give_up.split())
    assert git_check(root).verdict == OK


def test_a_merge_whose_files_are_all_chosen_waits_for_its_commit(root: Path) -> None:
    parted(root)
    fails(root, "merge", "other")
    write(root / "notes.md", "both\n")
    git(root, "add", "notes.md")
    check = git_check(root)
    told = "`git merge --continue` (`--abort` gives it up)"
    assert (check.found, check.remedy) == ("a merge is under way", told)
    git(root, "-c", "core.editor=true", "merge", "--continue")
    assert git_check(root).verdict == OK


def test_a_bisect_is_named_and_left_where_it_looks(root: Path) -> None:
    for number in range(4):
        commit(root, "notes.md", f"{number}\n")
    git(root, "bisect", "start", "HEAD", "HEAD~3")
    check, before = git_check(root), state(root)
    assert (check.found, check.remedy) == (
        "a bisect is under way",
        "`git bisect reset` ends it",
    )
    assert fixed(root, yes=True) == []
    assert state(root) == before
    git(root, "bisect", "reset")
    assert git_check(root).verdict == OK


def test_between_two_of_several_reverts_they_are_under_way_too(root: Path) -> None:
    parted(root)
    fails(root, "revert", "--no-edit", "HEAD~1", "HEAD")
    write(root / "notes.md", "chosen\n")
    git(root, "commit", "-qam", "the first one by hand")
    assert git_check(root).found == "a revert is under way"


def test_files_that_a_stash_left_unmerged_are_named_without_a_merge(root: Path) -> None:
    write(root / "notes.md", "mine\n")
    git(root, "stash", "-q")
    commit(root, "notes.md", "newer\n")
    fails(root, "stash", "pop")
    check = git_check(root)
    assert check.found == "unmerged: notes.md"
    assert check.remedy == "correct each file, then `git add` it"


def test_a_lock_left_in_a_merge_goes_and_the_merge_stays(root: Path) -> None:
    parted(root)
    fails(root, "merge", "other")
    before = state(root)
    write(root / ".git/index.lock", "")
    assert any("git refuses to write" in one for one in found(root))
    assert fixed(root) == ["removed git's index.lock, which nobody held"]
    assert state(root) == before


def test_a_torn_index_in_a_merge_is_made_anew_and_the_merge_keeps_both_parents(
    root: Path,
) -> None:
    parted(root)
    fails(root, "merge", "other")
    write(root / "notes.md", "both\n")
    index = root / ".git/index"
    index.write_bytes(index.read_bytes()[:-9])
    assert any("made the index anew" in one for one in fixed(root))
    git(root, "add", "notes.md")
    git(root, "commit", "-q", "-m", "both")
    parents = git(root, "rev-list", "--parents", "-1", "HEAD").split()[1:]
    assert parents[1] == git(root, "rev-parse", "other")
    assert (root / "notes.md").read_text("utf-8") == "both\n"


def test_a_merge_on_the_detached_head_of_a_killed_experiment_is_ended_first(root: Path) -> None:
    parted(root)
    write(root / "notes.md", "ours\n")
    start_experiment(root)
    git(root, "checkout", "-q", "--", "params.yaml")
    fails(root, "merge", "other")
    assert "HEAD is on no branch" in git_check(root).found
    assert any("first correct each file" in one for one in found(root))
    before = state(root)
    assert any("left for now, a merge is under way" in one for one in fixed(root, yes=True))
    assert state(root) == before
    git(root, "merge", "--abort")
    assert "HEAD is on main again" in fixed(root, yes=True)
    assert found(root) == []


def test_params_in_a_merge_are_a_persons_though_nothing_is_asked(root: Path) -> None:
    parted(root, "params.yaml", PARAMS.replace("4", "5"), PARAMS.replace("4", "6"))
    fails(root, "merge", "other")
    text = (root / "params.yaml").read_text("utf-8")
    assert "<<<<<<<" in text
    (told,) = fixed(root, yes=True)
    assert told.startswith("left for now, a merge is under way")
    assert "params.yaml holds the markers of a merge" in told
    assert (root / "params.yaml").read_text("utf-8") == text


def test_a_lock_with_markers_is_whole_again_and_the_merge_still_waits_for_it(
    root: Path,
) -> None:
    mine, other = (LOCK.replace("size: 9", f"size: {n}") for n in (10, 11))
    parted(root, "dvc.lock", mine, other)
    fails(root, "merge", "other")
    assert "<<<<<<<" in (root / "dvc.lock").read_text("utf-8")
    assert any(one.startswith("restored dvc.lock") for one in fixed(root))
    assert (root / "dvc.lock").read_text("utf-8") == mine
    assert "<<<<<<<" in kept(root, "dvc.lock")[0]
    assert git_check(root).found == "a merge is under way, unmerged: dvc.lock"


@pytest.mark.parametrize("committed", [False, True])
def test_the_way_to_a_whole_log_is_a_command_that_works(root: Path, committed: bool) -> None:
    parted(root, "skills/events.jsonl", '{"a":1}\n', '{"b":2}\n')
    fails(root, "merge", "other")
    (told,) = [one for one in found(root) if one.startswith("skills/events.jsonl")]
    assert "`git checkout --ours skills/events.jsonl`" in told
    if committed:  # with its markers
        git(root, "commit", "-qam", "merged in a hurry")
        (told,) = [one for one in found(root) if one.startswith("skills/events.jsonl")]
        assert "take it from a commit that has it whole" in told
        return
    git(root, "checkout", "--ours", "skills/events.jsonl")
    git(root, "add", "skills/events.jsonl")
    assert not [one for one in found(root) if one.startswith("skills/events.jsonl")]
    write(root / "skills/events.jsonl", "<<<<<<< a\n")
    git(root, "commit", "-qm", "merged")
    (told,) = [one for one in found(root) if one.startswith("skills/events.jsonl")]
    assert told.endswith("`git checkout HEAD -- skills/events.jsonl`")


def told(root: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with told_detached(find_place(root)):
        return capsys.readouterr().err


def test_a_stage_on_a_detached_head_says_what_would_put_it_on_a_branch(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root / "dvc.yaml", "stages: {}\n")
    assert told(root, capsys) == ""
    parted(root)
    fails(root, "rebase", "other")
    assert "HEAD is detached: a rebase is under way" in told(root, capsys)
    git(root, "rebase", "--abort")
    git(root, "checkout", "-q", "--detach", "HEAD~1")
    assert "on no branch; `git switch main` puts it on one" in told(root, capsys)
