"""Where the pipeline's files lie, which facts they name, and care for a hand-edited skill."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.core.errors import SkillError
from skilltrail.core.layout import BEST_SKILL
from skilltrail.core.score import Outcome
from skilltrail.history.git.repository import Git
from skilltrail.history.log.erasure import keys_of
from skilltrail.history.log.events import Event
from skilltrail.history.log.types import RolloutsScored
from skilltrail.store.place import Place
from skilltrail.store.protocol import gap_key

TRAIN_ROLLOUTS = Path("data/rollouts/train")
TEST_ROLLOUTS = Path("data/rollouts/test")


def facts_named(events: Iterable[Event], gaps: str = "") -> set[str]:
    """Return the keys of all facts that these events rest on; `gaps` is the run's name."""
    keys: set[str] = set()
    for event in events:
        rows = event.said.items if isinstance(event.said, RolloutsScored) else ()
        gone = {row.key for row in rows if row.outcome is Outcome.MISSING}
        keys |= {gap_key(gaps, key) if key in gone else key for key in keys_of(event)}
    return keys


def keep_hand_edits(place: Place) -> None:
    """Refuse to go on when `skills/best_skill.md` is a text that no run wrote.

    Raises:
        SkillError: somebody edited it; it is left as it is.
    """
    path = place.workspace / BEST_SKILL
    if not path.exists():
        return
    # As it is (a frontmatter may keep CR LF), and as a checkout may have changed it.
    raw = path.read_bytes()
    texts = {raw, raw.replace(b"\r\n", b"\n")}
    md5s = {hashlib.md5(data).hexdigest() for data in texts}
    if _md5_in_lock(place.workspace) in md5s or _at_head(place.workspace) in texts:
        return
    sha256s = {hashlib.sha256(data).hexdigest().encode() for data in texts}
    for log in _live_logs(place):
        told = log.read_bytes()
        if any(sha256 in told for sha256 in sha256s):
            return
    raise SkillError(
        f"{BEST_SKILL} would be overwritten",
        "it holds text that no run has written",
        f"To train on from it: `skilltrail fork {BEST_SKILL}`; to drop it: delete the file",
    )


def _live_logs(place: Place) -> Iterator[Path]:
    return (place.state / "runs").glob("*/events.jsonl")


def _md5_in_lock(workspace: Path) -> str | None:
    lock = workspace / "dvc.lock"
    if not lock.exists():
        return None
    try:
        stages = YAML(typ="safe").load(lock.read_text(encoding="utf-8")).get("stages", {})
        outs = stages.get("train", {}).get("outs", [])
        told = [o.get("md5") for o in outs if o.get("path") == BEST_SKILL.as_posix()]
    except (YAMLError, ValueError, AttributeError, TypeError, RecursionError):
        return None  # damaged: DVC says so; the texts of logs and HEAD are looked at as well
    return next(iter(told), None)


def _at_head(workspace: Path) -> bytes | None:
    git = Git.at_hand(workspace)
    return None if git is None else git.ask("show", f"HEAD:./{BEST_SKILL.as_posix()}")
