"""What lets a browser in, on loopback too: other users of this machine can connect as well.

A project has a token, and its server an address that works once; who opens it gets the token as
a cookie. Both stand in a file of mode 0600 in `.skilltrail`, where a second browser finds the
next address and a script the token (`Authorization: Bearer TOKEN`). The token outlives the
server, so that a page goes on when it is started again; deleting the file ends it.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from skilltrail.core.canon import loaded
from skilltrail.core.files import writing

BYTES = 32


class Pass:
    """The token and the one-time address of one server."""

    def __init__(self, state: Path, server: str) -> None:
        """Take `state` as the folder of the file, and `server` as the address served.

        Raises:
            SkilltrailError: the file cannot be written.
        """
        self.file = state / f"ui-{urlsplit(server).port}.json"
        self.token = self._kept()
        self._server = server
        self._renew()

    @property
    def address(self) -> str:
        return f"{self._server}?token={self._once}"

    def knows(self, given: str) -> bool:
        """Return whether `given` is the token."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def admits(self, given: str) -> bool:
        """Return whether `given` is what the one-time address says; if so it is used up.

        Raises:
            SkilltrailError: the next one cannot be written.
        """
        if not hmac.compare_digest(given.encode(), self._once.encode()):
            return False
        self._renew()
        return True

    def _kept(self) -> str:
        """Return the token of the server before, or a new one: only we may have read it."""
        try:
            with self.file.open("rb") as file:
                about = os.fstat(file.fileno())
                token = str(loaded(file.read())["token"])
        except (OSError, ValueError, KeyError, TypeError):
            return secrets.token_urlsafe(BYTES)
        ours = about.st_uid == os.geteuid() and about.st_mode & 0o077 == 0
        return token if ours and len(token) > BYTES else secrets.token_urlsafe(BYTES)

    def _renew(self) -> None:
        self._once = secrets.token_urlsafe(BYTES)
        text = json.dumps({"address": self.address, "token": self.token}) + "\n"
        with writing(self.file):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.unlink(missing_ok=True)  # never into a file that somebody else made
            made = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(made, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
