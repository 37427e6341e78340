"""What a person sees while a run goes on: pace, reuse, cost, time left; never a made-up 0."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from toy_world import toy_params

from skilltrail.core.score import Score
from skilltrail.method.run import State
from skilltrail.optimizers.protocol import StepRecord
from skilltrail.runtime.call_estimate import Size, most_rollouts
from skilltrail.runtime.progress import (
    Progress,
    format_cost,
    format_pace,
    format_time,
    format_usd,
)
from skilltrail.store.place import Place
from skilltrail.store.usage import Meter, Tally

ROOT = Path(__file__).resolve().parents[1]
TOKENS = {"input": 10, "output": 2}


def counts(made: int = 0, cost: float | None = 0.0, **more: int) -> dict[str, Tally]:
    return {"target": Tally.of({"made": made, "cost": cost, **more})}


def test_calls_are_told_with_their_rate_and_reuse_beside() -> None:
    assert format_pace(counts(made=30, reused=12), None, 10.0) == (
        "30 made (3.0/s), 12 reused, cost $0.00"
    )
    assert format_pace(counts(made=1, failed=2), None, 1.0).startswith(
        "1 made (1.0/s), 0 reused, 2 failed"
    )


def test_what_is_reused_costs_nothing_and_says_nothing_of_cost_or_time() -> None:
    assert format_pace(counts(reused=40), 100, 3.0) == "0 made, 40 reused"
    assert format_pace({}, 100, 3.0) == "0 made, 0 reused"


def test_the_time_left_is_a_bound_at_the_pace_of_rollouts() -> None:
    both = counts(made=20) | {"optimizer": Tally.of({"made": 20})}
    assert format_pace(both, 60, 10.0).endswith("at most 0:30 left")
    assert format_pace({"optimizer": Tally.of({"made": 5})}, 60, 10.0).endswith("cost $0.00")


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        ({"target": 0.0}, "cost $0.00"),
        ({"target": 1.5, "optimizer": 0.25}, "cost $1.75"),
        ({"target": None}, "cost unknown"),
        ({"target": None, "optimizer": None}, "cost unknown"),
        ({"target": 0.5, "optimizer": None}, "cost $0.50 and unknown for optimizer"),
    ],
)
def test_an_unknown_price_is_said_and_never_counted_as_nothing(
    costs: Mapping[str, float | None], told: str
) -> None:
    made = {role: Tally.of({"made": 1, "cost": cost}) for role, cost in costs.items()}
    assert format_cost(made | {"judge": Tally.of({"cost": None})}) == told


def test_small_amounts_keep_their_digits() -> None:
    amounts = (Fraction(0), Fraction(1, 10**6), Fraction("0.0123"), Fraction("12.345"))
    assert [format_usd(usd) for usd in amounts] == ["$0.00", "<$0.0001", "$0.0123", "$12.35"]


def test_durations_are_read_at_a_glance() -> None:
    assert [format_time(s) for s in (0, 0.1, 59.5, 61, 3600, 36_061)] == [
        "0:00", "0:01", "1:00", "1:01", "1:00:00", "10:01:01",
    ]  # fmt: skip


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def record(step: int, **made: int) -> StepRecord:
    return StepRecord(epoch=1, step=step, verdict="rejected", counts=made)


def state() -> State:
    return State(best_version=0, best_scores={"one": Score.scored(0.5)})


def test_plain_lines_come_at_times_and_the_bound_falls_with_what_gates_save(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    with Meter(Place(tmp_path, tmp_path), "train") as meter, Progress("train", clock) as shown:
        shown.read(meter)
        shown.expect(100, gate_items=20, repeats=2)
        for second in range(1, 13):
            clock.now = float(second)
            meter.made("target", TOKENS, 0.25)
            shown.rollout()
        shown.step(record(1, judged=5, saved=15, applied=2), state())
        shown.step(record(2), state())
        clock.now = 30.0
        meter.reused("target", TOKENS)
        shown.rollout()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "train: 10 of at most 100 rollouts, 10 made (1.0/s), 0 reused, cost $2.50, "
        "at most 1:30 left",
        "step 1 (epoch 1): rejected, 2 edits, best 0.500 at v0, "
        "15 items skipped by early stopping",
        "step 2 (epoch 1): rejected, 0 edits, best 0.500 at v0",
        # 30 not asked for by the first gate, 40 by the second.
        "train: 13 of at most 30 rollouts, 12 made (0.4/s), 1 reused, cost $3.00, "
        "at most 0:43 left",
        "train: 12 calls made, 1 reused, cost $3.00",
    ]


def test_a_step_whose_edits_were_all_refused_says_where_the_reason_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Meter(Place(tmp_path, tmp_path), "train") as meter, Progress("train") as shown:
        shown.read(meter)
        shown.step(record(1, replies_rejected=3, patches=3), state())
        shown.step(record(2, replies_rejected=1, patches=3, applied=2), state())
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("what 3 optimizer replies proposed was refused: `skilltrail log`")
    assert "refused" not in second


def test_the_time_spent_on_what_is_reused_does_not_slow_the_pace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    with Meter(Place(tmp_path, tmp_path), "train") as meter, Progress("train", clock) as shown:
        shown.read(meter)
        shown.expect(40)
        for second in (3.0, 9.0):
            clock.now = second
            meter.reused("target", TOKENS)
            shown.rollout()
        for second in range(10, 21):
            clock.now = float(second)
            meter.made("target", TOKENS, 0.0)
            shown.rollout()
    assert (
        "13 of at most 40 rollouts, 11 made (1.0/s), 2 reused, cost $0.00, at most 0:27 left"
        in (capsys.readouterr().err)
    )


def test_no_time_left_is_told_before_the_pace_means_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model takes 20 s to load and answers twice a second; four hours are never told."""
    clock, file = Clock(), tmp_path / "progress.json"
    kept = []
    with Meter(Place(tmp_path, tmp_path), "train") as meter, Progress("train", clock) as shown:
        shown.read(meter)
        shown.keep_in(file)
        shown.expect(720)
        for number in range(100):
            clock.now = 20.0 + number / 2
            meter.made("target", TOKENS, 0.0)
            shown.rollout()
            kept.append(json.loads(file.read_text("utf-8"))["left_s"])
    told = [line for line in capsys.readouterr().err.splitlines() if "at most" in line]
    assert "left" not in told[0]
    assert told[-1].endswith("at most 7:54 left")
    assert kept[0] is None
    shown_s = [left_s for left_s in kept if left_s is not None]
    assert max(shown_s) < 2 * 720 / 2 * 1.05, "never much more than twice what it takes"


def test_a_first_rollout_is_no_pace_however_fast_it_was() -> None:
    assert "left" not in format_pace(counts(made=4), 100, 60.0)
    assert format_pace(counts(made=5), 100, 60.0).endswith("at most 20:00 left")
    assert "left" not in format_pace(counts(made=5), 100, 60.0, 31.0)


def test_a_run_that_only_reuses_ends_with_no_word_of_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Meter(Place(tmp_path, tmp_path), "evaluate") as meter, Progress("evaluate") as shown:
        shown.read(meter)
        meter.reused("target", TOKENS)
        shown.rollout()
    assert capsys.readouterr().err == "evaluate: 0 calls made, 1 reused\n"


def test_no_training_asks_for_more_rollouts_than_are_expected() -> None:
    params = toy_params(epochs=3, batch_size=4, gate={"repeats": 2})
    assert most_rollouts(params, Size(8, 8, 0)) == 8 * 2 + 3 * 8 + 6 * 8 * 2


SHOW = """
import sys, time
from pathlib import Path
from skilltrail.runtime.progress import Progress
from skilltrail.store.place import Place
from skilltrail.store.usage import Meter
here = Path(sys.argv[1])
with Progress("train") as shown, Meter(Place(here, here), "train") as meter:
    shown.read(meter)
    shown.expect(8)
    for _ in range(8):
        time.sleep(0.06)
        meter.made("target", {"input": 1, "output": 1}, None)
        shown.rollout()
"""


@pytest.mark.parametrize("colours", [True, False])
def test_a_terminal_gets_one_live_line_and_colours_unless_it_wants_none(
    tmp_path: Path, colours: bool
) -> None:
    ours, theirs = pty.openpty()
    environ = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    environ |= {"TERM": "xterm-256color", "COLUMNS": "120"}
    environ |= {} if colours else {"NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", SHOW, str(tmp_path)], cwd=ROOT, env=environ, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait() == 0
    assert b"8/8" in seen
    assert b"cost unknown" in seen
    assert b"at most 0:0" in seen
    assert seen.rstrip().endswith(b"train: 8 calls made, 0 reused, cost unknown")
    assert (b"\x1b[3" in seen or b"\x1b[38" in seen) is colours


def test_the_time_left_is_never_negative_and_an_end_in_calls_is_the_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What gates skip lets a run with `stop.calls` go on; it ends no earlier for it."""
    clock = Clock()
    with Meter(Place(tmp_path, tmp_path), "train") as meter, Progress("train", clock) as shown:
        shown.read(meter)
        shown.expect(100, most=30, gate_items=20)
        for second in range(1, 36):  # five more than the end: they were in flight
            clock.now = 2.0 * second
            meter.made("target", TOKENS, 0.0)
            shown.rollout()
            if second % 10 == 0:
                shown.step(record(second // 10, judged=2, saved=18), state())
    told = [line for line in capsys.readouterr().err.splitlines() if "at most" in line]
    assert told[0] == (
        "train: 5 of at most 30 rollouts, 5 made (0.5/s), 0 reused, cost $0.00, "
        "at most 0:50 left"
    )
    assert told[-1].endswith("at most 0:00 left")
    assert not any("-" in line for line in told)


def test_the_live_page_reads_the_same_from_a_file_that_ends_with_the_work(
    tmp_path: Path,
) -> None:
    clock, file = Clock(), tmp_path / "progress.json"
    with Meter(Place(tmp_path, tmp_path), "train") as meter, Progress("train", clock) as shown:
        shown.read(meter)
        shown.keep_in(file)
        shown.expect(8)
        assert json.loads(file.read_text("utf-8")) == {"done": 0, "total": 8, "left_s": None}
        for second in range(1, 7):
            clock.now = float(second)
            meter.made("target", TOKENS, 0.0)
            shown.rollout()
        assert json.loads(file.read_text("utf-8")) == {"done": 6, "total": 8, "left_s": 2.0}
    assert not file.exists()
