"""The trial of `rules` on sets of its own: its items, its runs' names, its numbers by hand."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from methods_world import run_method
from null_store import NullStore

from benchmarks.trial import SIZES, bouts_of, items
from benchmarks.trial_sets import SETS
from benchmarks.trial_table import Trained, adjusted, gain, gap, markdown, trained_of
from skilltrail.history.ask.evaluations import HeldOut


def made(
    seed: int, chosen: Mapping[str, Fraction], best: Mapping[str, Fraction], name: str = "x"
) -> Trained:
    first = dict.fromkeys(best, Fraction(0))
    test = HeldOut("hard", 0.0, "items", best, first)
    return Trained(name, seed, 2, 3, "epochs", 20, 8, 50, dict(chosen), chosen, test)


def rights(count: int, of: int, prefix: str) -> dict[str, Fraction]:
    return {f"{prefix}{n}": Fraction(n < count) for n in range(of)}


@pytest.mark.parametrize("name", SETS)
def test_every_set_answers_its_questions_with_words_of_its_texts(name: str) -> None:
    for item in items(name, sum(SIZES.values())):
        assert all(answer in item["context"] for answer in item["answers"])


def test_a_success_and_a_failure_are_added_to_each_share() -> None:
    centre, variance = adjusted([Fraction(1)] * 8)
    assert centre == pytest.approx(0.9)
    assert variance == pytest.approx(0.9 * 0.1 / 10)


def test_the_gap_is_what_the_split_that_chose_says_more_and_sets_count_alike() -> None:
    ten = made(1, rights(10, 10, "s"), rights(8, 10, "t"))
    small = made(1, rights(4, 4, "s"), rights(4, 4, "t"), "y")
    assert gap([[ten]])[0] == pytest.approx(0.2)
    assert gap([[ten], [small]])[0] == pytest.approx(0.1)
    value, low, high = gap([[ten], [ten]])
    assert low < value < high
    assert high - low < gap([[ten]])[2] - gap([[ten]])[1]  # twice the items


def test_equal_seeds_say_what_one_says() -> None:
    runs = [made(seed, rights(5, 10, "s"), rights(8, 10, "t")) for seed in (1, 2)]
    assert gain(runs) == gain(runs[:1])
    assert gap([runs]) == gap([runs[:1]])


def test_runs_of_other_code_or_settings_have_other_names() -> None:
    names = [
        bout.name
        for commit, asked in (("a", ()), ("b", ()), ("a", ("lr=8",)))
        for bout in bouts_of(commit, ["default", "match"], [42, 43], asked)
    ]
    assert len(set(names)) == len(names) == 12
    (match,) = bouts_of("a", ["match"], [7], ["lr=8"])
    assert match.changes == ("data.split_dir=data/trial-match", "lr=8", "seed=7")


def test_the_table_has_a_row_for_each_run_and_one_for_its_set(tmp_path: Path) -> None:
    runs = []
    for seed in (1, 2):
        done = run_method(tmp_path / str(seed), NullStore(), "skillopt", seed=seed)
        test = HeldOut("hard", 0.5, "4 items", rights(3, 4, "t"), rights(1, 4, "t"))
        runs.append(trained_of("toy", seed, done.recorder.events, test))
        assert runs[-1].accepted == done.events("run.finished")[0]["accepted"]
    lines = markdown(runs).splitlines()
    assert [line.split(" | ")[1] for line in lines[2:5]] == ["1", "2", "2 seeds"]
    assert "0.250 → 0.750 | +0.500" in lines[4]
    assert lines[-1].startswith("Selection − test, sets: 1, runs: 2: ")
