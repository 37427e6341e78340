"""Backend `exec`: any agent program, described in params.

The prompt goes to standard input, never into an argument. The answer is what the program
prints (`parser: text`), or the field `text_field` of its last event that has it (`jsonl`).
"""

from __future__ import annotations

from collections.abc import Mapping

from skilltrail.models.client.backend import cut_at_stop
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.errors import Transient
from skilltrail.models.harness.events import failure, last_text
from skilltrail.models.harness.folder import WorkFolder, work_folder
from skilltrail.models.harness.process import Command, Finished, allowed, run
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.params.model_options import RoleOptions


def exec_wire(options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]) -> ExecWire:
    """Return the wire to the program of `exec.argv`."""
    return ExecWire(options, endpoint, environ)


class ExecWire:
    """One run of the program."""

    def __init__(
        self, options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
    ) -> None:
        self._options, self._endpoint = options, endpoint
        self._env = allowed(environ, options.exec.env)

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        with work_folder(request) as folder:
            finished = await run(
                self._command(request, folder),
                self._endpoint.asked,
                f"Check {self._endpoint.role}.exec.argv",
            )
            if finished.code != 0:
                said = finished.stderr if finished.stderr.strip() else finished.stdout
                raise failure(self._endpoint, finished.code, said)
            return self._reply(finished, folder, request, decoding)

    async def close(self) -> None:
        """Nothing outlives a call."""

    def _command(self, request: Request, folder: WorkFolder) -> Command:
        harness = self._options.exec
        words, prompt = list(harness.argv), folder.task
        if request.system and harness.system_args:
            words += harness.system_args
        elif request.system:
            prompt = f"{request.system.rstrip()}\n\n{folder.task}"
        values = {
            "{model}": self._options.model,
            "{dir}": str(folder.work),
            "{system_file}": str(folder.side_file("system.md", request.system)),
        }
        return Command(
            tuple(_filled(word, values) for word in words), prompt, folder.work, self._env
        )

    def _reply(
        self, finished: Finished, folder: WorkFolder, request: Request, decoding: Decoding
    ) -> Reply:
        skipped, text = 0, finished.stdout.strip()
        if self._options.exec.parser == "jsonl":
            found, skipped = last_text(finished.stdout, self._options.exec.text_field)
            if found is None:
                field = self._options.exec.text_field
                what = f"no event with the field {field!r} ({skipped} unreadable)"
                raise Transient(self._endpoint.asked, what, billed=True)
            text = found
        extra: dict[str, object] = {"skipped_events": skipped} if skipped else {}
        if request.returns:
            extra["files"] = folder.returned(request.returns)
        return Reply(cut_at_stop(text, decoding.stop), model=self._options.model, extra=extra)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
