"""What is trained: the seed skill, and what of it may change."""

from __future__ import annotations

from dataclasses import dataclass

from skilltrail.params.knob import knob, operational

DEFAULT_SEED = "skills/seeds/default"


@dataclass(frozen=True)
class Skill:
    seed: str = operational(
        DEFAULT_SEED,
        f"Seed skill, a file or a folder; {DEFAULT_SEED} stands for skills/seeds/<env>.md.",
    )
    parent: str | None = knob(
        None, "Event id of the version this run is forked from; set by `skilltrail fork`."
    )
    frontmatter: str = knob(
        "frozen",
        "Whether training may change the YAML in front of the skill.",
        choices=("frozen", "train"),
    )
    scripts: bool = knob(
        False,
        "Whether edits may change scripts of a folder; their tests run first.",
        idle=False,
    )
    references: str = knob(
        "frozen",
        "Whether edits may make and remove references of a folder.",
        choices=("frozen", "train"),
        idle="frozen",
    )
    sandbox: str = operational(
        "bubblewrap",
        "What the tests of scripts run in; none = as you, without isolation.",
        choices=("bubblewrap", "none"),
    )
    max_file_tokens: int = knob(
        0, "Hard limit of each file of a folder; 0 = none.", low=0, idle=0
    )

    @property
    def makes_references(self) -> bool:
        return self.references == "train"

    @property
    def frozen(self) -> bool:
        return self.frontmatter == "frozen"
