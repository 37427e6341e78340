"""Backend `exec`: any agent program, described in params.

The prompt goes to standard input, never into an argument. The answer is what the program
prints (`parser: text`), or the field `text_field` of its last event that has it (`jsonl`). A
program that prints nothing has not answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from skilltrail.models.client.classify import Endpoint
from skilltrail.models.environ import Environ
from skilltrail.models.errors import Transient
from skilltrail.models.harness.folder import WorkFolder
from skilltrail.models.harness.harness import Harness, Skipped, failure, last_text, words_of
from skilltrail.models.harness.process import Finished, Invocation, allowed
from skilltrail.models.protocol import Reply, Request
from skilltrail.params.model_options import RoleOptions

# What agent programs print in place of an answer, and end well.
_OWN_ERROR = re.compile(r"(?:API Error\b|Execution error$|Credit balance is too low$)")


def exec_backend(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> ExecHarness:
    """Return the backend of the program of `exec.argv`."""
    env = allowed(environ, options.exec.env)
    return ExecHarness(options, endpoint, env, f"Check {endpoint.role}.exec.argv")


class ExecHarness(Harness):
    """One run of the program."""

    def command(self, request: Request, folder: WorkFolder) -> Invocation:
        harness = self.options.exec
        words, prompt = list(harness.argv), folder.task
        if request.system and harness.system_args:
            words += harness.system_args
        elif request.system:
            prompt = f"{request.system.rstrip()}\n\n{folder.task}"
        values = {
            "{model}": self.options.model,
            "{dir}": str(folder.work),
            "{system_file}": str(folder.side_file("system.md", request.system)),
        }
        argv = tuple(_filled(word, values) for word in words)
        return Invocation(argv, prompt, folder.work, self.env)

    def read(self, finished: Finished) -> Reply:
        if finished.code != 0:
            raise failure(
                self.endpoint, finished.code, words_of(finished.stderr, finished.stdout)
            )
        skipped, text = 0, finished.stdout.strip()
        if self.options.exec.parser == "jsonl":
            field = self.options.exec.text_field
            found, skipped = last_text(finished.stdout, field)
            if found is None:
                what = f"no event with the field {field!r} ({skipped} unreadable)"
                raise Transient(self.endpoint.asked, what, billed=True)
            text = found
        if _OWN_ERROR.match(text):
            raise failure(self.endpoint, 0, text)
        # What it used is not known, so an empty text is a lost one.
        return Reply(text, model=self.options.model, extra=Skipped(skipped).beside([]))


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
