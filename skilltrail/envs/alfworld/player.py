"""Plays one TextWorld game for the process that started it: a line of JSON in, a line out.

This file stands alone and is run as a program. First line: {"game": path, "task": words or
null, "steps": most steps}; each further line: {"command": text}.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def whole_game(path: Path, task: str | None) -> dict[str, Any]:
    """Return the content of `game.tw-pddl` for a bare PDDL problem.

    Domain and grammar are the package's own; the grammar has a place for the task.
    """
    package = Path(str(importlib.import_module("alfworld").__file__)).parent
    texts = {
        suffix: next(package.rglob(f"alfred.{suffix}")).read_text(encoding="utf-8")
        for suffix in ("pddl", "twl2")
    }
    return {
        "pddl_domain": texts["pddl"],
        "grammar": texts["twl2"].replace("UNKNOWN GOAL.", task or "UNKNOWN GOAL."),
        "pddl_problem": path.read_text(encoding="utf-8"),
        "solvable": True,
        "walkthrough": [],
    }


def opened(path: str, steps: int) -> Any:
    """Return the gym environment of a game file."""
    textworld = importlib.import_module("textworld")
    gym = importlib.import_module("textworld.gym")
    alfred = importlib.import_module("alfworld.agents.environment.alfred_tw_env")
    wanted = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
    name = gym.register_games(
        [path],
        wanted,
        batch_size=1,
        asynchronous=False,
        max_episode_steps=steps,
        wrappers=[alfred.AlfredDemangler(shuffle=False)],
    )
    return gym.make(name)


def answer(out: Any, text: Any, infos: Any) -> None:
    """Write one state."""
    state = {
        "text": text[0].strip(),
        "admissible": sorted(infos["admissible_commands"][0] or []),
        "won": bool(infos["won"][0]),
    }
    out.write(json.dumps(state) + "\n")
    out.flush()


def main() -> None:
    """Play until standard input ends."""
    # The engine writes to standard output; our lines get a descriptor of their own.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    first = json.loads(sys.stdin.readline())
    path = Path(first["game"])
    with tempfile.TemporaryDirectory() as folder:
        if path.suffix != ".tw-pddl":
            made = Path(folder) / "game.tw-pddl"
            made.write_text(json.dumps(whole_game(path, first["task"])), encoding="utf-8")
            path = made
        game = opened(str(path), first["steps"])
        answer(out, *game.reset())
        for line in sys.stdin:
            text, _, _, infos = game.step([json.loads(line)["command"]])
            answer(out, text, infos)


if __name__ == "__main__":
    main()
