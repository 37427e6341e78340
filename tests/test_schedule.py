"""The edit budget and the batches are functions of the step number."""

from hypothesis import given
from hypothesis import strategies as st

from skilltrail.method.schedule import edit_budget, plan_epoch


def budgets(
    schedule: str, lr: int, lr_min: int, total: int, warmup: int = 0
) -> list[int | None]:
    return [
        edit_budget(
            step, schedule=schedule, lr=lr, lr_min=lr_min, total_steps=total, warmup=warmup
        )
        for step in range(1, total + 1)
    ]


def test_constant_keeps_lr() -> None:
    assert budgets("constant", 4, 1, 5) == [4, 4, 4, 4, 4]


def test_linear_falls_from_lr_to_lr_min_and_halves_round_up() -> None:
    assert budgets("linear", 4, 1, 4) == [4, 3, 2, 1]
    assert budgets("linear", 4, 1, 3) == [4, 3, 1]  # 2.5 in the middle rounds up


def test_cosine_falls_slowly_then_fast_then_slowly() -> None:
    assert budgets("cosine", 8, 2, 5) == [8, 7, 5, 3, 2]
    assert budgets("cosine", 4, 1, 3) == [4, 3, 1]  # cos(pi / 2) is 0 on every CPU


def test_one_step_has_lr() -> None:
    assert budgets("cosine", 6, 1, 1) == [6]


def test_none_has_no_cap() -> None:
    assert budgets("none", 4, 1, 2) == [None, None]


def test_warm_up_rises_to_lr_and_the_schedule_follows() -> None:
    assert budgets("constant", 4, 1, 5, warmup=4) == [1, 2, 3, 4, 4]
    assert budgets("linear", 4, 1, 5, warmup=2) == [2, 4, 3, 2, 1]


@given(
    st.sampled_from(["linear", "cosine"]),
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(2, 60),
)
def test_a_decaying_budget_starts_at_lr_never_rises_and_ends_at_lr_min(
    schedule: str, a: int, b: int, total: int
) -> None:
    lr, lr_min = max(a, b), min(a, b)
    got = [b for b in budgets(schedule, lr, lr_min, total) if b is not None]
    assert (got[0], got[-1]) == (lr, lr_min)
    assert got == sorted(got, reverse=True)


@given(st.integers(1, 50), st.integers(1, 12), st.integers(1, 4), st.integers(0, 5))
def test_an_epoch_covers_every_item_exactly_once(
    n: int, batch_size: int, accumulation: int, seed: int
) -> None:
    ids = [f"item-{i}" for i in range(n)]
    steps = plan_epoch(
        ids, seed=seed, epoch=2, batch_size=batch_size, accumulation=accumulation
    )
    assert sorted(id for step in steps for id in step.items) == sorted(ids)
    per_epoch = -(-n // (batch_size * accumulation))
    assert [step.step for step in steps] == list(range(per_epoch + 1, 2 * per_epoch + 1))


def test_batches_do_not_depend_on_the_order_of_the_file_and_differ_between_epochs() -> None:
    ids = [f"i{n}" for n in range(20)]
    one = plan_epoch(ids, seed=1, epoch=1, batch_size=5, accumulation=1)
    assert one == plan_epoch(ids[::-1], seed=1, epoch=1, batch_size=5, accumulation=1)
    two = plan_epoch(ids, seed=1, epoch=2, batch_size=5, accumulation=1)
    assert [s.items for s in one] != [s.items for s in two]


def test_accumulation_pools_batches_of_the_same_size() -> None:
    steps = plan_epoch(list("abcdefgh"), seed=3, epoch=1, batch_size=2, accumulation=2)
    assert [[len(batch) for batch in step.batches] for step in steps] == [[2, 2], [2, 2]]
