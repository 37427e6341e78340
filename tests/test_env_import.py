"""`data import`: the six released manifests joined with a download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from env_world import RECORDS, ROOT, WHERE, env_of

from skilltrail.cli.main import run
from skilltrail.core.errors import DataError, UsageError
from skilltrail.data.find import NOTHING, find_source
from skilltrail.data.importing import Imported, import_splits, import_tree
from skilltrail.data.load import read_items

SPLIT_NAMES = ("train", "val", "test")


def write_manifest(folder: Path, rows: dict[str, list[dict[str, Any]]]) -> Path:
    """Lay a manifest out as it is released: a folder per split with `items.json`."""
    for split in SPLIT_NAMES:
        (folder / split).mkdir(parents=True)
        text = json.dumps(rows[split], indent=2)
        (folder / split / "items.json").write_text(text, encoding="utf-8")
    (folder / "split_manifest.json").write_text("{}", encoding="utf-8")
    return folder


def three(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {split: [row] for split, row in zip(SPLIT_NAMES, rows, strict=True)}


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def imported(env: str, tmp: Path, manifest: Any, sources: list[Path], **how: Any) -> Imported:
    folder = write_manifest(tmp / "manifest", manifest)
    return import_splits(ROOT, env, folder, sources, tmp / "out", **how)


def rows_of(done: Imported) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for split in ("train", "selection", "test")
        for line in (done.folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def test_searchqa_is_joined_by_key(tmp_path: Path) -> None:
    ids = [f"{n:032x}" for n in range(3)]
    download = [
        {"key": id, "question": f"q{id}", "context": f"c{id}", "answers": ["x"]} for id in ids
    ]
    done = imported(
        "searchqa",
        tmp_path,
        three([{"id": id} for id in ids]),
        [write_jsonl(tmp_path / "all.jsonl", download)],
    )
    assert dict(done.counts) == {"train": 1, "selection": 1, "test": 1}
    source = find_source(ROOT, "searchqa", NOTHING, str(done.folder))
    assert [one.item.id for one in read_items(source, env_of("searchqa"), ROOT).items] == ids


def test_livemath_is_joined_by_month_and_number(tmp_path: Path) -> None:
    raw = [dict(RECORDS["livemath"], no=n, month="202602") for n in (1, 2, 3)]
    manifest = [{"id": f"202602:{n}", "month": "202602", "no": n} for n in (1, 2, 3)]
    file = tmp_path / "qa_202602_final.json"
    file.write_text(json.dumps(raw), encoding="utf-8")
    rows = rows_of(imported("livemath", tmp_path, three(manifest), [file]))
    assert [env_of("livemath").parse(row, WHERE).id for row in rows] == [
        "202602:1",
        "202602:2",
        "202602:3",
    ]


def test_docvqa_is_joined_by_question_id_and_keeps_the_image_path(tmp_path: Path) -> None:
    manifest = [
        {"id": str(n), "questionId": str(n), "image_path": f"data/i/q{n}.png", "docId": "7"}
        for n in (1, 2, 3)
    ]
    download = [{"questionId": n, "question": f"q{n}", "answers": ["x"]} for n in (1, 2, 3)]
    done = imported(
        "docvqa", tmp_path, three(manifest), [write_jsonl(tmp_path / "v.jsonl", download)]
    )
    assert [row["image_path"] for row in rows_of(done)] == [
        f"data/i/q{n}.png" for n in (1, 2, 3)
    ]
    assert dict(done.shared) == {"selection": 1, "test": 1}


def test_officeqa_is_joined_by_uid_from_csv(tmp_path: Path) -> None:
    manifest = [{"id": f"UID{n}", "uid": f"UID{n}", "category": "easy"} for n in (1, 2, 3)]
    lines = [
        "uid,question,answer,source_files",
        *(f'UID{n},q{n},5,"a.txt\r\nb{n}.txt"' for n in (1, 2, 3)),
    ]
    file = tmp_path / "officeqa_full.csv"
    file.write_bytes("\r\n".join(lines).encode())
    done = imported("officeqa", tmp_path, three(manifest), [file])
    assert [row["answer"] for row in rows_of(done)] == ["5"] * 3
    assert dict(done.shared) == {"selection": 1, "test": 1}


def test_spreadsheet_ids_join_as_text(tmp_path: Path) -> None:
    manifest = three([{"id": "1"}, {"id": "13-1"}, {"id": "7"}])
    download = [{"id": 1, "instruction": "a"}, {"id": "13-1", "instruction": "b"}, {"id": 7}]
    file = tmp_path / "dataset.json"
    file.write_text(json.dumps(download), encoding="utf-8")
    done = imported("spreadsheet", tmp_path, manifest, [file])
    assert [row["id"] for row in rows_of(done)] == [1, "13-1", 7]


def test_alfworld_joins_game_files_below_a_folder(tmp_path: Path) -> None:
    games = [f"json_2.1.1/train/task-{n}/trial/game.tw-pddl" for n in (1, 2, 3)]
    for game in games:
        path = tmp_path / "download" / game
        path.parent.mkdir(parents=True)
        path.write_text("{}", encoding="utf-8")
    manifest = [{"id": f"train:{n}", "gamefile": game} for n, game in enumerate(games)]
    for source in ("download", "download/json_2.1.1"):
        done = import_splits(
            ROOT,
            "alfworld",
            write_manifest(tmp_path / source / "m", three(manifest)),
            [tmp_path / source],
            tmp_path / f"out-{source.count('/')}",
        )
        assert [row["gamefile"] for row in rows_of(done)] == games


def test_missing_ids_are_listed_and_left_out_only_when_asked(tmp_path: Path) -> None:
    manifest = three([{"id": "a"}, {"id": "b"}, {"id": "c"}])
    file = write_jsonl(tmp_path / "part.jsonl", [{"id": "b", "x": 1}])
    with pytest.raises(DataError, match=r"2 of 3 ids .*train 1, test 1.*'a', 'c'"):
        imported("qa", tmp_path, manifest, [file])
    assert not (tmp_path / "out").exists()
    folder = tmp_path / "manifest"
    done = import_splits(ROOT, "qa", folder, [file], tmp_path / "out", skip_missing=True)
    assert dict(done.missing) == {"train": ["a"], "test": ["c"]}
    with pytest.raises(UsageError, match="holds splits already"):
        import_splits(ROOT, "qa", folder, [file], tmp_path / "out", skip_missing=True)


def test_one_id_for_two_records_is_refused_by_both_places(tmp_path: Path) -> None:
    manifest = three([{"id": "a"}, {"id": "b"}, {"id": "c"}])
    file = write_jsonl(tmp_path / "all.jsonl", [{"id": "a", "x": 1}, {"id": "a", "x": 2}])
    with pytest.raises(DataError, match="line 1 and .*line 2"):
        imported("qa", tmp_path, manifest, [file])


def test_the_command_says_what_it_wrote_and_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    folder = write_manifest(tmp_path / "m", three([{"id": "a"}, {"id": "b"}, {"id": "c"}]))
    rows = [{"id": id, "question": f"q{id}", "answers": ["x"]} for id in "abc"]
    file = write_jsonl(tmp_path / "all.jsonl", rows)
    words = ["--manifest", str(folder), "--source", str(file), "--out", str(tmp_path / "out")]
    assert run(["data", "import", "qa", *words]) == 0
    assert "-S data.split_dir=" in capsys.readouterr().err
    assert run(["data", "import", "nosuch", *words]) == 2


def test_several_files_may_follow_one_source_as_a_shell_s_star_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    folder = write_manifest(tmp_path / "m", three([{"id": "a"}, {"id": "b"}, {"id": "c"}]))
    files = []
    for id in "abc":
        row = {"id": id, "question": f"q{id}", "answers": ["x"]}
        files.append(str(write_jsonl(tmp_path / f"{id}.jsonl", [row])))
    words = ["--manifest", str(folder), "--out", str(tmp_path / "out"), "--source", *files]
    assert run(["data", "import", "qa", *words]) == 0
    assert "train 1, selection 1, test 1" in capsys.readouterr().out


def test_a_tree_of_games_needs_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    tree = tmp_path / "json_2.1.1"
    for folder in ("train", "valid_seen", "valid_unseen"):
        for n in (1, 2):
            path = (
                tree / folder / f"pick_and_place_simple-Cup-None-Shelf-{n}/trial_T/game.tw-pddl"
            )
            path.parent.mkdir(parents=True)
            game = {"pddl_domain": "", "grammar": folder, "pddl_problem": str(n)}
            path.write_text(json.dumps(game), encoding="utf-8")
    out = str(tmp_path / "out")
    assert run(["data", "import", "alfworld", "--source", str(tree), "--out", out]) == 0
    wrote, said = capsys.readouterr()
    assert "train 2, selection 2, test 2" in wrote
    assert f"-S '+envs.alfworld.data_dirs=[{tree}]'" in said
    source = find_source(ROOT, "alfworld", NOTHING, out)
    items = read_items(source, env_of("alfworld", data_dirs=(str(tree),)), ROOT).items
    assert [one.item.id for one in items][0] == "train:0000"
    assert {one.item.task_type for one in items} == {"pick_and_place_simple"}


def test_without_a_manifest_other_downloads_and_trees_without_games_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match="no --manifest"):
        import_tree(ROOT, "docvqa", tmp_path, tmp_path / "out")
    with pytest.raises(DataError, match="no games for the split train"):
        import_tree(ROOT, "alfworld", tmp_path, tmp_path / "out")
