"""Where a Chromium is, for the browser tests and the benchmark of the report."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> tuple[str | None, str]:
    """Return the browser's path, or None and what to install."""
    if find_spec("playwright") is None:
        return None, 'needs Playwright: pip install -e ".[browser]"'
    found = os.environ.get("SKILLTRAIL_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    return found, "needs Chromium: apt install chromium, or SKILLTRAIL_CHROMIUM=path"
