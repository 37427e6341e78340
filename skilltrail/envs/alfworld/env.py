"""`alfworld`: a household task in a text game, one command a turn, at most 50 (ALFWorld).

    {"id": "train:0000", "task_type": "look_at_obj_in_light", "gamefile":
     "json_2.1.1/train/look_at_obj_in_light-CD-None-DeskLamp-304/trial_T2019…/game.tw-pddl"}

Official metric: the task is done (`won`) within the allowed steps; hard = soft. The agent sees
the task, the last `history_length` turns and the possible commands. A command that the game
does not take costs a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.alfworld.actions import command_in, first_line, is_well_formed
from skilltrail.envs.alfworld.engine import (
    HOW_TO_INSTALL,
    Game,
    TextWorldEngine,
    WorldEngine,
    WorldState,
    missing,
)
from skilltrail.envs.alfworld.games import find_game, task_type_of
from skilltrail.envs.kit import fields
from skilltrail.envs.kit.files import NamesFiles, file_digest, find_known
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.kit.transcript import Transcript, completion
from skilltrail.envs.protocol import MissingDependency, ScoredBy, Where
from skilltrail.models.protocol import Message, Model, Request
from skilltrail.params.knob import knob, operational

_HERE = Path(__file__).parent
PROMPTS = Prompts(_HERE / "prompts", "chat", "completion")
_TASK = "Your task is to:"


@dataclass(frozen=True)
class AlfworldLimits:
    """What one item may cost."""

    turns: int = knob(50, "Commands per game.", low=1)


@dataclass(frozen=True)
class AlfworldParams:
    """Options of `alfworld`."""

    history_length: int = knob(2, "Earlier turns shown in the prompt.", low=0)
    admissible: bool = knob(True, "Show the commands that are possible.")
    answer_tokens: int = knob(16, "Longest command of a completion model.", low=1)
    engine_s: float = operational(120.0, "Seconds to wait for the game engine.", low=1)
    data_dirs: tuple[str, ...] = operational((), "Folders of the games; none = data/alfworld.")
    limits: AlfworldLimits = field(default_factory=AlfworldLimits)


class Alfworld(NamesFiles):
    """The environment; `params` are its typed options, `engine` plays the games."""

    name: ClassVar[str] = "alfworld"
    version: ClassVar[str] = versioned("alfworld/1", PROMPTS)
    runs_software: ClassVar[bool] = True
    fields: ClassVar[tuple[str, ...]] = (
        "id", "group", "gamefile", "problem", "task", "task_type",
    )  # fmt: skip
    scored_by: ClassVar[ScoredBy] = ScoredBy.RUN
    Params: ClassVar[type] = AlfworldParams

    def __init__(
        self, params: AlfworldParams | None = None, engine: WorldEngine | None = None
    ) -> None:
        self.params = AlfworldParams() if params is None else params
        self._engine = TextWorldEngine(self.params.engine_s) if engine is None else engine

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; its game file must be there."""
        name, path, task = find_game(record, self.folders, where)
        return Item(
            id=fields.ident(record, self.id_fields, where),
            input={"game": file_digest(path), "task": task},
            gold="won",
            group=fields.optional_text(record, "group", where),
            task_type=task_type_of(record, name, where),
            extra={"file": name, **self.rest_of(record)},
        )

    def content(self, item: Item) -> str:
        """Return the game's digest and task: what may not stand in two splits."""
        return f"{item.input['game']}\n{item.input['task'] or ''}"

    def most_calls(self) -> int:
        return int(self.params.limits.turns)

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Play one game to its end or to the last step.

        Raises:
            SkilltrailError: the engine is not installed; the message says how to install it.
            ModelError: the infrastructure failed.
        """
        path = find_known(item.extra["file"], item.input["game"], self.folders)
        turns = self.params.limits.turns
        game, state = await self._engine.open(path, item.input["task"], turns)
        try:
            return await self._play(game, state, skill, target)
        finally:
            await game.close()

    async def _play(
        self, game: Game, state: WorldState, skill: str, target: Model
    ) -> Trajectory:
        said = Transcript()
        history: list[tuple[str, str]] = []
        task, state = _introduced(state)
        badly_formed = 0
        ending = "out_of_turns"
        for number in range(self.params.limits.turns):
            request = self._request(target, skill, task, history, state, number)
            reply = await target.complete(request)
            sent = request.prompt or request.messages[0].to_json()
            if reply.finish == "refusal":
                said.add(sent, reply)
                ending = "refused"
                break
            is_chat = target.style == "chat"
            command = command_in(reply.text) if is_chat else first_line(reply.text)
            badly_formed += is_chat and not is_well_formed(reply.text)
            history.append((state.text, command))
            state = await game.step(command)
            said.add(sent, reply, state.text)
            if state.won:
                ending = "answered"
                break
        played = {"won": state.won, "steps": len(history), "badly_formed": badly_formed}
        return said.ended(ending, "won" if state.won else "", played)

    def _request(
        self,
        target: Model,
        skill: str,
        task: str,
        history: Sequence[tuple[str, str]],
        state: WorldState,
        number: int,
    ) -> Request:
        commands = state.admissible if self.params.admissible else ("(not shown)",)
        recent = history[max(0, len(history) - self.params.history_length) :]
        is_chat = target.style == "chat"
        values = {
            "task": task,
            "history": "".join(f"{text}\n> {command}\n" for text, command in recent),
            "observation": state.text,
            "commands": ("\n" if is_chat else ", ").join(commands),
        }
        if is_chat:
            message = Message.text("user", PROMPTS.fill("chat", **values))
            return Request(system=skill, messages=(message,), turn=number)
        prompt = PROMPTS.fill("completion", **values)
        return completion(skill, prompt, self.params.answer_tokens, turn=number)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Won or not; a lost game's reason is how it ended."""
        if trajectory.extra.get("won"):
            return Score.scored(1.0, 1.0, "won")
        ending = trajectory.ending
        return Score.scored(0.0, 0.0, "lost" if ending in ("answered", "truncated") else ending)

    def reference(self, item: Item) -> str | None:
        """Return the commands that win, where the item has them."""
        commands = item.extra.get("walkthrough")
        return "\n".join(commands) if isinstance(commands, list) else None

    def asked(self, item: Item) -> str:
        """Return the task in words, "" where only the game itself knows it."""
        task = item.input["task"]
        return "" if task is None else str(task)

    def requirements(self) -> list[MissingDependency]:
        """Return the game engine where it is not installed."""
        absent = ", ".join(missing())
        found = f"not installed: {absent}"
        return [MissingDependency("game engine", found, HOW_TO_INSTALL)] if absent else []

    def example(self, item: Item) -> str | None:
        """Return the commands that win as a paragraph, where the item has them."""
        commands = item.extra.get("walkthrough")
        task = item.input["task"]
        if not isinstance(commands, list) or not commands or task is None:
            return None
        return "\n".join([f"{_TASK} {task}", *(f"> {command}" for command in commands)])


ENVIRONMENT = Alfworld


def _introduced(state: WorldState) -> tuple[str, WorldState]:
    """Return the task's sentence and the first state without the banner and that sentence."""
    before, mark, after = state.text.partition(_TASK)
    task = f"{mark} {after.strip()}" if mark else ""
    room = "\n".join(line for line in before.split("\n") if not line.startswith("-="))
    return task, WorldState(room.strip(), state.admissible, state.won)
