"""The tests of a skill's scripts, run in a sandbox with the whole folder around them.

`scripts/test_NAME` is the test of `scripts/NAME`. A Python test is a file of functions `test_*`
or of `unittest` cases; any other is a shell script. One that holds no test has not passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.core.canon import digest
from skilltrail.sandbox.protocol import Job, Limits, Sandbox
from skilltrail.skill.candidate import Candidate
from skilltrail.skill.edit import EditStatus
from skilltrail.skill.fence import clip
from skilltrail.skill.folder import files_of, is_script, test_of
from skilltrail.skill.folder_edits import Refusal

TAG = "script_test/1"
LIMITS = Limits(wall_s=60.0, cpu_s=60, memory_mb=1024)
_SAID_CHARS = 4000
_RUNNER = """\
import importlib.util, inspect, pathlib, sys, unittest
path = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(path.parent), "."]
spec = importlib.util.spec_from_file_location(path.stem, path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
suite = unittest.defaultTestLoader.loadTestsFromModule(module)
for name, one in vars(module).items():
    if name.startswith("test_") and inspect.isfunction(one):
        suite.addTest(unittest.FunctionTestCase(one))
if not suite.countTestCases():
    sys.exit("there is no test in it")
sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
"""


def test_key(files: Mapping[str, str], test: str) -> str:
    """Return the fact key of a test's run: the folder's files, and which test it is."""
    return digest(TAG, {"files": dict(files), "test": test})


async def run_test(sandbox: Sandbox, files: Mapping[str, str], test: str) -> dict[str, Any]:
    """Return how a test of the folder's scripts ended: the value of a fact."""
    argv: tuple[str, ...] = ("/bin/sh", test)
    if test.endswith(".py"):
        argv = (sandbox.interpreter, "-c", _RUNNER, test)
    told = {path: text.encode() for path, text in files.items()}
    ran = await sandbox.run(Job(argv, told, limits=LIMITS))
    return {
        "sandbox": sandbox.name,
        "ending": ran.ending,
        "exit": ran.exit_code,
        "stdout": clip(ran.stdout, _SAID_CHARS)[0],
        "stderr": clip(ran.stderr, _SAID_CHARS)[0],
    }


def wanted_tests(candidate: Candidate) -> list[str]:
    """Return the tests of the scripts that a candidate changes, in order."""
    before, after = files_of(candidate.parent), files_of(candidate.text)
    return [
        test_of(path) for path in after if is_script(path) and after[path] != before.get(path)
    ]


def refused_by(tests: Sequence[Mapping[str, Any]]) -> Refusal | None:
    """Return why no script may change after these runs of tests; None = all have passed."""
    for one in tests:
        if not one["passed"]:
            how = "was ended" if one["exit"] is None else f"fails with exit code {one['exit']}"
            return EditStatus.INVALID, f"failed_test: {one['test']} {how}"
    return None
