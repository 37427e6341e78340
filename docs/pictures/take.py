"""Take the pictures of this folder from a report, in a real Chromium.

    pip install -e ".[browser,images]"
    python docs/pictures/take.py reports/out/index.html

The first screen at three widths in light and dark, and one picture of each of the views that
say most. Colours are reduced to a palette in which rare ones stay, for smaller files.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from chromium import chromium  # noqa: E402

SIZES = {"phone": (390, 844), "tablet": (820, 1000), "wide": (1280, 860)}
# Name, size, scheme, view, and what is scrolled to the top.
VIEWS = (
    ("steps", "wide", "dark", "steps", None),
    ("skill", "wide", "light", "skill", None),
    ("audit", "tablet", "light", "audit/step/1", "#audit h4:text('Verdict')"),
    ("items", "tablet", "dark", "items", None),
    ("rollout", "phone", "light", "items/1", None),
)
COLOURS = 128


def main() -> None:
    """Take all pictures of the report named on the command line."""
    [report] = sys.argv[1:]
    path, wanted = chromium()
    if path is None:
        raise SystemExit(wanted)
    pictures = [
        (f"overview-{size}-{scheme}", size, scheme, "", None)
        for size in SIZES
        for scheme in ("light", "dark")
    ]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, size, scheme, view, top in (*pictures, *VIEWS):
            width, height = SIZES[size]
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page.goto(f"{Path(report).resolve().as_uri()}#/{view}")
            keep(shot(page, top), HERE / f"report-{name}.png")
            page.close()
        browser.close()


def shot(page: Any, top: str | None) -> bytes:
    """Return what the page shows, scrolled so that `top` stands below the header."""
    if top is not None:
        page.locator(top).evaluate(
            "node => scrollTo(0, node.getBoundingClientRect().top + scrollY - 80)"
        )
    picture: bytes = page.screenshot()
    return picture


def keep(picture: bytes, path: Path) -> None:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    small = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()
