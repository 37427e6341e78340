"""The `split` stage end to end: from files to frozen splits, or one clear error."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from toy_items import Toy, toy_records, write_jsonl

from skilltrail.core.errors import (
    DataError,
    FaultError,
    ParamError,
    SkilltrailError,
    UsageError,
)
from skilltrail.core.files import write_atomic
from skilltrail.core.item import SPLITS
from skilltrail.data.freeze import SplitReport, look_at_items, split
from skilltrail.data.splits import FOLDER, read_manifest, read_split
from skilltrail.envs.textqa.env import TextQa, TextQaParams
from skilltrail.params.fields import Params
from skilltrail.params.sections import Data, Limit

TOY = Toy()
SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "item.schema.json"


def params(**data: Any) -> Params:
    return Params(env="toy", data=Data(**data))


def run(root: Path, **data: Any) -> SplitReport:
    return split(params(**data), TOY, root)


def ids(root: Path) -> dict[str, list[str]]:
    return {name: [item.id for item in read_split(root, name)] for name in SPLITS}


def frozen_bytes(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / FOLDER).iterdir())}


def ready_made(root: Path, folder: str = "mine", **names: str) -> Path:
    """Write three small ready-made splits; `names` gives other file names per split."""
    for k, name in enumerate(SPLITS):
        write_jsonl(
            root / folder / names.get(name, f"{name}.jsonl"), toy_records(4, 10 * k + 1)
        )
    return root / folder


# Ratio mode


def test_an_environments_own_items_are_split_by_ratio(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(200))
    report = run(tmp_path)
    split_ids = ids(tmp_path)
    assert sorted(id for some in split_ids.values() for id in some) == sorted(
        record["id"] for record in toy_records(200)
    )
    assert report.manifest["how"] == "ratio 2:1:7"
    assert report.manifest == read_manifest(tmp_path)


def test_every_written_line_follows_the_schema(tmp_path: Path) -> None:
    rows = [{**record, "group": f"g{k // 2}"} for k, record in enumerate(toy_records(100))]
    write_jsonl(tmp_path / "data/toy/items.jsonl", rows)
    run(tmp_path)
    validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for name in SPLITS:
        for line in (tmp_path / FOLDER / f"{name}.jsonl").read_bytes().decode().splitlines():
            validator.validate(json.loads(line))


def test_the_bytes_do_not_depend_on_file_order_format_or_place(tmp_path: Path) -> None:
    records = toy_records(60)
    write_jsonl(tmp_path / "a/data/toy/items.jsonl", records)
    array = tmp_path / "elsewhere" / "mine.json"
    array.parent.mkdir()
    array.write_bytes(json.dumps(records[::-1], indent=1).encode("utf-8-sig"))
    run(tmp_path / "a")
    run(tmp_path / "b", path=str(array))
    assert frozen_bytes(tmp_path / "a") == frozen_bytes(tmp_path / "b")
    assert str(tmp_path) not in (tmp_path / "b" / FOLDER / "manifest.json").read_text("utf-8")


def test_adding_items_moves_no_old_one(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(60))
    run(tmp_path)
    before = ids(tmp_path)
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(90)[::-1])
    run(tmp_path)
    after = ids(tmp_path)
    assert all(set(before[name]) <= set(after[name]) for name in SPLITS)


def test_the_ratio_and_the_seed_each_change_the_splits(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(100))
    found = []
    for choice in ({}, {"ratio": "1:1:1"}, {"split_seed": 0}):
        run(tmp_path, **choice)
        found.append(ids(tmp_path))
    assert found[0] != found[1] != found[2] != found[0]


def test_three_items_are_an_error_that_says_the_minimum(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(3))
    with pytest.raises(DataError, match="at least 20 items"):
        run(tmp_path)
    assert not (tmp_path / FOLDER).exists()


def test_a_group_key_keeps_the_rows_of_a_document_together(tmp_path: Path) -> None:
    rows = [{**record, "doc": f"D{k % 40}"} for k, record in enumerate(toy_records(120))]
    write_jsonl(tmp_path / "data/toy/items.jsonl", rows)
    assert [w.kind for w in look_at_items(params(), TOY, tmp_path)[1]] == ["group_candidate"]
    report = run(tmp_path, group_key="doc")
    docs = [{item.group for item in read_split(tmp_path, name)} for name in SPLITS]
    assert sum(map(len, docs)) == 40
    assert report.warnings == ()


def test_rows_without_the_group_field_stand_alone(tmp_path: Path) -> None:
    rows = toy_records(100)
    rows[0]["doc"] = rows[1]["doc"] = 7
    rows[2]["doc"], rows[3]["doc"] = "", None
    write_jsonl(tmp_path / "data/toy/items.jsonl", rows)
    run(tmp_path, group_key="doc")
    groups = {item.id: item.group for name in SPLITS for item in read_split(tmp_path, name)}
    assert {id for id, group in groups.items() if group == "7"} == {"i1", "i2"}
    assert sum(group is not None for group in groups.values()) == 2


def test_a_group_key_that_no_record_has_is_an_error(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(100))
    with pytest.raises(ParamError, match=r"group_key: dok.*there are a, id, q"):
        run(tmp_path, group_key="dok")


def test_a_group_must_be_text_or_a_whole_number(tmp_path: Path) -> None:
    rows = [{**record, "doc": ["D"]} for record in toy_records(40)]
    write_jsonl(tmp_path / "data/toy/items.jsonl", rows)
    with pytest.raises(DataError, match=r"items\.jsonl, line 1, field 'doc': list"):
        run(tmp_path, group_key="doc")


def test_limits_take_nested_parts_and_say_so(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(300))
    run(tmp_path)
    whole = ids(tmp_path)
    run(tmp_path, limit=Limit(train=20))
    twenty = ids(tmp_path)
    report = run(tmp_path, limit=Limit(train=10, test=10**6))
    ten = ids(tmp_path)
    assert len(ten["train"]) == 10
    assert set(ten["train"]) < set(twenty["train"]) < set(whole["train"])
    assert ten["train"] != whole["train"][:10]
    assert ten["selection"] == whole["selection"]
    assert [w.kind for w in report.warnings] == ["limit_unused"]
    assert report.manifest["items_found"]["train"] == len(whole["train"])


# Ids


def test_a_number_and_a_text_of_one_id_are_a_duplicate(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", [{"id": 1, "q": "a"}, {"id": "1", "q": "b"}])
    with pytest.raises(DataError, match=r"'1' stands twice.*line 1 and .*line 2"):
        run(tmp_path)


def test_an_id_in_two_ready_made_splits_is_refused_even_when_overlap_is_allowed(
    tmp_path: Path,
) -> None:
    ready_made(tmp_path)
    write_jsonl(tmp_path / "mine/test.jsonl", [{"id": "i1", "q": "new"}])
    with pytest.raises(
        DataError, match=r"mine/train\.jsonl, line 1 and mine/test\.jsonl, line 1"
    ):
        run(tmp_path, split_dir="mine", allow_overlap=True)


@pytest.mark.parametrize("id", ["", "  ", None, 1.5, True])
def test_an_id_that_is_no_id_is_refused(tmp_path: Path, id: Any) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", [{"id": id, "q": "a"}])
    with pytest.raises(DataError, match=r"line 1, field 'id'"):
        run(tmp_path)


def test_ids_are_data_and_never_paths(tmp_path: Path) -> None:
    rows = [{**record, "id": f"../../{record['id']}"} for record in toy_records(60)]
    write_jsonl(tmp_path / "data/toy/items.jsonl", rows)
    run(tmp_path)
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == [
        "manifest.json",
        "selection.jsonl",
        "test.jsonl",
        "train.jsonl",
    ]


def test_a_missing_field_names_file_line_and_field(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", [*toy_records(2), {"id": "x"}])
    with pytest.raises(DataError, match=r"data/toy/items\.jsonl, line 3, field 'q'"):
        run(tmp_path)


# Ready-made splits


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"selection": "val.jsonl"},
        {"selection": "validation/rows.jsonl"},
        {"selection": "valid_seen.jsonl", "test": "valid_unseen.jsonl"},
        {"train": "train/a.jsonl", "selection": "val/b.jsonl", "test": "test/c.jsonl"},
    ],
)
def test_ready_made_splits_are_taken_as_they_are(tmp_path: Path, names: dict[str, str]) -> None:
    ready_made(tmp_path, **names)
    report = run(tmp_path, split_dir="mine")
    assert ids(tmp_path) == {
        "train": ["i1", "i2", "i3", "i4"],
        "selection": ["i11", "i12", "i13", "i14"],
        "test": ["i21", "i22", "i23", "i24"],
    }
    assert report.manifest["how"] == "ready-made"


def test_ready_made_splits_may_be_of_three_formats_and_lie_anywhere(tmp_path: Path) -> None:
    folder = tmp_path / "far"
    write_jsonl(folder / "train.jsonl", toy_records(2))
    (folder / "val.json").write_text('[{"id": 7, "q": "seven"}]', encoding="utf-8")
    (folder / "test.csv").write_text("id,q\n8,eight\n", encoding="utf-8")
    run(tmp_path / "project", split_dir=str(folder))
    assert ids(tmp_path / "project") == {
        "train": ["i1", "i2"],
        "selection": ["7"],
        "test": ["8"],
    }


def test_an_environments_own_ready_made_splits_are_found(tmp_path: Path) -> None:
    folder = ready_made(tmp_path, "data/toy")
    (folder / "README.md").write_text("card\n", encoding="utf-8")
    assert run(tmp_path).manifest["how"] == "ready-made"


def test_several_files_for_one_split_are_an_error_and_none_is_picked(tmp_path: Path) -> None:
    ready_made(tmp_path, selection="val/a.jsonl")
    write_jsonl(tmp_path / "mine/val/b.jsonl", toy_records(1, 90))
    with pytest.raises(DataError, match=r"More than one file.*mine/val: a\.jsonl, b\.jsonl"):
        run(tmp_path, split_dir="mine")


@pytest.mark.parametrize("other", ["valid_seen.jsonl", "val.json", "val/rows.jsonl"])
def test_two_names_for_one_split_are_an_error(tmp_path: Path, other: str) -> None:
    ready_made(tmp_path, selection="val.jsonl")
    write_jsonl(tmp_path / "mine" / other, toy_records(1, 90))
    with pytest.raises(DataError, match="More than one file for the selection split"):
        run(tmp_path, split_dir="mine")


def test_a_missing_split_is_named_with_what_was_found(tmp_path: Path) -> None:
    (ready_made(tmp_path) / "test.jsonl").rename(tmp_path / "mine/tests.jsonl")
    with pytest.raises(DataError, match=r"No test split in mine.*tests\.jsonl.*valid_unseen"):
        run(tmp_path, split_dir="mine")


def test_a_folder_of_side_files_is_no_split(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(60))
    (tmp_path / "data/toy/train").mkdir()
    (tmp_path / "data/toy/train/page.png").write_bytes(b"png")
    assert run(tmp_path).manifest["how"] == "ratio 2:1:7"
    ready_made(tmp_path)
    (tmp_path / "mine/val").mkdir()
    (tmp_path / "mine/.train.jsonl.swp").write_bytes(b"")
    assert run(tmp_path, split_dir="mine").manifest["how"] == "ready-made"


def test_several_items_files_are_an_error(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write_jsonl(tmp_path / "data/toy" / name, toy_records(100))
    with pytest.raises(DataError, match=r"data/toy: a\.jsonl, b\.jsonl"):
        run(tmp_path)


@pytest.mark.parametrize("choice", [{"path": "no/such"}, {"split_dir": "no/such"}, {}])
def test_a_wrong_path_is_an_error_that_names_it(tmp_path: Path, choice: dict[str, str]) -> None:
    with pytest.raises(DataError, match=r"no/such|data/toy"):
        run(tmp_path, **choice)


def test_path_and_split_dir_together_are_an_error(tmp_path: Path) -> None:
    ready_made(tmp_path)
    with pytest.raises(ParamError, match="both set"):
        run(tmp_path, path="mine/train.jsonl", split_dir="mine")


def test_the_folder_none_means_not_set_however_it_is_written(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(60))
    run(tmp_path, path="./data/none/", split_dir=str(tmp_path / "data" / "none"))
    assert read_manifest(tmp_path)["how"] == "ratio 2:1:7"


# Overlaps


def test_overlaps_are_refused_or_recorded_when_allowed(tmp_path: Path) -> None:
    ready_made(tmp_path)
    rows = [{"id": "x", "q": "what is 1 AND 1"}, {"id": "y", "q": "other"}]
    write_jsonl(tmp_path / "mine/test.jsonl", rows)
    with pytest.raises(DataError, match="1 content in both train and test"):
        run(tmp_path, split_dir="mine")
    said: list[str] = []
    report = split(params(split_dir="mine", allow_overlap=True), TOY, tmp_path, said.append)
    assert report.manifest["overlaps"] == [
        {
            "kind": "content",
            "items": [{"split": "train", "id": "i1"}, {"split": "test", "id": "x"}],
        }
    ]
    assert "allowed: 1 content in both train and test" in said


def test_a_shared_document_in_ready_made_splits_is_refused_by_group_key(tmp_path: Path) -> None:
    for k, name in enumerate(SPLITS):
        rows = [{**record, "doc": "D"} for record in toy_records(2, 10 * k + 1)]
        write_jsonl(tmp_path / "mine" / f"{name}.jsonl", rows)
    kinds = {warning.kind for warning in run(tmp_path, split_dir="mine").warnings}
    assert "group_candidate" in kinds
    with pytest.raises(DataError, match="1 group in both train and test"):
        run(tmp_path, split_dir="mine", group_key="doc")


def test_a_question_given_twice_is_refused_for_every_split_seed(tmp_path: Path) -> None:
    rows = [*toy_records(60), {"id": "twin", "q": "What is 1 and 1"}]
    write_jsonl(tmp_path / "data/toy/items.jsonl", rows)
    for seed in range(8):
        with pytest.raises(DataError, match="1 content (twice in|in both)"):
            run(tmp_path, split_seed=seed)
    report = run(tmp_path, allow_overlap=True)
    assert len(report.overlaps) == 1
    assert "repeated_content" in {warning.kind for warning in report.warnings}


# Reading the frozen splits


def test_an_unknown_split_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the splits are train, selection, test"):
        read_split(tmp_path, "valid")


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("test.jsonl", lambda raw: raw.replace(b"What", b"what", 1)),
        ("test.jsonl", lambda raw: raw[: len(raw) // 2]),
        ("test.jsonl", lambda raw: raw.split(b"\n", 1)[1]),
        ("test.jsonl", lambda raw: b"\xff" + raw),
        ("test.jsonl", lambda raw: b'{"id": NaN}\n'),
        ("manifest.json", lambda raw: b"{}"),
        ("manifest.json", lambda raw: b"[1]"),
        ("manifest.json", lambda raw: raw[:-10]),
    ],
)
def test_damage_to_a_frozen_split_is_named(tmp_path: Path, file: str, damage: Any) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(60))
    run(tmp_path)
    path = tmp_path / FOLDER / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FaultError, match=r"damaged.*dvc repro"):
        read_split(tmp_path, "test")


@pytest.mark.parametrize("file", ["test.jsonl", "manifest.json"])
def test_a_missing_frozen_file_is_named(tmp_path: Path, file: str) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(60))
    run(tmp_path)
    (tmp_path / FOLDER / file).unlink()
    with pytest.raises(FaultError, match=r"cannot be read.*dvc repro"):
        read_split(tmp_path, "test")


def test_u2028_survives_the_round_trip(tmp_path: Path) -> None:
    rows = toy_records(60)
    for row in rows:
        row["q"] += "\u2028 next\u0085\ud800".encode("utf-16", "surrogatepass").decode(
            "utf-16", "replace"
        )
    write_jsonl(tmp_path / "data/toy/items.jsonl", rows)
    run(tmp_path)
    found = {item.id: item.input["q"] for name in SPLITS for item in read_split(tmp_path, name)}
    assert found == {row["id"]: row["q"] for row in rows}


# Whole files


def test_a_write_replaces_a_link_and_leaves_what_it_pointed_at(tmp_path: Path) -> None:
    original, link = tmp_path / "cached", tmp_path / "out" / "file"
    original.write_text("old", encoding="utf-8")
    link.parent.mkdir()
    link.symlink_to(original)
    write_atomic(link, "new\né\n")
    assert original.read_text(encoding="utf-8") == "old"
    assert link.read_bytes() == "new\né\n".encode()
    assert [path.name for path in link.parent.iterdir()] == ["file"]


def test_what_is_written_to_a_pipe_or_a_device_goes_through_it(tmp_path: Path) -> None:
    """As root a rename put a file in the place of /dev/null, for the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomic(pipe, "a → b\n")
    assert os.read(reader, 99).decode() == "a → b\n"
    os.close(reader)
    assert pipe.is_fifo()
    terminal, device = os.openpty()
    write_atomic(Path(os.ttyname(device)), "shown")
    assert os.read(terminal, 99) == b"shown"
    os.close(terminal)
    os.close(device)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_write_that_fails_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(SkilltrailError, match="Cannot write .*file"):
        write_atomic(path, "text")
    with pytest.raises(SkilltrailError, match="Cannot write .*x"):
        write_atomic(write_jsonl(tmp_path / "plain", []) / "x", "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "plain"]


def test_a_small_selection_split_is_a_warning(tmp_path: Path) -> None:
    ready_made(tmp_path)
    (warning,) = run(tmp_path, split_dir="mine").warnings
    assert warning.kind == "small_selection"
    assert "by 0.25" in warning.message


def test_params_of_another_environment_do_not_matter(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data/toy/items.jsonl", toy_records(60))
    run(tmp_path)
    before = frozen_bytes(tmp_path)
    split(replace(params(), seed=7, lr=8), TOY, tmp_path)
    assert frozen_bytes(tmp_path) == before


def test_contexts_that_the_agent_is_not_shown_whole_are_warned_about(tmp_path: Path) -> None:
    """A text cut without a word would make its items look too hard."""
    env = TextQa(TextQaParams(context_chars=20))
    rows = [
        {"id": f"r{n}", "question": f"q{n}", "context": text, "answers": [f"oak {n}"]}
        for n, text in enumerate(["oak 0 and much more text", "shorter oak 1", *"xyz"])
    ]
    rows.append({**rows[0], "id": "r9", "question": "q9", "context": "long " * 5 + "oak 0"})
    path = tmp_path / "data/textqa/items.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    [warning] = look_at_items(params(), env, tmp_path)[1]
    assert warning.kind == "cut_context"
    assert warning.message.startswith("2 items have a context of more than 20 characters")
    assert "(1 of them have their answer only beyond)" in warning.message
    assert look_at_items(params(), TextQa(), tmp_path)[1] == []
