"""What four worked examples picked by hand give: the bar for `benchmarks.trial`.

    python -m benchmarks.by_hand --set library --set match --into /tmp/trial

Picked as a person would who reads the train items from the top: the first of each of four kinds
of question. They are appended to the seed skill, and both are measured on the test items, in
the clone of `benchmarks.trial`. Results are a table in Markdown on stdout.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

from benchmarks.crash import environment
from benchmarks.trial import SIZES, clone, data_of, items, run_stage, set_up
from benchmarks.trial_sets import SETS
from benchmarks.trial_table import interval
from skilltrail.envs.protocol import Where
from skilltrail.envs.textqa.env import TextQa, TextQaParams
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.edit import Edit

SEED, PICKED = "skills/seeds/textqa.md", "skills/seeds/picked.md"


def with_four(name: str, skill: str) -> str:
    """Return the skill with the first train item of each of four kinds of question."""
    env, shown = TextQa(TextQaParams()), dict[str, str]()
    for number, record in enumerate(islice(items(name, SIZES["train"]), SIZES["train"])):
        example = env.example(env.parse(record, Where(name, number)))
        assert example is not None
        shown.setdefault(record["question"], example)
    four = [Edit("append", content=text, kind="example") for text in list(shown.values())[:4]]
    return apply_edits(skill, four).text


def measured(folder: Path, name: str, params: list[str]) -> str:
    """Return the row of one set."""
    set_up(folder, (*data_of(name), *params))
    run_stage(folder, "split")
    text = with_four(name, (folder / SEED).read_text(encoding="utf-8"))
    (folder / PICKED).write_text(text, encoding="utf-8", newline="\n")
    words = ["evaluate", "--skill", SEED, "--skill", PICKED, "--split", "test", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "skilltrail", *words],
        cwd=folder, env=environment(), check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    seed, four = json.loads(done.stdout)
    gain = interval((four["gain"], four["gain_low"], four["gain_high"]))
    return f"| {name} | {seed['mean_hard']:.3f} → {four['mean_hard']:.3f} | {gain} |"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--set", dest="sets", action="append", choices=list(SETS))
    options.add_argument("--into", type=Path, required=True, help="a folder for the clone")
    options.add_argument("-S", dest="params", metavar="KEY=VALUE", action="append", default=[])
    asked = options.parse_args()
    folder = asked.into.resolve()
    clone(folder, "HEAD")
    rows = [measured(folder, name, asked.params) for name in asked.sets or SETS]
    head = ["| set | test, seed → four by hand | gain on test |", "|---|---|---|"]
    sys.stdout.write("\n".join([*head, *rows]) + "\n")


if __name__ == "__main__":
    main()
