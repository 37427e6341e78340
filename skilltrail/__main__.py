"""`python -m skilltrail`: the command, where no console script is on the PATH."""

from __future__ import annotations

from skilltrail.cli.main import main

if __name__ == "__main__":
    main()
