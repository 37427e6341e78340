"""Rollouts on a Ray cluster: the same bytes as here, whatever happens to its nodes."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cluster_world
import pytest
from env_world import ROOT, env_of, own_items
from toy_world import SEED_SKILL, ToyModel, items_of, run_toy, toy_params

from skilltrail.core.errors import BudgetError, ParamError
from skilltrail.core.targets import Target
from skilltrail.envs.registry import environment_class
from skilltrail.method.making import Here
from skilltrail.models.client.budget import UNUSED, Amount
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.panel import Panel
from skilltrail.models.protocol import Request
from skilltrail.models.registry import open_model
from skilltrail.params.executor import RayOptions
from skilltrail.params.model_options import BudgetOptions, RetryOptions, RoleOptions
from skilltrail.runtime.cluster.connection import (
    Cluster,
    connected,
    needs_of,
    refuse_models_of_here,
    stage,
)
from skilltrail.runtime.cluster.maker import RayMaker, room_on
from skilltrail.runtime.cluster.node import Barred, RolloutJob, probes_for, roll_out
from skilltrail.runtime.cluster.purse import Purse
from skilltrail.runtime.spending import Accounts, spent_in
from skilltrail.store.facts import FactStore

CPU = {"cpu": 1.0}
KNOWS = (Request(system="- know ash", prompt="ash"),)


# --- what needs no cluster ---


@pytest.mark.parametrize("amount", [0, -1, True, "two", float("nan"), float("inf")])
def test_what_a_rollout_takes_is_a_positive_amount(amount: Any) -> None:
    with pytest.raises(ParamError, match=r"ray\.resources\.docker"):
        needs_of(RayOptions(resources={"docker": amount}))


def test_a_rollout_takes_something() -> None:
    with pytest.raises(ParamError, match="empty"):
        needs_of(RayOptions(resources={}))


def test_a_node_has_room_for_what_its_scarcest_resource_allows() -> None:
    assert room_on({"CPU": 8.0, "docker": 2.0}, {"cpu": 1.0, "docker": 1.0}) == 2
    assert room_on({"CPU": 8.0}, {"cpu": 1.0, "docker": 1.0}) == 0
    assert room_on({"CPU": 1.0}, {"cpu": 0.5}) == 2


@pytest.mark.parametrize("backend", ["handoff", "replay"])
def test_answers_that_lie_here_are_refused_on_a_cluster(backend: str) -> None:
    with pytest.raises(ModelConfigError, match="executor: local"):
        refuse_models_of_here("target", RoleOptions(backend=backend), ToyModel())


def test_several_targets_are_refused_on_a_cluster() -> None:
    panel = Panel([Target("one")], {"one": ToyModel()})
    with pytest.raises(ModelConfigError, match="several `targets`"):
        refuse_models_of_here("target", RoleOptions(), panel)


def test_only_embedded_models_are_probed() -> None:
    assert probes_for(RoleOptions()) != ()
    assert probes_for(RoleOptions(backend="openai")) == ()


def test_nodes_are_handed_code_and_environments_and_no_secret(tmp_path: Path) -> None:
    workspace, folder = tmp_path / "work", tmp_path / "staged"
    cluster_world.write_workspace(workspace)
    (workspace / ".env").write_text("OPENAI_API_KEY=sk-very-secret", encoding="utf-8")
    (workspace / "envs" / ".env").write_text("KEY=sk-very-secret", encoding="utf-8")
    folder.mkdir()
    stage(folder, workspace, env_of("textqa"))
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert folder / "envs" / "toy" / "env.py" in found
    assert folder / "skilltrail" / "method" / "loop.py" in found
    assert not [path for path in found if b"sk-very-secret" in path.read_bytes()]


def test_files_of_items_lie_on_a_node_where_they_lie_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "work"
    data = workspace / "data" / "docvqa"
    data.mkdir(parents=True)
    (workspace / "dvc.yaml").touch()
    (tmp_path / "page.png").write_bytes(b"a page")
    (data / "page.png").symlink_to(tmp_path / "page.png")
    monkeypatch.chdir(workspace)
    stage(tmp_path / "staged", workspace, env_of("docvqa"))
    assert (tmp_path / "staged" / "data" / "docvqa" / "page.png").read_bytes() == b"a page"


def test_a_data_folder_outside_the_workspace_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for folder in (workspace, elsewhere):
        folder.mkdir()
    (workspace / "dvc.yaml").touch()
    monkeypatch.chdir(workspace)
    with pytest.raises(ParamError, match=r"data_dirs.*elsewhere"):
        stage(tmp_path / "staged", workspace, env_of("docvqa", data_dirs=(str(elsewhere),)))


def test_what_a_lost_node_held_counts_at_its_most_and_frees_who_waits(tmp_path: Path) -> None:
    ledger = tmp_path / "spent.jsonl"

    async def spend() -> list[BudgetError | None]:
        limits = RoleOptions(budget=BudgetOptions(calls=2))
        purse = Purse("target", limits, ledger)
        first = await purse.reserve("lost", Amount(1))
        second = await purse.reserve("done", Amount(1))
        third = asyncio.create_task(purse.reserve("waits", Amount(1)))
        await asyncio.sleep(0)
        await purse.lost("lost")
        await purse.settle("lost", Amount(1), UNUSED)  # told too late: it counts already
        assert not third.done()
        await purse.settle("done", Amount(1), UNUSED)
        return [first, second, await third]

    first, second, third = asyncio.run(spend())
    assert first is second is None
    assert isinstance(third, BudgetError)
    assert spent_in(ledger, "target").calls == 2


def test_a_job_survives_its_way_and_a_rollout_is_the_one_made_here(
    workspace: Path, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    env = environment_class("toy")()
    options = RoleOptions(model=str(calls))
    job = RolloutJob(
        "one", "toy", pickle.dumps(env.params), "target", options, ToyModel.identity,
        cluster_world.telling, KNOWS, ["ash"],
    )  # fmt: skip
    item = items_of("train")[0]
    there = roll_out(pickle.loads(pickle.dumps(job)), SEED_SKILL, item, "1", None)
    here = asyncio.run(Here(env, ToyModel()).make(item, SEED_SKILL))
    assert there == here
    assert calls.read_text(encoding="utf-8").count("ended") == len(KNOWS) + 1


class NodesOnPaper:
    """What Ray says of its nodes."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {
                "NodeID": name, "Alive": True, "NodeManagerHostname": f"host-{name}",
                "Resources": {"CPU": 4.0},
            }
            for name in self.names
        ]  # fmt: skip

    def remote(self, function: Any) -> Any:
        return function


def test_a_run_stops_when_no_node_may_be_used_and_names_the_last(workspace: Path) -> None:
    told: list[Any] = []
    maker = RayMaker(
        NodesOnPaper("a", "b"), environment_class("toy")(), "target", RoleOptions(),
        ToyModel(), CPU, purse=lambda: None, say=told.append,
        report=lambda kind, **fields: told.append((kind, fields)),
    )  # fmt: skip
    assert maker.workers == 8
    maker._bar(Barred("a", "another rounding"))
    assert maker.workers == 4
    assert maker._placed()["label_selector"] == {"ray.io/node-id": "!in(a)"}
    with pytest.raises(ModelConfigError, match=r"host-b .*another rounding"):
        maker._bar(Barred("b", "another rounding"))
    assert [kind for kind, _ in told[1::2]] == ["node.barred", "node.barred"]


# --- on a cluster of processes ---


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with the toy environment; the working directory."""
    folder = tmp_path / "work"
    cluster_world.write_workspace(folder)
    monkeypatch.chdir(folder)
    return folder


class Nodes:
    """A cluster: a head without room and two nodes with one core each."""

    def __init__(self) -> None:
        cluster_utils = pytest.importorskip("ray.cluster_utils")
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 80_000_000}
        self._cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address
        self._joined: list[subprocess.Popen[bytes]] = []

    def add(self, **env: str) -> Any:
        memory = 80_000_000
        return self._cluster.add_node(num_cpus=1, object_store_memory=memory, env_vars=env)

    def join(self) -> subprocess.Popen[bytes]:
        """Start another node as a person does, from any thread."""
        ray = "from ray.scripts.scripts import main; main()"
        about = ["--address", self.address, "--num-cpus", "1", "--block"]
        self._joined.append(subprocess.Popen([sys.executable, "-c", ray, "start", *about]))
        return self._joined[-1]

    def kill(self, node: Any) -> None:
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        for process in self._joined:
            process.terminate()
            process.wait()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "RAY_USAGE_STATS_ENABLED": "0",
            # A busy machine starts processes slowly.
            "RAY_agent_register_timeout_ms": "120000",
            "RAY_worker_register_timeout_seconds": "300",
        }.items():
            patch.setenv(name, value)
        found = Nodes()
        yield found
        found.close()


@pytest.fixture
def connection(nodes: Nodes, workspace: Path) -> Iterator[tuple[Cluster, list[Any]]]:
    import ray

    ray.cloudpickle.register_pickle_by_value(cluster_world)
    told: list[Any] = []
    env = environment_class("toy")()
    options = RayOptions(address=nodes.address)
    report = lambda kind, **fields: told.append((kind, fields))  # noqa: E731
    with connected(workspace, options, env, Accounts(), report) as cluster:
        yield cluster, told


def maker_of(
    cluster: Cluster, file: Path, told: list[Any], probed: bool = True, **budget: Any
) -> RayMaker:
    """Return a maker with the telling model as target."""
    import ray

    retry = RetryOptions(attempts=3)
    options = RoleOptions(model=str(file), budget=BudgetOptions(**budget), retry=retry)
    return RayMaker(
        ray, environment_class("toy")(), "target", options, ToyModel(), CPU,
        purse=lambda: cluster._purse("target", options),
        say=lambda text: told.append(("said", text)),
        report=lambda kind, **fields: told.append((kind, fields)),
        opener=cluster_world.telling, probes=KNOWS if probed else (),
    )  # fmt: skip


def log_of(folder: Path, **parts: Any) -> bytes:
    """Return the log of a toy training with a store of its own."""
    env = environment_class("toy")()
    with FactStore.open(folder) as store:
        return run_toy(folder, store, toy_params(), env=env, **parts).log


def ended(calls: Path) -> Counter[str]:
    lines = calls.read_text(encoding="utf-8").splitlines()
    return Counter(line for line in lines if line.startswith("ended"))


@pytest.mark.cluster
def test_a_log_is_the_same_here_and_on_nodes_of_which_one_is_lost_and_one_comes(
    connection: tuple[Cluster, list[Any]], nodes: Nodes, workspace: Path, tmp_path: Path
) -> None:
    cluster, told = connection
    here = [log_of(tmp_path / str(n), model=ToyModel(workers=n)) for n in (1, 4)]
    calls = tmp_path / "calls"
    stuck, first = nodes.add(STUCK="1"), nodes.add()

    def replace_the_stuck_node() -> None:
        until = time.monotonic() + 300
        while not (calls.exists() and "stuck" in calls.read_text(encoding="utf-8")):
            if time.monotonic() > until:
                return
            time.sleep(0.05)
        nodes.kill(stuck)
        nodes.join()

    chaos = threading.Thread(target=replace_the_stuck_node)
    chaos.start()
    there = log_of(tmp_path / "ray", maker=maker_of(cluster, calls, told, probed=False))
    chaos.join()
    assert here == [there, there]
    assert [kind for kind, _ in told] == ["rollout.lost"]
    lines = calls.read_text(encoding="utf-8").split("\n")
    assert sum("stuck" in line for line in lines) == 1
    # Whatever ended was recorded: nothing was asked again but what the lost node was at.
    assert sum("begun" in line for line in lines) == sum(ended(calls).values()) + 1
    with FactStore.open(tmp_path / "ray") as store:
        rollouts = store.query("SELECT count(*) FROM facts WHERE kind = 'rollout'")
    assert sum(ended(calls).values()) == rollouts[0][0]
    nodes.kill(first)


@pytest.mark.cluster
def test_a_node_that_answers_otherwise_makes_nothing_and_is_named(
    connection: tuple[Cluster, list[Any]], nodes: Nodes, workspace: Path, tmp_path: Path
) -> None:
    cluster, told = connection
    sound, other = nodes.add(), nodes.add(ROUNDS="otherwise")
    there = log_of(tmp_path / "ray", maker=maker_of(cluster, tmp_path / "calls", told))
    assert there == log_of(tmp_path / "here", model=ToyModel())
    (barred,) = [fields for kind, fields in told if kind == "node.barred"]
    assert other.node_id[:12] in barred["node"]
    assert "'ashotherwise', by the head 'ash'" in barred["why"]
    nodes.kill(sound)
    nodes.kill(other)


@pytest.mark.cluster
def test_a_budget_is_exact_to_the_call_over_all_nodes(
    connection: tuple[Cluster, list[Any]], nodes: Nodes, workspace: Path, tmp_path: Path
) -> None:
    cluster, told = connection
    pair = nodes.add(), nodes.add()
    calls = tmp_path / "calls"
    with pytest.raises(BudgetError, match="5 of 5 used"):
        log_of(tmp_path, maker=maker_of(cluster, calls, told, probed=False, calls=5))
    assert sum(ended(calls).values()) == 5
    for node in pair:
        nodes.kill(node)


@pytest.mark.cluster
def test_the_embedded_model_answers_on_a_node_as_it_does_here(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    items = [loaded.item for loaded in own_items("textqa")][:3]
    env, options = env_of("textqa"), RoleOptions(workers=1)
    skill = "# Answer briefly\n\nGive the shortest span of the context that answers.\n"
    node = nodes.add()
    target = open_model("target", options)

    async def made(maker: Any) -> list[Any]:
        return [await maker.make(item, skill) for item in items]

    with connected(
        ROOT, RayOptions(address=nodes.address), env, Accounts(), lambda kind, **fields: None
    ) as cluster:
        there = asyncio.run(made(cluster.maker(env, "target", options, target)))
    here = asyncio.run(made(Here(env, target)))
    asyncio.run(target.close())
    assert there == here
    nodes.kill(node)
