"""Do the job by one tool and print what it took; imports are not counted.

python -m benchmarks.peers NAME URL ITEMS WORKERS FOLDER THIRD
"""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib import import_module
from pathlib import Path


def main() -> None:
    name, url, items, workers, folder, third = sys.argv[1:]
    tool = import_module(f"benchmarks.peers.{name}")
    getattr(tool, "prepare", lambda folder: None)(Path(folder))
    began = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF)
    tool.run(url, int(items), int(workers), Path(folder), third)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sys.stdout.write(json.dumps({"wall_s": time.perf_counter() - began, "cpu_s": cpu_s}) + "\n")


if __name__ == "__main__":
    main()
