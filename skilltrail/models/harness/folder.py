"""The folder that an agent works in: task.md, the attachments, a skill folder's files.

What the program itself needs (the system text, a schema) lies beside it, not in it.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from skilltrail.models.client.backend import bytes_at
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Message, Part, Request
from skilltrail.skill.folder import files_of, is_folder, write_folder
from skilltrail.skill.skill_file import described

_EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}
_MOST_RETURNED_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class WorkFolder:
    """`work` is the agent's; `side` holds the program's own files. `images` lie in `work`."""

    work: Path
    side: Path
    task: str
    images: tuple[Path, ...]

    def side_file(self, name: str, text: str) -> Path:
        """Write a file for the program and return its path."""
        path = self.side / name
        path.write_text(text, encoding="utf-8", newline="\n")
        return path

    def system_file(self, request: Request, *, reads: bool = False) -> Path | None:
        """Write the system text for the program and return its path, None where it is empty.

        `reads`: the program can open the files of a skill folder itself.
        """
        system = disclosed(request) if reads else request.system
        return self.side_file("system.md", system) if system else None

    def returned(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return the files of these names that the agent left, as base64.

        A link is not followed: the agent could point it anywhere.
        """
        found: dict[str, str] = {}
        for name in names:
            path = self.work / _safe(name)
            usable = path.is_file() and not path.is_symlink()
            if usable and path.stat().st_size <= _MOST_RETURNED_BYTES:
                found[name] = base64.b64encode(path.read_bytes()).decode("ascii")
        return found


@contextmanager
def work_folder(request: Request, skills_place: str = "") -> Iterator[WorkFolder]:
    """Make the folder of one call, and remove it afterwards.

    Skills on offer go to `skills_place` in it, each into a folder of its name.
    """
    base = Path(tempfile.mkdtemp(prefix="skilltrail-"))
    try:
        work, side = base / "work", base / "side"
        work.mkdir()
        side.mkdir()
        images = tuple(_place_images(request, work))
        for file in request.files:
            _place(work / _safe(file.name), file.path, file.digest)
        if is_folder(request.system):
            _place_skill(work, request.system)
        for skill in request.skills:
            write_folder(work / skills_place / described(skill)[0], skill)
        task = task_text(request)
        (work / "task.md").write_text(task, encoding="utf-8", newline="\n")
        yield WorkFolder(work, side, task, images)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _place_skill(work: Path, skill: str) -> None:
    """Write the files of a skill folder, so that the links between them hold.

    Raises:
        ModelConfigError: an attachment has that name.
    """
    for name, text in files_of(skill).items():
        path = work / name
        if path.exists():
            raise ModelConfigError(f"attachment {name!r}", "the skill has it too", "Rename it")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def disclosed(request: Request) -> str:
    """Return the system text for an agent that can read: `SKILL.md`, and what lies beside."""
    if not is_folder(request.system):
        return request.system
    main, *rest = files_of(request.system)
    told = "\n".join(f"- {path}" for path in rest)
    text = files_of(request.system)[main].rstrip("\n")
    return f"{text}\n\nThese files of the skill lie in the working folder:\n\n{told}\n"


def task_text(request: Request) -> str:
    """Return the request as one text: the prompt, or the turns of the conversation."""
    if request.prompt is not None:
        return request.prompt
    if len(request.messages) == 1:
        return _text(request.messages[0])
    return "\n\n".join(f"## {m.role}\n\n{_text(m)}" for m in request.messages)


def _text(message: Message) -> str:
    return "".join(
        part.text if part.image is None else f"[image {image_name(part)}]"
        for part in message.parts
    )


def image_name(part: Part) -> str:
    """Return the name of an attached image in the work folder."""
    return f"{str(part.image)[:16]}{_EXTENSIONS.get(part.image_type, '.img')}"


def _place_images(request: Request, work: Path) -> Iterator[Path]:
    for message in request.messages:
        for part in message.parts:
            if part.image is not None:
                path = work / image_name(part)
                _place(path, part.path, part.image)
                yield path


def _place(target: Path, source: str | None, digest: str) -> None:
    target.write_bytes(bytes_at(f"attachment {target.name}", source, digest))


def _safe(name: str) -> str:
    """Return a plain file name.

    Raises:
        ModelConfigError: the name leads elsewhere.
    """
    if name in ("", ".", "..", "task.md") or PurePosixPath(name).name != name or "\\" in name:
        raise ModelConfigError(f"attachment {name!r}", "not a plain file name", "Rename it")
    return name
