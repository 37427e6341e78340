"""The same job by us, by the bare SDK, by bare HTTP, and by other tools that are installed.

    python benchmarks/bench_peers.py [--items 100] [--workers 32] [--rounds 3]
      [--tools bare_sdk ours …]

One Markdown table, in one run, on an instant stub (`benchmarks/stub.py`, its own process).
A job scores three documents on the items (`benchmarks/peers`). Columns: wall time and CPU of
the client per 1,000 calls, the best of the rounds, the tools taking turns; then in calls that
came in at the stub: made again when the finished job is started again; wasted when one of the
three documents is another; extra after SIGKILL at 35 % and at 70 %; and the wall time of a job
of which 5 % of the calls are refused with 429 and 2 % never answered (time limit 3 s a call).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

ROOT = Path(__file__).resolve().parents[1]
TOOLS = {
    "ours": ("Skilltrail", "skilltrail"),
    "bare_sdk": ("bare SDK", "openai"),
    "bare_http": ("bare HTTP", "httpx"),
    "skillopt": ("SkillOpt", "skillopt"),
    "gepa": ("GEPA", "gepa"),
    "dspy": ("DSPy", "dspy"),
    "textgrad": ("TextGrad", "textgrad"),
}
HEAD = (
    "tool", "wall s / 1,000", "× SDK", "CPU s / 1,000", "× SDK", "again", "wasted", "kill 35 %",
    "kill 70 %", "wall s under faults",
)  # fmt: skip
PATIENCE_S = 300


@dataclass(frozen=True)
class Job:
    items: int
    workers: int

    @property
    def calls(self) -> int:
        return 3 * self.items

    def start(self, tool: str, url: str, folder: Path, third: str) -> subprocess.Popen[str]:
        folder.mkdir(parents=True, exist_ok=True)
        words = [tool, url, str(self.items), str(self.workers), str(folder), third]
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peers", *words],
            cwd=folder,  # some leave logs where they run
            env=os.environ | _surroundings(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, tool: str, url: str, folder: Path, third: str) -> dict[str, float]:
        process = self.start(tool, url, folder, third)
        said, complaint = process.communicate(timeout=PATIENCE_S)
        if process.returncode != 0:
            raise RuntimeError(f"{tool}: {complaint[-2000:]}")
        found: dict[str, float] = json.loads(said.splitlines()[-1])
        return found


@contextmanager
def stub(*words: str) -> Iterator[str]:
    """Yield the URL of a stub of one's own."""
    path = str(ROOT / "benchmarks" / "stub.py")
    process = subprocess.Popen(
        [sys.executable, path, *words], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def calls_at(url: str) -> int:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/count") as reply:
        return int(reply.read())


def speed(job: Job, tools: list[str], rounds: int) -> dict[str, tuple[float, float]]:
    """Return wall and CPU seconds per 1,000 calls of each tool, the best of the rounds."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        for tool in tools:
            with stub() as url, TemporaryDirectory() as folder:
                took = job.run(tool, url, Path(folder), "oak")
                calls = calls_at(url) / 1000
            found = (took["wall_s"] / calls, took["cpu_s"] / calls)
            old = best.get(tool, found)
            best[tool] = (min(old[0], found[0]), min(old[1], found[1]))
    return best


def again_and_wasted(job: Job, tool: str) -> tuple[int, int]:
    """Return the calls of a second start, and those beyond need with another third document."""
    with stub() as url, TemporaryDirectory() as folder:
        job.run(tool, url, Path(folder), "oak")
        once = calls_at(url)
        job.run(tool, url, Path(folder), "oak")
        twice = calls_at(url)
        job.run(tool, url, Path(folder), "elm")
        return twice - once, calls_at(url) - twice - job.items


def extra_after_kill(job: Job, tool: str, share: float, usual: int) -> int:
    """Return the calls beyond those of a job that nobody killed."""
    with stub() as url, TemporaryDirectory() as folder:
        process = job.start(tool, url, Path(folder), "oak")
        while process.poll() is None and calls_at(url) < share * usual:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        job.run(tool, url, Path(folder), "oak")
        return calls_at(url) - usual


def usual_calls(job: Job, tool: str) -> int:
    with stub() as url, TemporaryDirectory() as folder:
        job.run(tool, url, Path(folder), "oak")
        return calls_at(url)


def under_faults(job: Job, tool: str) -> float:
    with stub("--faults") as url, TemporaryDirectory() as folder:
        return job.run(tool, url, Path(folder), "oak")["wall_s"]


def installed(tool: str) -> bool:
    try:
        version(TOOLS[tool][1])
    except PackageNotFoundError:
        return tool == "bare_http"
    return True


def machine() -> str:
    """Return what was measured on, in one line."""
    names = {tool: TOOLS[tool][1] for tool in TOOLS if tool not in ("ours", "bare_http")}
    versions = ", ".join(f"{n} {version(n)}" for t, n in names.items() if installed(t))
    cores, memory = psutil.cpu_count(), psutil.virtual_memory().total / 2**30
    return (
        f"{cores} cores ({platform.machine()}), {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}; load {os.getloadavg()[0]:.1f}"
    )


def _surroundings(folder: Path) -> dict[str, str]:
    """Return variables: where to import from, and that caches lie in the job's folder."""
    given = os.environ.get("PYTHONPATH", "")
    return {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [given])]),
        "XDG_CACHE_HOME": str(folder / "cache"),
        # LiteLLM, under two of the tools, would look for prices on the network first.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    args = parser.parse_args()
    job = Job(args.items, args.workers)
    tools = [tool for tool in args.tools if installed(tool)]
    began, best = machine(), speed(job, tools, args.rounds)
    rows = [HEAD, tuple("---" for _ in HEAD)]
    for tool in tools:
        usual = usual_calls(job, tool)
        again, wasted = again_and_wasted(job, tool)
        kills = [extra_after_kill(job, tool, share, usual) for share in (0.35, 0.7)]
        over = [best[tool][at] / best["bare_sdk"][at] for at in (0, 1)]
        wall, cpu = best[tool]
        numbers = [f"{n:.2f}" for n in (wall, over[0], cpu, over[1])]
        counts = map(str, (again, wasted, *kills))
        rows.append((TOOLS[tool][0], *numbers, *counts, f"{under_faults(job, tool):.1f}"))
    for row in rows:
        sys.stdout.write(f"| {' | '.join(row)} |\n")
    absent = [TOOLS[tool][0] for tool in args.tools if tool not in tools]
    sys.stdout.write(
        f"\n{job.calls} calls a job ({args.items} items), {args.workers} in flight, best of "
        f"{args.rounds}; {began}."
        + (f" Not installed: {', '.join(absent)}." if absent else "")
        + "\n"
    )


if __name__ == "__main__":
    main()
