"""The prompted optimizer end to end: target and optimizer over the wire, the model a real one.

A model of 135M parameters proposes poor edits, if any; what must come out is a finished run
whose every decision can be verified.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from skilltrail.cli.main import run
from skilltrail.models.backends.weights import EMBEDDED, PACKAGE, find_weights
from tests.llama_server import llama_server
from tests.model_world import project, run_stages


def test_a_real_model_as_the_optimizer_gives_a_finished_and_verified_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in (PACKAGE, "xllamacpp"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: run `make setup`")
    with llama_server(Path(find_weights(EMBEDDED).path), n_ctx=4096) as url:
        role = {
            "backend": "openai",
            "api": "chat",
            "model": "smollm2",
            "provider": "llama",
            "base_url": f"{url}/v1",
            "temperature": 0.0,
            "timeout_s": 300,
            "workers": 1,
        }
        # Greedy, a model this small repeats itself without end; sampled, it ends its texts.
        sampled = {"max_tokens": 300, "temperature": 1.0, "seed": 3}
        project(
            tmp_path,
            role | {"max_tokens": 6},
            items=2,
            batch_size=2,
            optimizer=role | sampled,
            reflect={"trajectory_chars": 300, "success": "never", "show": ["reference"]},
        )
        run_stages(tmp_path, monkeypatch)
    lines = (tmp_path / "skills/events.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    assert events[-1]["type"] == "run.finished"
    asked = [e for e in events if e["type"] in ("patch.proposed", "reply.rejected")]
    assert any(event["data"]["reply"] is not None for event in asked)
    usage = json.loads((tmp_path / ".skilltrail/usage.json").read_text("utf-8"))
    assert usage["train"]["optimizer"]["made"] > 0
    assert run(["verify", "--allow-absent", "anchored"]) == 0
