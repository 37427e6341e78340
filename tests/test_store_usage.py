"""Usage: what this dvc run paid for and what it reused, whatever ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from skilltrail.core.errors import FaultError, SkilltrailError, UsageError
from skilltrail.core.held import hold
from skilltrail.store.place import Place, dvc_run, find_place
from skilltrail.store.usage import Meter, read_usage

ROOT = Path(__file__).resolve().parents[1]
TOKENS = {"input": 10, "output": 2, "cached": 4}


def usage_of(state: Path, name: str = "usage.json") -> dict[str, Any]:
    data: dict[str, Any] = json.loads((state / name).read_text(encoding="utf-8"))
    return data


def test_train_and_evaluate_add_up(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path)
    with Meter(place, "train") as meter:
        meter.made("target", TOKENS, cost=0.5)
        meter.made("target", TOKENS, cost=0.25)
        meter.reused("target", TOKENS)
        meter.made("optimizer", {"input": 7}, cost=None)
        meter.failed("optimizer")
    with Meter(place, "evaluate") as meter:
        meter.made("target", TOKENS, cost=0.0)
    usage = usage_of(place.state)
    assert usage["train"]["target"] == {
        "made": 2,
        "reused": 1,
        "failed": 0,
        "tokens": {"input": 20, "output": 4},
        "tokens_reused": {"input": 10, "output": 2},
        "cost": 0.75,
    }
    assert usage["train"]["optimizer"]["cost"] is None
    assert usage["train"]["optimizer"]["failed"] == 1
    assert usage["evaluate"]["target"]["cost"] == 0.0
    assert usage["total"]["target"]["made"] == 3
    assert usage["total"]["optimizer"]["tokens"] == {"input": 7, "output": 0}
    assert usage["total"]["made"] == 4
    assert usage["total"]["reused"] == 1
    assert usage["total"]["cost"] is None


def test_costs_add_up_exactly_in_any_order(tmp_path: Path) -> None:
    meter = Meter(Place(tmp_path, tmp_path), "train")
    for cost in (0.1, 1e16, 0.2, -1e16):
        meter.made("target", {}, cost)
    assert meter.snapshot()["total"]["cost"] == 0.1 + 0.2


def test_train_begins_anew_and_evaluate_goes_on(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path)
    with Meter(place, "train") as meter:
        meter.made("target", TOKENS, 0.0)
    with Meter(place, "evaluate") as meter:
        meter.made("target", TOKENS, 0.0)
    assert usage_of(place.state)["train"]["target"]["made"] == 1
    with Meter(place, "evaluate"):
        pass
    assert usage_of(place.state)["evaluate"]["target"]["made"] == 0
    with Meter(place, "train"):
        pass
    assert usage_of(place.state)["total"]["made"] == 0


def test_what_another_dvc_run_counted_for_train_is_not_this_one_s(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path)
    with Meter(place, "train") as meter:
        meter.made("target", TOKENS, 0.0)
    usage = usage_of(place.state)
    usage["dvc_run"] = "123@456.00"
    (place.state / "usage.json").write_text(json.dumps(usage), encoding="utf-8", newline="\n")
    with Meter(place, "evaluate") as meter:
        meter.made("target", TOKENS, 0.0)
    assert usage_of(place.state)["total"]["made"] == 1


def test_an_experiment_in_a_workspace_of_its_own_keeps_its_own_file(tmp_path: Path) -> None:
    one = Place(tmp_path, tmp_path / "tmp1", "fair-bade")
    two = Place(tmp_path, tmp_path / "tmp2", "odd-lyre")
    with Meter(one, "train") as first, Meter(two, "train") as second:
        for _ in range(3):
            first.made("target", TOKENS, 0.0)
        second.made("target", TOKENS, 0.0)
    with Meter(two, "evaluate"):
        pass
    with Meter(one, "evaluate"):
        pass
    assert usage_of(one.state / "usage", "fair-bade.json")["total"]["made"] == 3
    assert usage_of(two.state / "usage", "odd-lyre.json")["total"]["made"] == 1
    assert usage_of(one.state)["total"]["made"] == 3


def test_an_experiment_in_the_main_workspace_writes_the_one_file(tmp_path: Path) -> None:
    Meter(Place(tmp_path, tmp_path, "fair-bade"), "train").flush()
    assert [path.name for path in (tmp_path / ".skilltrail").iterdir()] == ["usage.json"]


def test_threads_lose_no_count(tmp_path: Path) -> None:
    meter = Meter(Place(tmp_path, tmp_path), "train")

    def count() -> None:
        for _ in range(500):
            meter.made("target", TOKENS, 0.5)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    meter.flush()
    total = usage_of(tmp_path / ".skilltrail")["total"]
    assert (total["made"], total["tokens"]["input"], total["cost"]) == (2000, 20_000, 1000.0)


def test_a_killed_run_leaves_its_counts(tmp_path: Path) -> None:
    script = (
        "import os, signal, time, sys; from pathlib import Path\n"
        "from skilltrail.store.place import Place; from skilltrail.store.usage import Meter\n"
        "root = Path(sys.argv[1]); meter = Meter(Place(root, root), 'train')\n"
        "for _ in range(8): time.sleep(0.1); meter.made('target', {}, 0.0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, check=False)
    assert usage_of(tmp_path / ".skilltrail")["train"]["target"]["made"] >= 4


def test_a_half_written_or_foreign_file_is_begun_anew(tmp_path: Path) -> None:
    state = tmp_path / ".skilltrail"
    state.mkdir()
    for text in ('{"train": {', "[]", "{}", "", "[" * 2000, '{"train": 1}', "\x00"):
        (state / "usage.json").write_text(text, encoding="utf-8", newline="\n")
        with Meter(Place(tmp_path, tmp_path), "evaluate"):
            pass
        assert usage_of(state)["total"]["made"] == 0


def test_a_damaged_file_is_named_with_the_way_on(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    assert read_usage(path) is None
    Meter(Place(tmp_path, tmp_path), "train").flush()
    whole = json.loads((tmp_path / ".skilltrail/usage.json").read_bytes())
    path.write_text(json.dumps(whole), encoding="utf-8")
    assert read_usage(path) == whole
    damages: list[object] = [{**whole, "total": []}, {**whole, "train": {"target": 3}}, [whole]]
    texts = [
        *map(json.dumps, damages),
        json.dumps(whole)[:40],
        "[" * 2000,
        "",
        '{"total": 1e999}',
    ]
    for text in texts:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FaultError, match=r"usage\.json cannot be read.*Delete the file"):
            read_usage(path)


def test_what_killed_writers_left_beside_the_counts_goes(tmp_path: Path) -> None:
    meter = Meter(Place(tmp_path, tmp_path), "train")
    left = tmp_path / ".skilltrail/.usage.json.123.tmp"
    left.write_bytes(b"{")
    held = tmp_path / ".skilltrail/.usage.json.456-ab.tmp"
    descriptor = hold(held)  # a writer that is alive
    meter.flush()
    assert not left.exists()
    assert held.exists()
    os.close(descriptor)
    meter.flush()
    assert [path.name for path in (tmp_path / ".skilltrail").iterdir()] == ["usage.json"]


def test_an_unwritable_place_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".skilltrail").write_bytes(b"")
    with pytest.raises(SkilltrailError, match="Cannot write"):
        Meter(Place(tmp_path, tmp_path), "train")


def test_the_live_state_lies_in_the_main_repository(tmp_path: Path) -> None:
    main, temporary = tmp_path / "main", tmp_path / "main" / ".dvc" / "tmp" / "exps" / "tmp1"
    for folder in (main, temporary):
        folder.mkdir(parents=True)
        (folder / "dvc.yaml").write_bytes(b"")
    (temporary / "data").mkdir()
    environ = {"DVC_ROOT": str(main), "DVC_EXP_NAME": "fair-bade"}
    place = find_place(temporary / "data", environ)
    assert (place.root, place.workspace) == (main, temporary)
    assert place.state == main / ".skilltrail"
    assert place.is_temporary
    assert not find_place(main, environ).is_temporary
    assert find_place(temporary / "data", {}) == Place(temporary, temporary)


def test_outside_a_project_the_error_says_where_to_go(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="skilltrail init --data FILE"):
        find_place(tmp_path, {})
    with pytest.raises(UsageError, match="Unset DVC_ROOT"):
        find_place(tmp_path, {"DVC_ROOT": str(tmp_path / "gone")})


def test_stages_of_one_dvc_command_share_a_name_and_those_of_another_do_not(
    tmp_path: Path,
) -> None:
    dvc = tmp_path / "dvc"
    dvc.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\n"
        "for _ in range(2): subprocess.run(sys.argv[1], shell=True, check=True)\n",
        encoding="utf-8",
        newline="\n",
    )
    dvc.chmod(0o755)
    ask = f"{sys.executable} -c 'from skilltrail.store.place import dvc_run; print(dvc_run())'"
    names = [
        subprocess.run(
            [str(dvc), ask], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, encoding="utf-8",
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert names[0][0] == names[0][1] != "None"
    assert names[1][0] == names[1][1] != names[0][0]
    assert dvc_run() is None or dvc_run() == dvc_run()
