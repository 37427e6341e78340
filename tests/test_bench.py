"""What `make bench` says of calls is counted at the stub, and holds for small jobs too."""

from __future__ import annotations

from benchmarks.bench_peers import Job, again_and_wasted, extra_after_kill, usual_calls

JOB = Job(items=8, workers=4)


def test_a_finished_job_makes_no_call_again_and_a_changed_one_only_what_is_new() -> None:
    assert usual_calls(JOB, "ours") == JOB.calls
    assert again_and_wasted(JOB, "ours") == (0, 0)


def test_the_bare_sdk_makes_all_calls_again() -> None:
    assert again_and_wasted(JOB, "bare_sdk") == (JOB.calls, 2 * JOB.items)


def test_a_kill_costs_at_most_what_was_in_flight() -> None:
    extra = extra_after_kill(JOB, "ours", 0.35, JOB.calls)
    assert 0 <= extra <= JOB.workers
