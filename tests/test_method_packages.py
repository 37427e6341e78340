"""Whole runs of rivals against the public packages: same inputs, same draws, same decisions.

The packages are extras of the tests (`pip install "skilltrail[rivals]"`); where one is not
installed its test is skipped. What differs by choice stands in each module's docstring.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from methods_world import WORD, prompted, run_method
from null_store import NullStore
from toy_world import WORDS, ToyOptimizer, ToyRun, items_of

from skilltrail.method import schedule
from skilltrail.methods import registry
from skilltrail.methods.draws import Draws
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.skill.edit import Edit, Patch

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look into the network
IDS = {split: [item.id for item in items_of(split)] for split in ("train", "selection")}


def known_in(text: str) -> set[str]:
    return {word for word, _ in WORD.findall(text) if word}


def word_of(id: str) -> str:
    return id.rpartition("-")[2]


def injected(monkeypatch: pytest.MonkeyPatch, method: str, draws: Draws) -> None:
    """Let a method draw by `draws`."""
    rival = registry.RIVALS[method]
    steps = rival.steps

    def drawing(run: Any, state: Any) -> Any:
        return steps(run, state, draws)  # type: ignore[call-arg]

    changed = registry.Method(rival.tag, drawing, rival.end, rival.require)
    monkeypatch.setattr(registry, "RIVALS", {**registry.RIVALS, method: changed})


# --- GEPA ---------------------------------------------------------------------------------


class OneWord(ToyOptimizer):
    """Teaches the first word that failed, and names the step, so that no two documents are one
    (which we measure once, and the package twice); some forget the first word they knew."""

    async def reflect(self, view: StepView) -> Answer:
        failed = [o for o in view.observations if o.score.hard == 0]
        edits = [
            Edit("append", content=f"- know {o.item.input['word']}", items=(o.item.id,))
            for o in failed[:1]
        ]
        edits.append(Edit("append", content=f"- step {view.step}"))
        first = view.skill.split("\n")[2]
        if len(known_in(view.skill)) % 3 == 0:
            edits.append(Edit("delete", target=first))
        return Answer([Patch("failure", tuple(o.item.id for o in failed), tuple(edits))])


@dataclass
class Lots:
    """A `random.Random` that draws from a list by our lots; `step` is the one of ours."""

    seed: int
    step: int = 0

    def choice(self, listed: Sequence[int]) -> int:
        self.step += 1
        return listed[Draws(self.seed).below(len(listed), self.step, "parent")]


@dataclass
class Batches:
    """Our minibatches in turn."""

    steps: list[list[int]]
    at: int = 0

    def next_minibatch_ids(self, loader: Any, state: Any) -> list[int]:
        self.at += 1
        return self.steps[self.at - 1]


def test_gepa_chooses_accepts_and_keeps_as_the_package_does(tmp_path: Path) -> None:
    gepa = pytest.importorskip("gepa", reason='pip install "skilltrail[rivals]"')
    selector = pytest.importorskip("gepa.strategies.candidate_selector")
    # Larger pools it draws from in the order of a hash set of numbers, which is no rule.
    settings = {"epochs": 5, "seed": 5, "methods": {"gepa": {"minibatch": 2, "merges": 0}}}
    ours = run_method(tmp_path, NullStore(), "gepa", optimizer=OneWord(), **settings)
    steps = [
        [IDS["train"].index(id) for id in step.items]
        for epoch in range(1, 6)
        for step in schedule.plan_epoch(
            IDS["train"], seed=5, epoch=epoch, batch_size=2, accumulation=1
        )
    ]
    theirs: list[Any] = []

    class Adapter:
        propose_new_texts = None

        def evaluate(self, batch: Any, candidate: Any, capture_traces: bool = False) -> Any:
            known = known_in(candidate["skill"])
            scores = [float(word in known) for word in batch]
            return gepa.EvaluationBatch(list(batch), scores, list(batch))

        def make_reflective_dataset(self, candidate: Any, batch: Any, names: Any) -> Any:
            rows = zip(batch.trajectories, batch.scores, strict=True)
            return {"skill": [{"word": word, "score": score} for word, score in rows]}

    def propose(candidate: Any, data: Any, names: Any) -> dict[str, str]:
        text, failed = candidate["skill"], [r["word"] for r in data["skill"] if not r["score"]]
        lines = text.rstrip("\n").split("\n")
        gone = [lines[2]] if len(known_in(text)) % 3 == 0 else []
        more = [*(f"- know {word}" for word in failed[:1]), f"- step {len(theirs)}"]
        return {"skill": "".join(f"{one}\n" for one in [*lines, *more] if one not in gone)}

    result = gepa.optimize(
        {"skill": "# Trees\n\n- know ash\n"},
        list(WORDS),
        list(WORDS),
        adapter=Adapter(),
        custom_candidate_proposer=propose,
        candidate_selection_strategy=selector.ParetoCandidateSelector(Lots(5)),
        batch_sampler=Batches(steps),
        max_metric_calls=10**6,
        stop_callbacks=[lambda state: state.i + 1 >= len(steps)],
        callbacks=[SimpleNamespace(on_candidate_selected=lambda event: theirs.append(event))],
        logger=SimpleNamespace(log=lambda *said: None),
    )
    parents = [e["parents"][0]["version"] for e in ours.events("parents.chosen")]
    assert [event["candidate_idx"] for event in theirs] == parents
    texts = [candidate["skill"] for candidate in result.candidates]
    assert len(texts) > 3
    assert [version_of(ours, n) for n in range(len(texts))] == [known_in(t) for t in texts]
    assert len(ours.events("skill.versioned")) == len(texts)
    made = [
        parent
        for parent, end in zip(parents, ours.events("step.ended"), strict=True)
        if end["result"] == "accepted"
    ]
    assert [one[0] for one in result.parents[1:]] == made


def version_of(done: ToyRun, number: int) -> set[str]:
    from skilltrail.history.log.replay import versions

    return known_in(versions(done.recorder.events)[number].text)


# --- bootstrap and MIPRO: DSPy ------------------------------------------------------------


@dataclass(frozen=True)
class AsDspy(Draws):
    """Draws as DSPy's bootstrap does: set n by `random.Random(n - 1)`."""

    def order(self, ids: Sequence[str], step: int, what: str) -> list[str]:
        if what != "shuffle":
            return super().order(ids, step, what)
        order = list(ids)
        random.Random(step - 3).shuffle(order)
        return order

    def below(self, n: int, step: int, what: str) -> int:
        return random.Random(step - 3).randint(1, n) - 1 if what == "size" else 0


def dspy_program(known: str) -> tuple[Any, Any]:
    """Return a program over a scripted model that knows the words of `known` and of its
    demonstrations, and the model."""
    dspy = pytest.importorskip("dspy", reason='pip install "skilltrail[rivals]"')

    class Scripted(dspy.BaseLM):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(model="scripted", cache=False)

        def forward(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
            *before, last = [str(one["content"]) for one in messages]
            word = re.findall(r"\[\[ ## word ## \]\]\n(\w+)", last)[-1]
            shown = {w for m in before for w in re.findall(r"\[\[ ## answer ## \]\]\n(\w+)", m)}
            answer = word if word in known_in(known) | shown else "none"
            text = f"[[ ## answer ## ]]\n{answer}\n\n[[ ## completed ## ]]"
            message = SimpleNamespace(content=text, tool_calls=None)
            choice = SimpleNamespace(message=message, finish_reason="stop")
            return SimpleNamespace(choices=[choice], usage={}, model="scripted")

    return dspy.Predict("word -> answer"), Scripted()


def examples(split: str) -> list[Any]:
    import dspy

    return [
        dspy.Example(id=id, word=word_of(id), answer=word_of(id)).with_inputs("word")
        for id in IDS[split]
    ]


def test_bootstrap_shows_and_keeps_what_the_package_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without labels, for there the teachers differ: see the module's docstring."""
    seed = "# Trees\n\n- know ash\n- know elm\n- know oak\n- know yew\n"
    program, model = dspy_program(seed)
    import dspy
    from dspy.teleprompt import BootstrapFewShotWithRandomSearch

    with dspy.context(lm=model):
        search = BootstrapFewShotWithRandomSearch(
            metric=lambda example, said, trace=None: example.answer == said.answer,
            max_bootstrapped_demos=3,
            max_labeled_demos=0,
            num_candidate_programs=6,
            num_threads=1,
        )
        best = search.compile(program, trainset=examples("train"), valset=examples("selection"))
    made = {one["seed"]: one for one in best.candidate_programs}
    theirs = [[demo["word"] for demo in made[n]["program"].demos] for n in range(-1, 6)]
    injected(monkeypatch, "bootstrap", AsDspy(42))
    sizes = {"candidates": 6, "max_bootstrapped": 3, "max_labelled": 0}
    ours = run_method(
        tmp_path, NullStore(), "bootstrap", seed_skill=seed, methods={"bootstrap": sizes}
    )
    proposed = [
        [word_of(edit["items"][0]) for edit in event["edits"]]
        for event in ours.events("patch.proposed")[1:]  # the first is labels only: none
    ]
    assert proposed == theirs
    assert len({tuple(one) for one in theirs}) > 3


def test_mipro_tries_scores_and_measures_what_the_package_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dspy = pytest.importorskip("dspy", reason='pip install "skilltrail[rivals]"')
    package = pytest.importorskip("dspy.teleprompt.mipro_optimizer_v2")
    rng = random.Random(9)

    @dataclass(frozen=True)
    class Minibatches(Draws):
        def sample(self, ids: Sequence[str], most: int, step: int, what: str) -> list[str]:
            if what != "fitness" or most >= len(ids):
                return super().sample(ids, most, step, what)
            return [ids[at] for at in rng.sample(range(len(ids)), most)]

    injected(monkeypatch, "mipro", Minibatches(9))
    settings = {
        "proposals": 4, "sets": 4, "trials": 12, "minibatch": 3, "full_every": 3,
        "max_bootstrapped": 2, "max_labelled": 3,
    }  # fmt: skip
    ours = run_method(
        tmp_path,
        NullStore(),
        "mipro",
        seed=9,
        methods={"mipro": settings},
        gate={"prefer_shorter": False},
        seed_skill="# Trees\n\n- know ash\n- know elm\n",
    )
    documents, sets = space_of(ours)
    program = dspy.Predict("word -> answer")
    asked: list[tuple[list[str], float]] = []

    def evaluate(candidate: Any, devset: Any, **told: Any) -> Any:
        known = known_in(candidate.signature.instructions)
        known |= {demo["word"] for demo in candidate.demos}
        score = 100 * sum(word_of(id) in known for id in devset) / len(devset)
        asked.append((list(devset), score))
        return SimpleNamespace(score=score)

    search = package.MIPROv2(
        metric=None, auto=None, num_candidates=4, prompt_model=1, task_model=1
    )
    search.rng, search.log_dir, search.verbose, search.track_stats = (
        random.Random(9),
        None,
        0,
        1,
    )
    search.prompt_model_total_calls = search.total_calls = 0
    best = search._optimize_prompt_parameters(
        program.deepcopy() if not documents else with_text(program, documents[0]),
        {0: documents},
        {0: [[{"word": word} for word in words] for words in sets]},
        evaluate,
        IDS["selection"],
        settings["trials"],
        True,
        settings["minibatch"],
        settings["full_every"],
        9,
    )
    theirs = [
        (log["0_predictor_instruction"], log["0_predictor_demos"], log["mb_score"] / 100)
        for _, log in sorted(best.trial_logs.items())
        if "mb_score" in log
    ]
    tried = trials_of(ours)
    assert [one[:3] for one in tried if not one[3]] == [pytest.approx(one) for one in theirs]
    fulls = [
        log["full_eval_score"] / 100
        for number, log in sorted(best.trial_logs.items())
        if "full_eval_score" in log and number > 1
    ]
    assert [one[2] for one in tried if one[3]] == [pytest.approx(one) for one in fulls]
    assert len(fulls) == 4
    assert float(ours.state.best_mean or 0) == pytest.approx(best.score / 100)


def with_text(program: Any, text: str) -> Any:
    made = program.deepcopy()
    made.signature = made.signature.with_instructions(text)
    return made


def space_of(done: ToyRun) -> tuple[list[str], list[list[str]]]:
    """Return the documents and the sets of demonstrations that a search chose from."""
    events = done.recorder.events
    seed = events[0].data["seed_skill"]["text"]
    texts = [seed]
    sets: list[list[str]] = [[]]
    for event in events:
        if event.type == "rollouts.scored" and event.data["purpose"] == "fitness":
            break
        if event.type != "patch.proposed":
            continue
        edits = event.data["edits"]
        if edits and edits[0]["op"] == "rewrite":
            text = edits[0]["content"]
            texts += [text] if text not in texts else []
        elif edits:
            sets.append([word_of(edit["items"][0]) for edit in edits])
    return texts, sets


def trials_of(done: ToyRun) -> list[tuple[int, int, float, bool]]:
    """Return each trial: document, set, score, and whether it was in full."""
    found, chosen = [], (0, 0)
    for event in done.recorder.events:
        if event.type == "parents.chosen" and event.data["rule"].startswith("tpe/"):
            one, two = re.findall(r"\d+", event.data["reason"])
            chosen = int(one), int(two)
        if event.type == "rollouts.scored" and event.data["purpose"] == "fitness":
            full = len(event.data["items"]) == len(IDS["selection"])
            found.append((*chosen, event.data["mean_hard"], full))
    return found


# --- TextGrad -----------------------------------------------------------------------------

TAUGHT = re.compile(r"teach (\w+)")


def taught(text: str, told: str, most: int) -> str:
    """Return the document with the last words that feedback asks for; it keeps `most`."""
    words = [word for word, _ in WORD.findall(text) if word]
    # Sorted, for the package keeps feedback in a set.
    words += sorted(set(TAUGHT.findall(told)) - set(words))
    return "# Trees\n\n" + "".join(f"- know {word}\n" for word in words[-most:])


def follow(request: Any) -> dict[str, Any]:
    """Answer as TextGrad's prompts ask: feedback on a run, and the document by all of it."""
    told = "".join(part.text for part in request.messages[0].parts)
    if "text" in request.schema["properties"]:
        return {"text": "teach " + re.findall(r"train-(\w+)", told)[0]}
    skill = request.system.rpartition("==== BEGIN skill")[2].partition("==== END skill")[0]
    return {"document": taught(skill, told, 4)}


@dataclass
class Feedback:
    """A scripted engine of the package, by the same rules."""

    model_string: str = "scripted"
    steps: list[str] = field(default_factory=list)

    def generate(self, content: Any, system_prompt: Any = None, **told: Any) -> str:
        return self(content, system_prompt)

    def __call__(self, content: Any, system_prompt: Any = None, **told: Any) -> str:
        text = str(content)
        if "IMPROVED_VARIABLE" in str(system_prompt):
            self.steps.append(text)
            value = re.findall(r"<VARIABLE>(.*?)</VARIABLE>", text, re.DOTALL)[0]
            new = taught(value, text.partition("</VARIABLE>")[2], 4)
            return f"<IMPROVED_VARIABLE>{new}</IMPROVED_VARIABLE>"
        asked = re.findall(r"word: (\w+)", text)
        return f"teach {asked[-1]}" if asked else "nothing"


@pytest.mark.parametrize("revert", [True, False])
def test_textgrad_rewrites_and_reverts_as_the_package_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revert: bool
) -> None:
    """Without momentum: textgrad 0.1.8 keeps `gradient_memory` and never shows it."""
    monkeypatch.setenv("TEXTGRAD_LOG_DIR", str(tmp_path))  # it writes where it is imported
    tg = pytest.importorskip("textgrad", reason='pip install "skilltrail[rivals]"')
    told: Mapping[str, Any] = {"batch": 2, "revert": revert}
    ours = run_method(
        tmp_path,
        NullStore(),
        "textgrad",
        optimizer=prompted(NullStore(), follow),
        epochs=2,
        seed=3,
        gate={"prefer_shorter": False},
        methods={"textgrad": told},
    )
    engine = Feedback()
    prompt = tg.Variable(
        "# Trees\n\n- know ash\n", requires_grad=True, role_description="what the agent is told"
    )
    optimizer = tg.TextualGradientDescent(parameters=[prompt], engine=engine)
    kept, texts = [prompt.value], []
    score = sum(word in known_in(prompt.value) for word in WORDS)
    for epoch in (1, 2):
        for step in schedule.plan_epoch(
            IDS["train"], seed=3, epoch=epoch, batch_size=2, accumulation=1
        ):
            optimizer.zero_grad()
            for id in step.items:
                feedback = tg.Variable(
                    engine(f"word: {word_of(id)}"), role_description="feedback"
                )
                prompt.gradients.add(feedback)
                prompt.gradients_context[feedback] = None
            optimizer.step()
            texts.append(known_in(prompt.value))
            now = sum(word in known_in(prompt.value) for word in WORDS)
            if (not revert and prompt.value != kept[-1]) or now > score:
                score = now
                kept.append(prompt.value)
            else:
                prompt.set_value(kept[-1])
    candidates = [known_in(text) for text in documents_of(ours)]
    assert candidates == texts
    assert known_in(ours.state.skill) == known_in(kept[-1])
    assert len(ours.events("skill.versioned")) == len(kept)


def documents_of(done: ToyRun) -> list[str]:
    return [str(event["text"]) for event in done.events("candidate.built")]
