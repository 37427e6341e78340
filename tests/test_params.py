"""params.yaml becomes typed, frozen params, or one message that names every fault."""

from __future__ import annotations

import contextlib
import re
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.errors import ParamError
from skilltrail.params.edit import set_params
from skilltrail.params.fields import Params, seed_skill_path
from skilltrail.params.knob import knob, knobs_of
from skilltrail.params.read import (
    load_params,
    params_from_text,
    params_of,
    resolved,
    run_digest_params,
)

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Limits:
    turns: int = knob(1, "Most turns.", low=1)


@dataclass(frozen=True)
class QaParams:
    context_chars: int = knob(6000, "Characters of context shown.", low=1)
    labels: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class MathParams:
    shuffle_choices: bool = True

    def __post_init__(self) -> None:
        if not self.shuffle_choices:
            raise ValueError("shuffle_choices: false needs an answer key")


ENVIRONMENTS: dict[str, type] = {"textqa": QaParams, "math": MathParams}


def params(**values: Any) -> Params:
    return params_of(values, ENVIRONMENTS)


def load(tmp_path: Path, text: str) -> Params:
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8", newline="\n")
    return load_params(path, ENVIRONMENTS)


def complaint(tmp_path: Path, text: str) -> str:
    with pytest.raises(ParamError) as caught:
        load(tmp_path, text)
    return str(caught.value)


# Knobs that the shipped file leaves out, since few need them: `-S +target.retry.attempts=2`.
RARE = re.compile(
    r"(target|optimizer|judge)\.(api|omit|thinking|region|abilities|connect_timeout_s|replays"
    r"|(retry|budget|price|azure|exec|handoff|stages)\..*)|envs\..*"
)


def test_the_shipped_file_sets_every_common_knob_so_that_each_can_be_overridden(
    tmp_path: Path,
) -> None:
    loaded = load(tmp_path, (ROOT / "params.yaml").read_text(encoding="utf-8"))
    unset = [row.key for row in resolved(loaded) if row.origin == "default"]
    assert [key for key in unset if not RARE.fullmatch(key)] == []


def test_every_knob_says_what_it_means() -> None:
    assert [knob.key for knob in knobs_of(Params) if not knob.doc] == []


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Params() == params()


def test_params_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Params().lr = 2  # type: ignore[misc]


def test_all_faults_come_in_one_message_with_their_lines(tmp_path: Path) -> None:
    message = complaint(tmp_path, "lr: 0\n# a comment\nepochs: '4'\ngate:\n  mtric: soft\n")
    assert "3 faults" in message
    assert "line 1, lr: expected a whole number of at least 1, found 0" in message
    assert (
        "line 3, epochs: expected a whole number of at least 1, found the text '4'" in message
    )
    assert "line 5, gate.mtric: no such key; the nearest is gate.metric" in message


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("batchsize", "batch_size"),
        ("learning_rate", "lr"),
        ("num_epochs", "epochs"),
        ("edit_budget", "lr"),
        ("metric", "gate.metric"),
        ("ratio", "data.ratio"),
        ("split_dir", "data.split_dir"),
        ("use_gates", "use_gate"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_the_nearest(
    tmp_path: Path, given: str, nearest: str
) -> None:
    message = complaint(tmp_path, f"{given}: 3\n")
    assert f"line 1, {given}: no such key" in message
    assert message.rstrip(".").endswith(f" {nearest}")


@pytest.mark.parametrize(
    "given", ['"false"', "'no'", "0", "1", "null", "[]", "maybe", "0.0", '"true"', "{}"]
)
def test_text_or_a_number_never_switches_the_gate(tmp_path: Path, given: str) -> None:
    """Case cli-06: a string or 0 is a type error, not a gate that stays on."""
    message = complaint(tmp_path, f"use_gate: {given}\n")
    assert "line 1, use_gate: expected true or false, found " in message


@pytest.mark.parametrize("given", ["false", "no", "off", "False", "NO"])
def test_what_the_command_line_writes_for_no_means_false(tmp_path: Path, given: str) -> None:
    """Case cli-06: `-S use_gate=no` is written without quotes and means false."""
    assert load(tmp_path, f"use_gate: {given}\n").use_gate is False


def test_an_exponent_from_the_command_line_is_a_number_but_no_learning_rate(
    tmp_path: Path,
) -> None:
    assert load(tmp_path, "gate: {alpha: 1e-05}\n").gate.alpha == 1e-5
    assert load(tmp_path, "gate: {alpha: '1e-05'}\n").gate.alpha == 1e-5
    message = complaint(tmp_path, "lr: 1e-05\n")
    assert "lr: expected a whole number of at least 1, found 1e-05" in message


@pytest.mark.parametrize("given", [".nan", ".inf", "-.inf", "1e999"])
def test_a_number_must_be_finite(tmp_path: Path, given: str) -> None:
    assert "gate.alpha" in complaint(tmp_path, f"gate: {{alpha: {given}}}\n")


@pytest.mark.parametrize("key", ["seed", "epochs", "gate.alpha", "target.timeout_s"])
@pytest.mark.parametrize("digits", [17, 400, 5000])
def test_a_number_of_too_many_digits_is_a_fault(key: str, digits: int) -> None:
    *sections, name = key.split(".")
    text = "".join(f"{section}: " for section in sections) + f"{{{name}: {'9' * digits}}}"
    with pytest.raises(ParamError, match=re.escape(key)):
        params_from_text(text, "params.yaml", {})


def test_what_yaml_could_unfold_for_ever_is_a_fault() -> None:
    lines = ["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    for text in ("\n".join(lines), "a: " + "[" * 3000 + "]" * 3000):
        with pytest.raises(ParamError, match="values so far|nested too deeply"):
            params_from_text(text, "params.yaml", {})


@pytest.mark.parametrize("given", ["true", "4.0", "four", "null", "-1", "1_0.5"])
def test_a_whole_number_is_nothing_else(tmp_path: Path, given: str) -> None:
    assert "line 1, lr: expected a whole number" in complaint(tmp_path, f"lr: {given}\n")


def test_the_last_learning_rate_must_not_exceed_the_first(tmp_path: Path) -> None:
    """Case scheduler-01: a minimum above the maximum is an error, not a higher budget."""
    text = "lr: 1\nlr_min: 2\nlr_schedule: cosine\n"
    assert "line 2, lr_min: must not exceed lr, found 2 over 1" in complaint(tmp_path, text)


def test_where_nothing_reads_lr_min_it_binds_nobody() -> None:
    assert params(lr=1, lr_min=2, lr_schedule="constant").lr == 1
    assert params(lr=1).lr_min == 1  # so that `-S lr=1` works alone


@pytest.mark.parametrize("size", [1, 0, -3])
def test_merging_takes_at_least_two_at_a_time(tmp_path: Path, size: int) -> None:
    """Case scheduler-05: a merge group of one would never shrink the list."""
    message = complaint(tmp_path, f"merge_batch_size: {size}\n")
    assert "expected a whole number of at least 2" in message


@pytest.mark.parametrize("ratio", ["2:1", "2:1:0", "a:b:c", "2:1:7:1", "", "2-1-7", "-2:1:7"])
def test_a_ratio_is_three_positive_numbers(ratio: str) -> None:
    with pytest.raises(ParamError, match=r"data.ratio: expected train:selection:test"):
        params(data={"ratio": ratio})


def test_items_come_from_one_place() -> None:
    with pytest.raises(ParamError, match=r"data.split_dir: data.path is given too"):
        params(data={"path": "a.jsonl", "split_dir": "b"})


def test_a_path_that_dvc_tracks_is_never_empty() -> None:
    with pytest.raises(ParamError, match=r"data.path: may not be empty; write data/none"):
        params(data={"path": ""})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lr: 4\nlr: 8\n", "line 2, lr: given twice, first in line 1"),
        ("gate:\n  rule: paired\n  rule: strict\n", "line 3, gate.rule: given twice"),
        ("- lr\n", "expected a mapping of keys, found a list"),
        ("just text", "expected a mapping of keys, found the text"),
        ("lr: [\n", "not YAML"),
        ("lr: !!python/object:os.system 4\n", "foreign type"),
        ("gate: strict\n", "line 1, gate: expected a mapping, found the text 'strict'"),
        ("target: {stop: [a, 1]}\n", "target.stop: expected a list, each entry text"),
        ("gate: {rule: Strict}\n", "expected one of strict, paired, no_regression"),
        ("lr: &a [*a]\n", "line 1, lr"),
        ("<<: {lr: 8}\n", "line 1, <<: no such key"),
    ],
)
def test_yaml_that_would_surprise_is_a_fault(tmp_path: Path, text: str, found: str) -> None:
    assert found in complaint(tmp_path, text)


def test_two_knobs_of_a_role_that_contradict_each_other_are_a_fault(tmp_path: Path) -> None:
    text = "target:\n  backend: openai\n  base_url: http://127.0.0.1:1/v1\n"
    assert "target.provider: missing, while base_url is set" in complaint(tmp_path, text)


def test_a_missing_file_says_where_to_stand(tmp_path: Path) -> None:
    with pytest.raises(ParamError, match=r"no such file.*root of the repository"):
        load_params(tmp_path / "params.yaml", ENVIRONMENTS)


def test_a_file_with_a_bom_and_crlf_reads_alike(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(b"\xef\xbb\xbflr: 8\r\ngate:\r\n  rule: paired\r\n")
    loaded = load_params(path, ENVIRONMENTS)
    assert (loaded.lr, loaded.gate.rule) == (8, "paired")


def test_text_that_is_not_utf8_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(b"lr: \xff\n")
    with pytest.raises(ParamError, match="must be UTF-8"):
        load_params(path, ENVIRONMENTS)


# --- environments ---


def test_an_override_counts_for_the_chosen_environment_only() -> None:
    chosen = params(envs={"textqa": {"context_chars": 100, "limits": {"turns": 2}}})
    assert chosen.env_params == QaParams(context_chars=100, limits=Limits(turns=2))
    other = params(envs={"math": {"shuffle_choices": True}})
    assert other.env_params == QaParams()
    assert run_digest_params(other) == run_digest_params(params())


def test_another_environments_own_params_class_is_never_asked_for() -> None:
    class Lazy(dict[str, type]):
        asked: list[str] = []

        def __getitem__(self, name: str) -> type:
            self.asked.append(name)
            return super().__getitem__(name)

    lazy = Lazy(ENVIRONMENTS)
    params_of({"env": "math", "envs": {"textqa": {"anything": 1}}}, lazy)
    assert lazy.asked == ["math"]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"env": "textq"}, "env: no environment 'textq'; the nearest is textqa"),
        ({"envs": {"mth": {}}}, "envs.mth: no such environment; the nearest is math"),
        ({"envs": {"textqa": {"context": 3}}}, "the nearest is envs.textqa.context_chars"),
        ({"envs": {"textqa": {"context_chars": 0}}}, "of at least 1, found 0"),
        (
            {"envs": {"textqa": {"limits": {"turn": 2}}}},
            "the nearest is envs.textqa.limits.turns",
        ),
        ({"envs": {"textqa": 3}}, "envs.textqa: expected a mapping"),
        ({"envs": 3}, "envs: expected a mapping"),
        (
            {"env": "math", "envs": {"math": {"shuffle_choices": False}}},
            "envs.math: shuffle_choices: false needs an answer key",
        ),
    ],
)
def test_an_environments_params_are_as_strict(values: dict[str, Any], found: str) -> None:
    with pytest.raises(ParamError) as caught:
        params_of(values, ENVIRONMENTS)
    assert found in str(caught.value)


# --- origins and keys ---


def test_each_value_tells_where_it_comes_from(tmp_path: Path) -> None:
    loaded = load(tmp_path, "lr: 8\nenvs: {textqa: {context_chars: 10}, math: {}}\n")
    origin = {row.key: (row.value, row.origin) for row in resolved(loaded)}
    assert origin["lr"] == (8, "params.yaml")
    assert origin["epochs"] == (4, "default")
    assert origin["envs.textqa.context_chars"] == (10, "envs.textqa")
    assert origin["envs.textqa.limits.turns"] == (1, "default")
    assert not any(key.startswith("envs.math") for key in origin)


def test_what_only_changes_speed_or_place_is_in_no_key() -> None:
    same = params(
        target={"workers": 4, "timeout_s": 9},
        data={"path": "elsewhere.jsonl", "split_seed": 7, "limit": {"train": 5}},
        skill={"seed": "skills/seeds/other.md"},
        evaluate={"enabled": False},
    )
    assert run_digest_params(same) == run_digest_params(params())


def test_a_knob_that_nothing_reads_is_in_no_key() -> None:
    constant = params(lr_schedule="constant")
    assert run_digest_params(params(lr_schedule="constant", lr_min=3)) == run_digest_params(
        constant
    )
    assert run_digest_params(params(gate={"alpha": 0.2})) == run_digest_params(params())
    assert "gate.alpha" in run_digest_params(params(gate={"rule": "paired"}))


def test_every_other_knob_is_in_the_key() -> None:
    base = run_digest_params(params())
    for values in (
        {"lr": 8}, {"seed": 1}, {"epochs": 2}, {"batch_size": 3}, {"accumulation": 2},
        {"patience": 2}, {"use_gate": False}, {"merge_batch_size": 2}, {"lr_min": 2},
        {"lr_schedule": "linear"}, {"gate": {"rule": "paired"}}, {"gate": {"metric": "soft"}},
        {"gate": {"prefer_shorter": False}}, {"target": {"temperature": 0.5}},
        {"target": {"style": "chat"}}, {"reflect": {"success_threshold": 0.5}},
        {"envs": {"textqa": {"context_chars": 5}}},
    ):  # fmt: skip
        assert run_digest_params(params(**values)) != base, values


def test_the_default_seed_follows_the_environment() -> None:
    assert seed_skill_path(params()) == "skills/seeds/textqa.md"
    assert seed_skill_path(params(env="math")) == "skills/seeds/math.md"
    assert seed_skill_path(params(skill={"seed": "my.md"})) == "my.md"


# --- secrets ---


@pytest.mark.parametrize(
    "text",
    [
        "openai_api_key: abcdef\n",
        "target: {api_key: abcdef}\n",
        "target: {auth_token: abcdef}\n",
        "my_password: abcdef\n",
        "target: {model: sk-abcdefghijklmnopqrstuvwxyz}\n",
        "envs: {textqa: {labels: [sk-abcdefghijklmnopqrstuvwxyz]}}\n",
        "envs: {math: {judge: sk-abcdefghijklmnopqrstuvwxyz}}\n",
        "lr: sk-abcdefghijklmnopqrstuvwxyz\n",
        "sk-abcdefghijklmnopqrstuvwxyz\n",
    ],
)
def test_a_secret_in_params_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    message = complaint(tmp_path, text)
    assert "looks like a secret" in message or "[hidden]" in message
    assert "abcdef" not in message


# --- laws ---

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.just([])
)
KEYS = [knob.key for knob in knobs_of(Params)] + ["nonsense", "gate.nonsense", ""]


@given(st.dictionaries(st.sampled_from(KEYS), scalars, max_size=4))
def test_any_values_give_params_or_a_param_error(flat: dict[str, Any]) -> None:
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, name = key.split(".")
        place = nested
        for section in sections:
            inner = place.setdefault(section, {})
            place = inner if isinstance(inner, dict) else {}
        place[name] = value
    try:
        loaded = params_of(nested, ENVIRONMENTS)
    except ParamError:
        return
    assert run_digest_params(loaded) == run_digest_params(params_of(nested, ENVIRONMENTS))


@given(st.text(max_size=60))
def test_any_text_gives_params_or_a_param_error(text: str) -> None:
    with contextlib.suppress(ParamError):
        params_from_text(text, "params.yaml", ENVIRONMENTS)


# --- editing ---


def test_setting_a_value_changes_its_line_and_keeps_every_comment(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    before = (ROOT / "params.yaml").read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(before) + "\n", encoding="utf-8", newline="\n")
    set_params(path, {"skill.seed": "skills/seeds/main-v3.md", "skill.parent": "ab12", "lr": 8})
    after = path.read_text(encoding="utf-8").splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert [line.split("#")[0].strip() for line in changed] == [
        "lr: 8", "seed: skills/seeds/main-v3.md", "parent: ab12",
    ]  # fmt: skip
    comments = [line.partition("#")[2] for line in before]
    assert [line.partition("#")[2] for line in after] == comments
    assert load_params(path, ENVIRONMENTS).skill.parent == "ab12"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("lr: 4\n", "lr: 4\nskill:\n  seed: x\n"),
        ("", "skill:\n  seed: x\n"),
        ("skill:\nlr: 4\n", "skill:\n  seed: x\nlr: 4\n"),
        (
            "skill:\n  parent: null # by fork\n\n# Speed\nlr: 4\n",
            "skill:\n  seed: x\n  parent: null # by fork\n\n# Speed\nlr: 4\n",
        ),
    ],
)
def test_a_key_that_the_file_leaves_to_its_default_is_added_in_its_section(
    tmp_path: Path, before: str, after: str
) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(before, encoding="utf-8", newline="\n")
    set_params(path, {"skill.seed": "x"})
    assert path.read_text(encoding="utf-8") == after


@pytest.mark.parametrize("text", ["skill: mine\n", "- skill\n"])
def test_a_key_goes_into_no_text_and_no_list(tmp_path: Path, text: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8", newline="\n")
    with pytest.raises(
        ParamError, match=r"Setting skill.seed in params.yaml: .* is no section"
    ):
        set_params(path, {"skill.seed": "x"})
    assert path.read_text(encoding="utf-8") == text
