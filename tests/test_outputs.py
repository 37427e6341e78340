"""A skill edited by hand is never overwritten; a reference run is compared byte by byte."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from skilltrail.core.errors import SkillError
from skilltrail.core.layout import BEST_SKILL, EVENTS, METRICS
from skilltrail.runtime.outputs import keep_hand_edits
from skilltrail.runtime.reference import Reproduction, compare_with_head
from skilltrail.store.place import Place

TEXT = "# Skill\n\n- be brief\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "skills").mkdir()
    write(tmp_path / BEST_SKILL, TEXT)
    return Place(tmp_path, tmp_path)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


def commit_all(folder: Path) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "all")


def test_an_unknown_text_is_refused_left_alone_and_told_how_to_go_on(place: Place) -> None:
    with pytest.raises(SkillError, match=r"skilltrail fork skills/best_skill\.md"):
        keep_hand_edits(place)
    assert (place.workspace / BEST_SKILL).read_text(encoding="utf-8") == TEXT


def test_no_skill_yet_is_fine(tmp_path: Path) -> None:
    keep_hand_edits(Place(tmp_path, tmp_path))


def test_what_a_run_wrote_is_known_from_its_live_log(place: Place) -> None:
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    write(place.state / "runs/abc/events.jsonl", f'{{"digest":"{digest}"}}\n')
    keep_hand_edits(place)


@pytest.mark.parametrize(
    "lock",
    [
        b"",
        b"[]",
        b"stages:\n  train:",
        b"stages: [1]\n",
        b"\xff\xfe",
        b"<<<<<<< x\n",
        b"[" * 3000,
    ],
)
def test_a_damaged_lock_file_or_live_log_hides_no_text_and_raises_nothing_else(
    place: Place, lock: bytes
) -> None:
    (place.workspace / "dvc.lock").write_bytes(lock)
    write(place.state / "runs/abc/events.jsonl", "")
    (place.state / "runs/abc/events.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SkillError, match="would be overwritten"):
        keep_hand_edits(place)


def test_what_the_pipeline_wrote_is_known_from_its_lock_file(place: Place) -> None:
    md5 = hashlib.md5(TEXT.encode()).hexdigest()
    out = f"    - path: skills/best_skill.md\n      md5: {md5}\n"
    write(place.workspace / "dvc.lock", f"stages:\n  train:\n    outs:\n{out}")
    keep_hand_edits(place)


def test_what_is_committed_is_known(place: Place) -> None:
    commit_all(place.workspace)
    keep_hand_edits(place)
    write(place.workspace / BEST_SKILL, TEXT + "- and mine\n")
    with pytest.raises(SkillError):
        keep_hand_edits(place)


def reference(folder: Path) -> None:
    for path, text in ((EVENTS, "one\ntwo\n"), (BEST_SKILL, TEXT), (METRICS, "{}\n")):
        write(folder / path, text)
    write(folder / "params.yaml", "seed: 1\n")
    for name in (
        "data/textqa/train.jsonl",
        "data/textqa/selection.jsonl",
        "data/textqa/test.jsonl",
    ):
        write(folder / name, "{}\n")
    write(folder / "skills/seeds/textqa.md", TEXT)
    commit_all(folder)


def test_the_same_bytes_reproduce_the_reference_run(tmp_path: Path) -> None:
    reference(tmp_path)
    assert compare_with_head(tmp_path).same is True


def test_a_difference_names_the_event_it_starts_at(tmp_path: Path) -> None:
    reference(tmp_path)
    write(tmp_path / EVENTS, "one\nother\n")
    found = compare_with_head(tmp_path)
    assert found.same is False
    assert "from event 2 on" in str(found.told)


def test_what_nothing_reads_is_no_difference(tmp_path: Path) -> None:
    reference(tmp_path)
    for name in ("data/textqa/notes.txt", "data/new/train.jsonl", "skills/seeds/mine.md", "x"):
        write(tmp_path / name, "mine\n")
    assert compare_with_head(tmp_path).same is True


@pytest.mark.parametrize(
    "name", ["data/textqa/selection.jsonl", "data/textqa/test.jsonl", "skills/seeds/textqa.md"]
)
def test_a_file_that_is_read_and_differs_is_named(tmp_path: Path, name: str) -> None:
    reference(tmp_path)
    write(tmp_path / name, "mine\n")
    assert compare_with_head(tmp_path).told == (
        f"not compared with the reference run: {name} differs from HEAD's"
    )


def test_params_that_differ_are_named_with_both_values(tmp_path: Path) -> None:
    reference(tmp_path)
    write(tmp_path / "params.yaml", "seed: 1\nlr: 8\n")
    assert "lr is 8, 4 at HEAD" in str(compare_with_head(tmp_path).told)


def test_a_log_of_other_items_is_called_another_run(tmp_path: Path) -> None:
    reference(tmp_path)
    write(tmp_path / EVENTS, "other\ntwo\n")
    assert "is not the committed reference run" in str(compare_with_head(tmp_path).told)


@pytest.mark.parametrize(
    "other",
    [
        "seed: 2",
        "seed: 1\ndata: {limit: {selection: 20}}",
        "seed: 1\ndata: {path: data/mine.jsonl}",
        "seed: 1\nskill: {seed: skills/seeds/mine.md}",
        "seed: 1\nevaluate: {enabled: false}",
        "seed: 1\nevaluate: {skills: [seed]}",
    ],
)
def test_other_params_are_not_compared(tmp_path: Path, other: str) -> None:
    reference(tmp_path)
    write(tmp_path / "skills/best_skill.md", "another\n")
    write(tmp_path / "params.yaml", other + "\n")
    assert compare_with_head(tmp_path).same is None


def test_params_are_compared_by_their_values(tmp_path: Path) -> None:
    reference(tmp_path)
    write(tmp_path / "params.yaml", "# as DVC writes it\nlr:   4\nseed:    1\n")
    assert compare_with_head(tmp_path).same is True


def test_without_git_nothing_is_compared(tmp_path: Path) -> None:
    assert "no git checkout" in str(compare_with_head(tmp_path).told)


def test_a_new_workspace_hears_nothing_of_a_run_at_head(tmp_path: Path) -> None:
    write(tmp_path / "params.yaml", "seed: 1\n")
    commit_all(tmp_path)
    for path in (EVENTS, BEST_SKILL, METRICS):
        write(tmp_path / path, TEXT)
    assert compare_with_head(tmp_path) == Reproduction(None, None)


def test_of_a_run_committed_in_part_the_missing_file_is_named(tmp_path: Path) -> None:
    reference(tmp_path)
    git(tmp_path, "rm", "--quiet", "--cached", METRICS.as_posix())
    git(tmp_path, "commit", "--quiet", "-m", "less")
    told = compare_with_head(tmp_path).told
    assert told == f"not compared with the reference run: HEAD has no {METRICS.as_posix()}"
