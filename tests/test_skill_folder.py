"""A skill folder: one text inside, files outside, and an edit changes the file it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import golden_runs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_script import MemoryFacts, ScriptedModel
from methods_world import run_method
from null_store import NullStore
from skill_texts import advance, seed_lineage
from toy_world import run_toy, toy_params

from skilltrail.core.errors import SkillError
from skilltrail.history.log.types.parts import edits_made
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.candidate import Candidate, composed
from skilltrail.skill.document import split_lines, unified_diff
from skilltrail.skill.edit import Edit
from skilltrail.skill.folder import (
    files_of,
    folder_text,
    is_folder,
    mark_line,
    place_of,
    read_folder,
    write_folder,
)
from skilltrail.skill.rewrite import rewrite
from skilltrail.skill.structure import structure_faults
from skilltrail.skill.untrusted import Unusable, edit_from_untrusted
from skilltrail.verify.log import verify_log

SCRIPT = "def pence(pounds):\n    return pounds * 100\n"
TEST = "from prices import pence\n\n\ndef test_pence():\n    assert pence(2) == 200\n"
FILES = {
    "SKILL.md": "---\nname: prices\ndescription: 'Prices'\n---\n\n# Prices\n\n- Units.\n",
    "references/units.md": "# Units\n\n- 1 pound is 100 pence.",
    "references/words.md": "# Words\n\n- A quid is a pound.\n",
    "scripts/prices.py": SCRIPT,
    "scripts/test_prices.py": TEST,
}
WHOLE = folder_text(FILES)


def edit(file: str, op: str, target: str, content: str = "", id: str = "") -> Edit:
    return Edit(op, target, content, file=file, id=id)


def statuses(*edits: Edit, scripts: bool = False) -> list[str]:
    frozen = {"scripts": None} if scripts else {}
    return [
        f"{r.status.value} {r.detail.split(':')[0]}".strip()
        for r in apply_edits(WHOLE, edits, **frozen).results
    ]


any_text = st.text(st.sampled_from("a\n-#` \r<!>é"), max_size=12)
paths = st.sampled_from(["references/a.md", "references/b.md", "scripts/c.py", "scripts/d"])


@given(any_text, st.dictionaries(paths, any_text))
def test_every_file_comes_back_byte_for_byte(main: str, rest: dict[str, str]) -> None:
    files = {"SKILL.md": main} | dict(sorted(rest.items()))
    assert files_of(folder_text(files)) == files


def test_a_skill_of_one_file_is_its_own_text_and_nothing_is_added() -> None:
    assert files_of("# A\n") == {"SKILL.md": "# A\n"}
    assert not is_folder("# A\n")
    assert folder_text({"SKILL.md": "# A\n"}) == "# A\n"


@given(any_text, st.dictionaries(paths, any_text, min_size=1))
def test_each_line_of_the_whole_has_one_place_in_one_file(
    main: str, rest: dict[str, str]
) -> None:
    text = folder_text({"SKILL.md": main} | rest)
    places = [place_of(text, line) for line in range(1, len(split_lines(text)) + 1)]
    for path, one in files_of(text).items():
        own = [line for file, line in places if file == path and line]
        assert own == list(range(1, len(split_lines(one)) + 1))


def test_an_edit_changes_the_file_it_names_and_no_other() -> None:
    made = apply_edits(
        WHOLE, [edit("references/words.md", "append", "", "- A fiver is 5 pounds.", "7.0")]
    )
    assert made.applied == ("7.0",)
    after = files_of(made.text)
    assert after.pop("references/words.md").endswith(
        "- A quid is a pound.\n- A fiver is 5 pounds.\n"
    )
    assert after == {k: v for k, v in FILES.items() if k != "references/words.md"}
    assert not made.faults


def test_the_same_line_in_two_files_is_one_place_in_each() -> None:
    text = folder_text({"SKILL.md": "- a\n", "references/b.md": "- a\n"})
    made = apply_edits(text, [edit("references/b.md", "replace", "- a", "- b")])
    assert files_of(made.text) == {"SKILL.md": "- a\n", "references/b.md": "- b\n"}


def test_what_no_edit_may_do_is_refused_with_the_reason() -> None:
    assert statuses(
        edit("references/none.md", "append", "", "- x"),
        edit("scripts/prices.py", "replace", "    return pounds * 100", "    return 1"),
        edit("SKILL.md", "append", "", mark_line("scripts/new.py") + "\nimport os"),
    ) == ["not_found no_file", "protected scripts", "invalid marker"]
    assert statuses(
        edit("scripts/test_prices.py", "delete", "    assert pence(2) == 200"),
        edit("scripts/prices.py", "replace", "    return pounds * 100", "    return ("),
        scripts=True,
    ) == ["protected test", "invalid syntax"]


def test_a_script_changes_where_it_may_with_its_lines_as_they_are() -> None:
    change = edit("scripts/prices.py", "insert_after", "def pence(pounds):", "    # ## whole")
    made = apply_edits(WHOLE, [change], scripts=None)
    script = files_of(made.text)["scripts/prices.py"]
    assert script == "def pence(pounds):\n    # ## whole\n    return pounds * 100\n"


def test_a_script_without_a_test_does_not_change() -> None:
    text = folder_text({"SKILL.md": "- a\n", "scripts/b.py": "B = 1\n"})
    made = apply_edits(text, [edit("scripts/b.py", "append", "", "C = 2")], scripts=None)
    assert made.results[0].detail == "no_test: there is no scripts/test_b.py"
    assert made.text == text


@given(st.lists(st.tuples(st.sampled_from([*FILES]), any_text), max_size=4))
def test_every_line_keeps_its_origin_and_the_diff_rebuilds_the_whole(
    proposed: list[tuple[str, str]],
) -> None:
    edits = [
        edit(path, "append", "", text, f"3.{n}") for n, (path, text) in enumerate(proposed)
    ]
    made = apply_edits(WHOLE, edits, scripts=None)
    assert len(made.sources) == len(split_lines(made.text))
    old = split_lines(WHOLE)
    for source, line in zip(made.sources, split_lines(made.text), strict=True):
        assert isinstance(source, str) or old[source] == line
    assert len(advance(seed_lineage(WHOLE), made, 1)) == len(made.sources)
    assert made.removed == len(old) - len({s for s in made.sources if isinstance(s, int)}) or (
        made.added or made.removed == 0
    )
    assert bool(unified_diff(WHOLE, made.text)) == made.changed


NEW = "references/new.md"
deletions = st.sampled_from(["references/units.md", "references/words.md"]).map(
    lambda path: ("delete", path, FILES[path].removesuffix("\n"))
)
additions = st.tuples(
    st.just("append"), st.sampled_from([*FILES, NEW, "references/aaa.md"]), any_text
)


@given(st.lists(st.one_of(additions, deletions), max_size=5))
def test_made_and_removed_files_keep_every_other_line_and_its_origin(
    proposed: list[tuple[str, str, str]],
) -> None:
    edits = [
        edit(path, op, text if op == "delete" else "", "" if op == "delete" else text, f"3.{n}")
        for n, (op, path, text) in enumerate(proposed)
    ]
    made = apply_edits(WHOLE, edits, references=True)
    files, lines = files_of(made.text), split_lines(made.text)
    assert folder_text(files) == made.text
    assert not any("file" in fault for fault in structure_faults(made.text))
    old = split_lines(WHOLE)
    for source, line in zip(made.sources, lines, strict=True):
        assert source in made.applied if isinstance(source, str) else old[source] == line
    assert len(advance(seed_lineage(WHOLE), made, 1)) == len(lines)
    touched = {one.file for one, r in zip(edits, made.results, strict=True)
               if r.status.value == "applied"}  # fmt: skip
    for path, text in FILES.items():
        assert path in touched or files[path] == text
    assert set(files) - set(FILES) == touched - set(FILES)
    assert all(path in touched and path.startswith("references/")
               for path in set(FILES) - set(files))  # fmt: skip


def test_what_may_be_made_and_removed_has_limits_and_each_refusal_a_reason() -> None:
    def said(*edits: Edit, text: str = WHOLE) -> list[str]:
        made = apply_edits(text, edits, references=True)
        return [f"{r.status.value} {r.detail.split(':')[0]}".strip() for r in made.results]

    for path in ("scripts/new.py", "assets/x.md", "references/../x.md", "references/x.txt",
                 "references/.x.md", "/references/x.md", "references/UNITS.md"):  # fmt: skip
        assert said(edit(path, "append", "", "- x")) == ["not_found new_file"]
    assert said(edit(NEW, "delete", "- x"), edit(NEW, "append", "", "- x")) == [
        "not_found absent",
        "applied",
    ]
    many = {"SKILL.md": "x\n"} | {f"references/{n}.md": "x\n" for n in range(199)}
    assert said(edit(NEW, "append", "", "x"), text=folder_text(many)) == ["not_found new_file"]
    named = folder_text(FILES | {"SKILL.md": "Read references/words.md.\n"})
    gone = edit("references/words.md", "delete", "# Words\n\n- A quid is a pound.")
    assert said(gone, text=named) == ["protected named"]
    unnamed = edit("SKILL.md", "replace", "Read references/words.md.", "Read all.")
    assert said(gone, unnamed, text=named) == ["applied", "applied"]
    alone = apply_edits("# One\n", [edit(NEW, "append", "", "- x")], references=True)
    assert files_of(alone.text) == {"SKILL.md": "# One\n", NEW: "- x\n"}
    assert apply_edits(WHOLE, [gone]).text.count("words.md") == 1


def test_a_file_without_a_last_line_end_gets_one_with_what_is_added() -> None:
    made = apply_edits(WHOLE, [edit("references/units.md", "append", "", "- more", "5.0")])
    assert files_of(made.text)["references/units.md"].endswith("pence.\n- more\n")
    assert len(made.sources) == len(split_lines(made.text))
    assert not made.faults


def test_a_whole_new_text_rewrites_the_files_it_holds_and_scripts_stay() -> None:
    new = FILES | {"references/words.md": "# Words\n\n- New.\n", "scripts/prices.py": "boom(\n"}
    del new["references/units.md"]
    made = rewrite(WHOLE, folder_text(new), "4.0", frozen=True)
    assert made.results[0].status.value == "applied"
    assert files_of(made.text) == FILES | {"references/words.md": "# Words\n\n- New.\n"}
    one = rewrite(WHOLE, folder_text(FILES | {"SKILL.md": "# P\n"}), "4.0", frozen=True)
    assert files_of(one.text)["references/units.md"] == FILES["references/units.md"]
    assert rewrite(WHOLE, WHOLE + "\n", "4.0").results[0].status.value == "noop"
    strange = rewrite(WHOLE, folder_text(FILES | {"references/z.md": "x\n"}), "4.0")
    assert (strange.text, strange.results[0].status.value) == (WHOLE, "invalid")


def test_a_whole_new_text_makes_and_removes_references_only_where_it_may() -> None:
    def made(text: str, parent: str = WHOLE, *, references: bool = True) -> Candidate:
        return rewrite(parent, text, "4.0", references=references)

    def said(one: Candidate) -> str:
        return f"{one.results[0].status.value} {one.results[0].detail.split(':')[0]}".strip()

    plain = {"SKILL.md": "# P\n\nRead all.\n"}
    both = made(folder_text(plain | {NEW: "# New\n", "references/words.md": ""}))
    left = {path: text for path, text in FILES.items() if path != "references/words.md"}
    assert (said(both), files_of(both.text)) == ("applied", left | plain | {NEW: "# New\n"})
    assert (both.faults, both.freed) == ((), True)
    assert len(both.sources) == len(split_lines(both.text))
    assert set(both.sources) >= {"4.0"}
    # Lines that name files may follow each other, and the one removed may be the last.
    marks = f"# P\n\n{mark_line('references/units.md')}\n{mark_line('references/words.md')}\n"
    assert [*files_of(made(marks).text)] == [
        path for path in FILES if "references/" not in path
    ]
    named = folder_text({"SKILL.md": "Read references/words.md.\n", "references/words.md": ""})
    assert said(made(named)) == "protected named"
    assert made(named).text == WHOLE
    for path in ("scripts/new.py", "references/x.txt", "references/UNITS.md"):
        assert said(made(folder_text(plain | {path: "x\n"}))) == "invalid new_file"
    alone = made(f"# A\n\n{mark_line(NEW)}\n- x\n", "# A\n")
    assert files_of(alone.text) == {"SKILL.md": "# A\n", NEW: "- x\n"}
    for text in (folder_text(plain), WHOLE):
        assert not made(text).freed
        assert made(text) == made(text, references=False)
    assert said(made(folder_text(plain | {NEW: "x\n"}), references=False)) == "invalid no_file"


file_texts = st.one_of(st.just(""), st.sampled_from(["# T\n", "- a\n\n- b", "\n"]), any_text)


@given(
    st.dictionaries(
        st.sampled_from([*FILES, NEW, "references/zz.md", "scripts/new.py"]), file_texts
    ),
    st.booleans(),
)
def test_leave_to_make_files_is_told_exactly_where_it_made_a_difference(
    texts: dict[str, str], whole: bool
) -> None:
    def make(*, references: bool) -> Candidate:
        if whole:
            new = folder_text({"SKILL.md": FILES["SKILL.md"]} | texts)
            return rewrite(WHOLE, new, "4.0", references=references)
        edits = [
            edit(path, "append", "", text, f"4.{n}")
            if text.strip()
            else edit(path, "delete", FILES.get(path, "").strip("\n"), "", f"4.{n}")
            for n, (path, text) in enumerate(texts.items())
        ]
        return apply_edits(WHOLE, edits, references=references)

    free, bound = make(references=True), make(references=False)
    assert free.freed == (replace(free, freed=False) != bound)
    assert not bound.freed
    assert folder_text(files_of(free.text)) == free.text
    assert len(free.sources) == len(split_lines(free.text))


def test_a_text_of_one_file_cannot_be_made_a_folder() -> None:
    assert (
        rewrite("# A\n", f"# A\n\n{mark_line('scripts/x.py')}\nimport os\n", "4.0").changed
        is False
    )


def test_notes_go_into_the_main_file_after_edits_of_others() -> None:
    first = apply_edits(WHOLE, [edit("references/words.md", "append", "", "- x", "3.0")])
    notes = Edit("write_region", "appendix", "- remember", id="4.0")
    made = composed(first, apply_edits(first.text, [notes], owner="appendix"))
    assert "- remember" in files_of(made.text)["SKILL.md"]
    assert not made.faults


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("references/a.md", "```\nopen\n", "references/a.md: the code fence that line 1 opens"),
        ("references/a.md", "x\0", "references/a.md: line 1 holds a NUL"),
        ("scripts/a.py", "def (:\n", "scripts/a.py: line 1 is not valid Python"),
        ("scripts/a.sh", "x\u200bx\n", "scripts/a.sh: line 1 holds what nobody sees"),
        ("references/a.md", mark_line("references/b.md") + "\n", "holds the line that begins"),
        (
            "references/a.md",
            "<!-- APPENDIX_START -->\n<!-- APPENDIX_END -->\n",
            "the protected region appendix belongs into SKILL.md",
        ),
        ("references/../a.md", "x\n", "cannot be a file of a skill"),
        ("/etc/passwd", "x\n", "cannot be a file of a skill"),
        ("references/.hidden.md", "x\n", "cannot be a file of a skill"),
        ("a.md", "x\n", "cannot be a file of a skill"),
        ("references/SKILL.md", "x\n", ""),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_name(
    path: str, text: str, said: str
) -> None:
    faults = "; ".join(structure_faults(folder_text({"SKILL.md": "# A\n", path: text})))
    assert said in faults
    assert bool(faults) == bool(said)


def test_a_folder_on_disk_is_read_and_written_as_it_is(tmp_path: Path) -> None:
    write_folder(tmp_path / "a", WHOLE)
    (tmp_path / "a/assets").mkdir()
    (tmp_path / "a/assets/logo.png").write_bytes(b"\x89PNG")
    (tmp_path / "a/scripts/__pycache__").mkdir()
    (tmp_path / "a/scripts/__pycache__/x.pyc").write_bytes(b"\0")
    assert read_folder(tmp_path / "a") == WHOLE
    write_folder(tmp_path / "b", WHOLE)
    for path, text in FILES.items():
        assert (tmp_path / "b" / path).read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda a: (a / "SKILL.md").unlink(), "no SKILL.md"),
        (lambda a: (a / "references/b.bin").write_bytes(b"\xff\xfe"), "not UTF-8"),
        (lambda a: (a / "scripts/l.py").symlink_to("/etc/hostname"), "no plain file"),
        (lambda a: (a / "references/a:b.md").write_text("x"), "cannot be a file"),
        (lambda a: (a / "references/b.md").write_bytes(b"x" * (1 << 20) + b"x"), "bytes"),
        (
            lambda a: (a / "references/b.md").write_text(
                f"x\n{mark_line('scripts/x.py')}\ny\n"
            ),
            "holds a line that begins a file",
        ),
    ],
)
def test_a_folder_that_is_no_skill_is_refused_with_the_file(
    tmp_path: Path, break_it, said: str
) -> None:
    write_folder(tmp_path / "a", WHOLE)
    break_it(tmp_path / "a")
    with pytest.raises(SkillError, match=said):
        read_folder(tmp_path / "a")


def test_a_model_names_a_file_of_the_folder_or_is_told_which_there_are() -> None:
    files = tuple(FILES)
    told = {"op": "append", "content": "- x"}
    read = edit_from_untrusted(told | {"file": "references/units.md"}, files)
    assert isinstance(read, Edit)
    assert read.file == "references/units.md"
    default = edit_from_untrusted(told | {"file": None}, files)
    assert isinstance(default, Edit)
    assert default.file == "SKILL.md"
    assert "file" not in default.to_json()
    carried = replace(read, id="4.0")
    assert [Edit.of(one) for one in edits_made([carried])] == [carried]
    for wrong in ("../x.md", "references/none.md", 7):
        refused = edit_from_untrusted(told | {"file": wrong}, files)
        assert isinstance(refused, Unusable)
        assert refused.reason.startswith("no_file")
    new = edit_from_untrusted(told | {"file": NEW}, files, references=True)
    assert isinstance(new, Edit)
    assert new.file == NEW
    outside = edit_from_untrusted(told | {"file": "../x.md"}, files, references=True)
    assert isinstance(outside, Unusable)
    elsewhere = edit_from_untrusted(told | {"path": "/etc/passwd"}, files)
    assert isinstance(elsewhere, Unusable)
    alone = edit_from_untrusted(told | {"file": "references/units.md"})
    assert isinstance(alone, Unusable)


LLM = ("patch", "rewrite_from_suggestions", "full_rewrite_minibatch")


@pytest.mark.parametrize("how", [*LLM, "bootstrap", "gepa", "random_search"])
def test_every_mode_and_method_trains_a_folder_and_leaves_its_other_files(
    how: str, tmp_path: Path
) -> None:
    trees = "---\nname: trees\ndescription: x\n---\r\n\n# Trees\n\n- Answer with the tree.\n"
    files = FILES | {"SKILL.md": trees}
    if how in LLM:
        model = ScriptedModel(golden_runs.say)
        options = LlmOptions(minibatch_size=2, skill_aware=True)
        optimizer = LlmOptimizer(lambda stage: model, MemoryFacts(), options, "toy")
        asked = {"enabled": True}
        params = toy_params(
            batch_size=4, update_mode=how, compaction=True, skill_aware=asked,
            slow_update=asked | {"samples": 4}, meta_skill=asked,
        )  # fmt: skip
        seed = folder_text(files)
        done = run_toy(tmp_path, NullStore(), params, optimizer=optimizer, seed_skill=seed)
    else:
        done = run_method(tmp_path, NullStore(), how, seed_skill=folder_text(files))
    best = files_of(done.state.best_skill)
    assert done.state.best_version
    assert best.pop("SKILL.md").startswith(trees[: trees.index("# Trees")])
    assert best == {path: text for path, text in FILES.items() if path != "SKILL.md"}
    report = verify_log(done.log, "log")
    assert [str(fault) for fault in report.faults] == []
