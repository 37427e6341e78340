"""Facts that a team shares through one place: a folder, or S3 (moto on loopback)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toy_world import ToyModel, run_toy, toy_params

from skilltrail.core.errors import ParamError, SkilltrailError
from skilltrail.store.facts import FactStore
from skilltrail.store.ops import Ops
from skilltrail.store.protocol import Fact
from skilltrail.store.remote import RemotePacks, checked
from skilltrail.store.shared import SharedFacts


@pytest.fixture(params=["file", "s3"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The address of an empty shared place."""
    if request.param == "file":
        yield (tmp_path / "team").as_uri()
        return
    pytest.importorskip("s3fs")
    moto = pytest.importorskip("moto.moto_server.werkzeug_app")
    from werkzeug.serving import make_server

    app = moto.DomainDispatcherApplication(moto.create_backend_app)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    import boto3
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    boto3.client("s3").create_bucket(Bucket="team")
    yield f"s3://team/{tmp_path.name}"
    server.shutdown()
    s3fs.S3FileSystem.clear_instance_cache()


class Machine:
    """A store of its own, at a shared place."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.told = folder, list[str]()
        ops = Ops(folder / ".skilltrail" / "ops.jsonl")
        self.store = FactStore.open(folder, ops)
        remote = RemotePacks(url, folder / ".skilltrail" / "shared")
        self.shared = SharedFacts(self.store, remote, ops, self.told.append, look_every_s=0)
        self.store.shared = self.shared

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.store.close()

    def train(self, **changes: Any) -> Any:
        params = toy_params(**changes)
        return run_toy(self.folder, self.store, params, ToyModel(), shared=self.shared)

    def ops(self) -> list[dict[str, Any]]:
        text = (self.folder / ".skilltrail" / "ops.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


def test_what_one_machine_made_another_does_not_pay_for(place: str, tmp_path: Path) -> None:
    with Machine(tmp_path / "a", place) as anna, Machine(tmp_path / "b", place) as bob:
        first, second = anna.train(), bob.train()
        assert first.tally.made > 0
        assert second.tally.made == 0
        assert second.log == first.log
        # And back: what Bob makes beyond it reaches Anna.
        further = bob.train(lr=1)
        assert further.tally.made > 0
        again = anna.train(lr=1)
        assert (again.tally.made, again.log) == (0, further.log)


def test_facts_are_read_in_batches_and_sent_in_batches(place: str, tmp_path: Path) -> None:
    with Machine(tmp_path / "a", place) as anna, Machine(tmp_path / "b", place) as bob:
        made = anna.train().tally.made
        sent = [row for row in anna.ops() if row["type"] == "remote.sent"]
        assert sum(row["facts"] for row in sent) == made
        assert len(sent) < made / 2
        bob.train()
        read = [row for row in bob.ops() if row["type"] == "remote.read"]
        assert sum(row["facts"] for row in read) == made
        assert len(read) <= len(sent)


def test_a_run_without_the_shared_place_has_the_same_log(place: str, tmp_path: Path) -> None:
    with Machine(tmp_path / "a", place) as anna, FactStore.open(tmp_path / "c") as alone:
        assert run_toy(tmp_path / "c", alone, toy_params()).log == anna.train().log


def test_what_only_this_machine_had_is_sent_when_a_run_asks_for_it(
    place: str, tmp_path: Path
) -> None:
    with FactStore.open(tmp_path / "a") as alone:
        run_toy(tmp_path / "a", alone, toy_params())
    with Machine(tmp_path / "a", place) as anna, Machine(tmp_path / "b", place) as bob:
        assert anna.train().tally.made == 0
        assert bob.train().tally.made == 0


def test_without_a_network_the_work_goes_on_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    with Machine(tmp_path / "a", "s3://team/facts") as anna:
        assert anna.train().tally.made > 0
        (said,) = anna.told
        assert "cannot be reached" in said
        assert "a-secret" not in said + json.dumps(anna.ops())
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_a_bucket_that_is_not_there_is_an_error(place: str, tmp_path: Path) -> None:
    with (
        Machine(tmp_path / "a", "s3://nobodys/facts") as anna,
        pytest.raises(SkilltrailError, match=r"store\.remote"),
    ):
        anna.train()


def test_a_damaged_pack_is_passed_over_made_again_and_named(tmp_path: Path) -> None:
    team = tmp_path / "team"
    with Machine(tmp_path / "a", team.as_uri()) as anna:
        made = anna.train().tally.made
    packs = sorted((team / "packs").iterdir())
    packs[0].write_bytes(packs[0].read_bytes()[:-9])
    with Machine(tmp_path / "b", team.as_uri()) as bob:
        again = bob.train()
        assert 0 < again.tally.made < made
        assert packs[0].name in bob.told[0]
    with Machine(tmp_path / "c", team.as_uri()) as carol:
        # What the damaged pack held is in one of Bob's.
        assert carol.train().tally.made == 0


def test_a_half_written_index_is_read_once_it_is_whole(tmp_path: Path) -> None:
    team = tmp_path / "team"
    with Machine(tmp_path / "a", team.as_uri()) as anna:
        anna.train()
    index = sorted((team / "index").iterdir())
    whole = {path: path.read_bytes() for path in index}
    for path in index:
        path.write_bytes(whole[path][:70])
    remote = RemotePacks(team.as_uri(), tmp_path / "cache")
    remote.look()
    assert remote.packs == {}
    for path, data in whole.items():
        path.write_bytes(data)
    remote.look()
    assert len(remote.packs) > 0
    assert all(len(key) == 64 for key in remote.packs)


def _write(url: str, cache: Path, number: int) -> None:
    keys = [f"{n:064x}" for n in range(number, number + 40)]
    facts = [Fact.of("call", key, {"reply": key}) for key in keys]
    RemotePacks(url, cache).write(facts)


def test_many_writers_at_once_lose_nothing(place: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_write, args=(place, tmp_path / f"cache{n}", 20 * n))
        for n in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with Machine(tmp_path / "a", place) as anna:
        keys = [f"{n:064x}" for n in range(100)]
        asyncio.run(anna.shared.expect(keys))
        assert anna.store.has_many(keys) == set(keys)


@pytest.mark.parametrize(
    "url",
    [
        "", "team", "/srv/team", "ftp://host/team", "s3://", "file://team", "file://host/team",
        "s3://key:secret@bucket/team", "s3://bucket/team?secret=x", "s3://[bucket",
    ],
)  # fmt: skip
def test_an_address_that_cannot_work_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(ParamError) as found:
        checked(url)
    assert "secret" not in str(found.value)


def test_an_index_that_promises_what_its_pack_has_not_costs_one_look(tmp_path: Path) -> None:
    team, facts = tmp_path / "team", [Fact.of("call", "a", {"reply": "a"})]
    RemotePacks(team.as_uri(), tmp_path / "cache").write(facts)
    (index,) = (team / "index").iterdir()
    keys = b"a\nb"
    index.rename(index.with_name(f"{index.name[:64]}-{hashlib.sha256(keys).hexdigest()}"))
    (index,) = (team / "index").iterdir()
    index.write_bytes(keys)
    with Machine(tmp_path / "a", team.as_uri()) as anna:
        asyncio.run(anna.shared.expect(["b", "a"]))
        assert anna.store.has_many(["a", "b"]) == {"a"}


def test_a_fact_of_a_stranger_that_is_no_fact_is_passed_over(tmp_path: Path) -> None:
    team, lines = tmp_path / "team", b'{"digest":"0","key":"a","kind":"call","value":{}}\n'
    pack, keys = hashlib.sha256(lines).hexdigest(), b"a\n../../etc"
    for name, data in {
        f"packs/{pack}": zlib.compress(lines),
        f"index/{pack}-{hashlib.sha256(keys).hexdigest()}": keys,
        "index/no-index-at-all": b"\xff",
    }.items():
        path = team / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with Machine(tmp_path / "a", team.as_uri()) as anna:
        asyncio.run(anna.shared.expect(["a"]))
        assert anna.store.get("a") is None
        assert "passed over" in anna.told[0]
