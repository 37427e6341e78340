"""What a sandboxed call costs over a bare one.

    python benchmarks/bench_sandbox.py [--rounds 60] [--json FILE]

Both run `true`; the ways take turns and the shortest of the readings counts, so that a busy
machine hurts both alike. Wanted: at most 30 ms more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from skilltrail.sandbox.choose import open_sandbox, why_not  # noqa: E402
from skilltrail.sandbox.protocol import Job, Sandbox  # noqa: E402

WANTED_MS = 30.0


async def one_ms(sandbox: Sandbox) -> float:
    """Return the wall milliseconds of one call."""
    began = time.perf_counter()
    await sandbox.run(Job(("/usr/bin/true",)))
    return (time.perf_counter() - began) * 1000


async def measure(rounds: int) -> dict[str, float]:
    """Return the shortest wall milliseconds of a call with and without the sandbox."""
    boxed, bare = open_sandbox("bubblewrap"), open_sandbox("none")
    readings = [(await one_ms(boxed), await one_ms(bare)) for _ in range(rounds)]
    boxed_ms, bare_ms = (min(column) for column in zip(*readings, strict=True))
    return {
        "boxed_ms": round(boxed_ms, 2),
        "bare_ms": round(bare_ms, 2),
        "added_ms": round(boxed_ms - bare_ms, 2),
        "wanted_ms": WANTED_MS,
    }


def main() -> None:
    """Run the benchmark and write its figures, and to a file where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    missing = why_not()
    if missing is not None:
        sys.stdout.write(f"bench_sandbox: nothing to measure: {missing}\n")
        return
    text = json.dumps(asyncio.run(measure(args.rounds)), indent=2) + "\n"
    if args.json is not None:
        args.json.write_text(text, encoding="utf-8", newline="\n")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
