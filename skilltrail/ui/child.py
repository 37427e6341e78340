"""`dvc` as a person at a terminal has it: SIGINT reaches it, whatever started the live page.

A shell that starts a program in the background lets it ignore SIGINT, and so would all that the
program starts. On SIGINT, and on no other signal, DVC puts HEAD back where it was.
"""

from __future__ import annotations

import signal
import sys
from runpy import run_module


def main() -> None:
    """Run `dvc` with this process's arguments."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[0], sys.path[0] = "dvc", ""  # as `python -m dvc` in the working directory
    run_module("dvc", run_name="__main__")


if __name__ == "__main__":
    main()
