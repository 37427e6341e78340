"""Update: make the candidate of the selected edits.

    patch                      the edits are applied to the current skill
    rewrite_from_suggestions   the optimizer writes a whole document from the suggestions
    full_rewrite_minibatch     the one merged edit is a whole document

Protected regions survive byte for byte in every mode. Nothing is evaluated here. A candidate
that is not a well-formed document, or too long, is recorded with its faults and goes no
further; the text that the gate scores is the text that is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from msgspec import convert

from skilltrail.core.canon import text_digest
from skilltrail.core.tokens import count_tokens
from skilltrail.history.ask.blame import packed
from skilltrail.history.log import types
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run, State
from skilltrail.optimizers.protocol import StepView
from skilltrail.sandbox.choose import open_sandbox
from skilltrail.sandbox.own_tests import refused_by, run_test, test_key, wanted_tests
from skilltrail.skill.apply import TAG as APPLY
from skilltrail.skill.apply import Candidate, apply_edits
from skilltrail.skill.building import built
from skilltrail.skill.candidate import composed
from skilltrail.skill.edit import Edit, Patch
from skilltrail.skill.folder import files_of, is_script
from skilltrail.skill.rewrite import TAG as REWRITE
from skilltrail.skill.rewrite import rewrite


class Build(Protocol):
    """Makes a candidate; `frozen`: no change to the frontmatter."""

    def __call__(self, *, frozen: bool) -> Candidate: ...


@dataclass(frozen=True)
class Built:
    """A recorded candidate. `event` is the sequence number of its `candidate.built`.

    `rejected_before` is that of the verdict against the same text, which still holds.
    """

    candidate: Candidate
    faults: tuple[str, ...]
    patch: str
    event: int
    rejected_before: int | None = None

    @property
    def usable(self) -> bool:
        """True when it is a well-formed document that nobody has judged yet."""
        return self.candidate.changed and not self.faults and self.rejected_before is None

    @property
    def reason(self) -> str:
        """Why it is not usable, in words."""
        if self.rejected_before is not None:
            return f"the same text was rejected before (event {self.rejected_before})"
        return "; ".join(self.faults) if self.faults else "no edit took effect"


async def make_candidate(
    run: Run,
    state: State,
    view: StepView,
    merged: Patch | None,
    edits: Sequence[Edit],
    notes: Edit | None,
) -> Built:
    """Build and record the step's candidate in the run's update mode, notes included.

    Args:
        merged: the patch that `edits` were selected from; None when only notes are new.
    """
    mode, reply, rule = view.update_mode, None, REWRITE
    makes = run.params.skill.makes_references
    build: Build = partial(apply_edits, state.skill, ())
    if mode == "patch":
        build, rule = partial(apply_edits, state.skill, edits, references=makes), APPLY
    elif mode == "full_rewrite_minibatch" and edits:
        one = edits[0]
        build = partial(rewrite, state.skill, one.content, one.id, references=makes)
    elif mode == "rewrite_from_suggestions" and edits:
        answer = heard(run, await run.optimizer.rewrite(view, edits), **view.where)
        reply = answer.reply
        if answer.value is not None:
            # The text first stands in the event that follows, so that event names the edit.
            own = f"{run.history.next_seq}.0"
            build = partial(rewrite, state.skill, answer.value, own, references=makes)
    candidate, more = await with_params(run, build)
    if mode == "patch":
        candidate, tested = await with_scripts(run, candidate, edits)
        more |= tested
    if notes is not None:
        candidate = await built(partial(_noted, candidate, notes), next_one(run))
    return record_candidate(
        run,
        state,
        candidate,
        **view.where,
        patch=_patch_id(merged, notes),
        mode=mode,
        rule=rule,
        reply=reply,
        more=more,
    )


async def with_scripts(
    run: Run, candidate: Candidate, edits: Sequence[Edit]
) -> tuple[Candidate, dict[str, Any]]:
    """Return the candidate as `skill.scripts` has it, and what the event says of scripts.

    Scripts that edits change are first held against their tests; where one fails, no script
    changes, and the other edits stand.
    """
    if not run.params.skill.scripts or not any(is_script(edit.file) for edit in edits):
        return candidate, {}
    skill = run.params.skill
    apply = partial(
        apply_edits,
        candidate.parent,
        edits,
        frozen=skill.frozen,
        references=skill.makes_references,
    )
    candidate = await built(partial(apply, scripts=None), next_one(run))
    files, rows = files_of(candidate.text), []
    for test in wanted_tests(candidate):

        async def make(test: str = test) -> dict[str, Any]:
            return await run_test(open_sandbox(run.params.skill.sandbox), files, test)

        key = test_key(files, test)
        ran = (await run.rollouts.store.get_or_make("script", key, make)).value
        passed = ran["ending"] == "finished" and ran["exit"] == 0
        rows.append({"test": test, "passed": passed, "exit": ran["exit"], "key": key})
    refusal = refused_by(rows)
    if refusal is not None:
        candidate = await built(partial(apply, scripts=refusal), next_one(run))
    return candidate, {"scripts": "train"} | ({"script_tests": rows} if rows else {})


async def with_params(run: Run, build: Build) -> tuple[Candidate, dict[str, Any]]:
    """Return the candidate as `skill.frontmatter` has it, and the event's fields of that param
    and of `skill.references`, each where it decided."""
    setting = run.params.skill.frontmatter
    frozen = await built(partial(build, frozen=True), next_one(run))
    candidate = frozen
    if setting != "frozen":
        candidate = await built(partial(build, frozen=False), next_one(run))
    more = {"frontmatter": setting} if frozen.held else {}
    return candidate, more | ({"references": "train"} if candidate.freed else {})


def next_one(run: Run) -> str:
    """Return words for the candidate that is built next."""
    return f"the candidate of event {run.history.next_seq}"


def _noted(candidate: Candidate, notes: Edit) -> Candidate:
    return composed(candidate, apply_edits(candidate.text, [notes], owner=notes.target))


def record_candidate(
    run: Run,
    state: State,
    candidate: Candidate,
    *,
    epoch: int,
    step: int,
    patch: str,
    source: str = "step",
    mode: str = "patch",
    rule: str = APPLY,
    reply: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> Built:
    """Record a candidate with its faults; the whole text too, where a diff is no edit.

    `more` are further fields, of params and facts that decided.
    """
    before = rejected_before(run, state, text_digest(candidate.text), source)
    faults = candidate.faults + _too_long(run, candidate)
    event = run.tell(
        convert(
            {
                "epoch": epoch,
                "step": step,
                "source": source,
                "mode": mode,
                "parent": text_digest(candidate.parent),
                "candidate": text_digest(candidate.text),
                "results": [result.to_json() for result in candidate.results],
                "faults": faults,
                "diff": candidate.diff,
                "sources": packed(candidate.sources),
                "tokens": count_tokens(candidate.text),
                "rule": rule,
                "reply": reply,
                **({} if mode == "patch" else {"text": candidate.text}),
                **({} if more is None else more),
                **({} if before is None else {"rejected_before": before}),
            },
            types.CandidateBuilt,
        )
    )
    return Built(candidate, faults, patch, event.seq, before)


def rejected_before(run: Run, state: State, digest: str, source: str) -> int | None:
    """Return the event of the verdict against this text, where it holds for the current skill.

    It does for the skill that it was measured against, and under the rule `strict` for any
    whose mean is no lower. What is forced is not judged, so nothing holds it up.
    """
    found, rule = state.rejected.get(digest), run.gate_rule
    forced = source == "slow_update" and run.params.slow_update.mode == "force"
    if found is None or forced:
        return None
    then, now = rule.mean(found.scores), rule.mean(state.scores)
    holds = now is not None and then is not None and now >= then
    same = found.current == state.digest
    # Of several targets another one may be what stands in the way; cost is no mean.
    by_mean = rule.rule == "strict" and not rule.targets
    return found.event if same or (by_mean and holds) else None


def _patch_id(merged: Patch | None, notes: Edit | None) -> str:
    """Return the id of the patch that the candidate comes from: `p<seq>` of its event."""
    if merged is not None:
        return merged.id
    assert notes is not None
    return f"p{notes.id.split('.')[0]}"


def _too_long(run: Run, candidate: Candidate) -> tuple[str, ...]:
    """Return the fault of a candidate over the size limit; one that shrinks is let through."""
    most, tokens = run.params.max_skill_tokens, count_tokens(candidate.text)
    faults = _file_faults(candidate, run.params.skill.max_file_tokens)
    if not most or tokens <= most or tokens < count_tokens(candidate.parent):
        return faults
    return (*faults, too_long(tokens, most))


def _file_faults(candidate: Candidate, most: int) -> tuple[str, ...]:
    before, after = files_of(candidate.parent), files_of(candidate.text)
    if not most or len(before.keys() | after.keys()) == 1:
        return ()
    changed = [(p, t, before.get(p, "")) for p, t in after.items() if t != before.get(p, "")]
    return tuple(
        too_long(size, most, path)
        for path, text, was in changed
        if (size := count_tokens(text)) > most and size >= count_tokens(was)
    )


def too_long(tokens: int, most: int, path: str | None = None) -> str:
    """Return the fault of a document, or a file of it, of `tokens` where `most` are allowed."""
    told = f"{tokens} tokens are more than"
    if path is None:
        return f"{told} max_skill_tokens allows ({most})"
    return f"{path}: {told} skill.max_file_tokens allows ({most})"
