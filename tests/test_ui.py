"""The live page: who may ask, what a run does now, and that it survives what a run does."""

import asyncio
import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from report_world import Project, make_project

starlette = pytest.importorskip("starlette", reason='needs pip install -e ".[ui]"')

from skilltrail.core.errors import ParamError, SkilltrailError, UsageError  # noqa: E402
from skilltrail.params.tree import plain  # noqa: E402
from skilltrail.runtime.workspace import changes_of, params_with  # noqa: E402
from skilltrail.store.owner import process_of  # noqa: E402
from skilltrail.store.place import Place  # noqa: E402
from skilltrail.ui import options, watch  # noqa: E402
from skilltrail.ui.app import Live  # noqa: E402
from skilltrail.ui.asking import Ask  # noqa: E402
from skilltrail.ui.guard import Guard, Pass  # noqa: E402
from skilltrail.ui.runner import Runner  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
STRANGER = {"host": "127.0.0.1:8631"}
OWN = {**STRANGER, "authorization": "Bearer right"}
CHANGE = {**OWN, "x-skilltrail": "1", "content-type": "application/json"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = make_project(tmp_path_factory.mktemp("ui"), {"epochs": 1, "batch_size": 4})
    (made.folder / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    return made


def live(folder: Path) -> Live:
    place = Place(folder, folder)
    return Live(place, lambda: {}, Ask(place))


def guard(folder: Path) -> Guard:
    return admitting(folder)[0]


def admitting(folder: Path) -> tuple[Guard, Pass]:
    admission = Pass(folder / ".skilltrail", "http://127.0.0.1:8631/")
    admission.token = "right"
    return Guard(live(folder).app(), port=8631, admission=admission), admission


def ask(
    app: Any, path: str, headers: dict[str, str], method: str = "GET", body: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    """Send one request to an ASGI application, as the bytes of a client would make it."""
    path, _, query = path.partition("?")
    if method != "GET":
        headers = {"content-length": str(len(body)), **headers}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
        "query_string": query.encode(), "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8631),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], answered, b"".join(part.get("body", b"") for part in sent[1:])


def test_the_page_is_served_with_a_strict_policy(project: Project) -> None:
    status, headers, body = ask(guard(project.folder), "/", OWN)
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    assert b'id="now"' in body


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.invalid:8631"},
        {"host": "evil.invalid"},
        {"host": "127.0.0.1:9999"},
        {"host": "127.0.0.1.evil.invalid:8631"},
        {},
        {**OWN, "origin": "http://evil.invalid"},
        {**OWN, "origin": "null"},
        {**OWN, "origin": "https://127.0.0.1:8631"},
        {**OWN, "origin": "http://localhost:9999"},
        {**OWN, "sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/state", "/api/stream", "/api/params"])
def test_another_site_gets_nothing(
    project: Project, path: str, headers: dict[str, str]
) -> None:
    status, _, body = ask(guard(project.folder), path, headers)
    assert status in (403, 421)
    assert b"toy" not in body


def test_a_link_from_elsewhere_may_open_the_page_but_ask_for_no_data(project: Project) -> None:
    visit = {**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    visit["sec-fetch-dest"] = "document"
    app = guard(project.folder)
    assert ask(app, "/", visit)[0] == 200
    assert ask(app, "/api/state", visit)[0] == 403
    assert ask(app, "/", {**visit, "sec-fetch-dest": "iframe"})[0] == 403


@pytest.mark.parametrize("missing", ["x-skilltrail", "content-type"])
def test_a_change_needs_what_no_form_can_send(project: Project, missing: str) -> None:
    headers = {name: value for name, value in CHANGE.items() if name != missing}
    assert ask(guard(project.folder), "/api/start", headers, "POST", b"{}")[0] == 403
    assert not (project.folder / ".skilltrail/ui.json").exists()


def test_a_form_encoded_change_is_refused(project: Project) -> None:
    headers = {**CHANGE, "content-type": "text/plain"}
    assert ask(guard(project.folder), "/api/stop", headers, "POST", b"{}")[0] == 403


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/params.yaml", "/.git/config", "//etc"],
)
def test_no_path_reaches_a_file(project: Project, path: str) -> None:
    status, _, body = ask(guard(project.folder), path, OWN)
    assert status == 404
    assert b"root:" not in body


@pytest.mark.parametrize("run", ["../../etc/passwd", "..", "skills/events.jsonl", "", "\x00"])
def test_runs_are_looked_up_and_never_opened_by_path(project: Project, run: str) -> None:
    assert ask(guard(project.folder), f"/?run={run}", OWN)[0] == 404


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/stream", "/api/params", "/nothing"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "right"},
        {"authorization": "Bearer "},
        {"cookie": "skilltrail-token=wrong"},
        {"cookie": "skilltrail-token="},
        {"cookie": "other=right"},
        {"cookie": '"\\'},
    ],
)
def test_on_loopback_too_everything_needs_the_token(
    project: Project, path: str, headers: dict[str, str]
) -> None:
    status, _, body = ask(guard(project.folder), path, {**STRANGER, **headers})
    assert status == 401
    assert b"toy" not in body
    change = {**CHANGE, "authorization": "", **headers}
    assert ask(guard(project.folder), "/api/start", change, "POST", b"{}")[0] == 401


def test_the_address_works_once_and_leaves_a_cookie(tmp_path: Path) -> None:
    app, admission = admitting(tmp_path)
    assert ask(app, "/?token=", STRANGER)[0] == 401
    once = admission.address.partition("8631")[2]
    assert "right" not in once
    assert ask(app, once.replace("/?", "/api/state?"), STRANGER)[0] == 401
    status, headers, _ = ask(app, once, STRANGER)
    assert (status, headers["location"]) == (303, "/")
    assert "HttpOnly; SameSite=Strict" in headers["set-cookie"]
    cookie = headers["set-cookie"].split(";")[0]
    assert ask(app, "/api/state", {**STRANGER, "cookie": cookie})[0] == 200
    assert ask(app, once, STRANGER)[0] == 401
    assert ask(app, admission.address.partition("8631")[2], STRANGER)[0] == 303


def test_token_and_next_address_are_for_the_owner_alone_to_read(tmp_path: Path) -> None:
    secret, file = tmp_path / "secret", tmp_path / "ui-8631.json"
    secret.write_text("kept", encoding="utf-8")
    file.symlink_to(secret)  # is not written through
    old = os.umask(0)
    try:
        admission = Pass(tmp_path, "http://[::1]:8631/")
        assert file.stat().st_mode & 0o777 == 0o600
        told = json.loads(file.read_bytes())
        assert told == {"address": admission.address, "token": admission.token}
        assert admission.admits(admission.address.partition("token=")[2])
        assert json.loads(file.read_bytes())["address"] == admission.address
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)
    assert secret.read_text(encoding="utf-8") == "kept"


def test_a_page_goes_on_with_the_next_server_unless_others_could_read_the_token(
    tmp_path: Path,
) -> None:
    first = Pass(tmp_path, "http://127.0.0.1:8631/")
    second = Pass(tmp_path, "http://127.0.0.1:8631/")
    assert first.token == second.token
    assert first.address != second.address
    first.file.chmod(0o644)
    assert Pass(tmp_path, "http://127.0.0.1:8631/").token != first.token
    for text in ("", "{", "[]", '{"address": ""}', '{"token": ""}', "[" * 2000):
        first.file.write_text(text, encoding="utf-8")
        assert len(Pass(tmp_path, "http://127.0.0.1:8631/").token) > 40


START_ELSEWHERE: list[tuple[str, Any]] = [
    *(
        (f"{role}.{name}", value)
        for role in ("target", "optimizer", "judge")
        for name, value in (
            ("base_url", "http://127.0.0.1:9/v1"), ("key_env", "OTHER_API_KEY"),
            ("backend", "openai"), ("backend", "exec"), ("provider", "x"),
            ("replays", "openai"), ("region", "cn_zh"), ("model", "/models/evil.gguf"),
            ("model", "../evil.gguf"), ("exec.path", "/bin/sh"), ("exec.argv", ["sh"]),
            ("exec.env", ["OTHER_API_KEY"]), ("exec.sandbox", "danger-full-access"),
            ("exec.network", True), ("exec.tools", ["Bash"]),
            ("azure.endpoint", "https://evil.invalid"), ("azure.auth", "azure_cli"),
            ("azure.api_version", "x"),
        )
    ),
    ("evaluate.targets", {"wire": {"base_url": "http://127.0.0.1:9"}}),
    ("evaluate.targets.wire.base_url", "http://127.0.0.1:9"),
    ("evaluate.targets.wire.timeout_s", 3),
    ("target", {"base_url": "http://127.0.0.1:9"}),
    ("envs", {"spreadsheet": {"sandbox": "none"}}),
    ("envs.spreadsheet.sandbox", "none"),
    ("envs.spreadsheet.data_dirs", ["/etc"]),
    ("+target.base_url", "http://127.0.0.1:9"),
    ("other.yaml:lr", 3), ("params.yaml:target.base_url", "x"), ("~lr", 3), ("lr ", 3),
    *(
        (key, path)
        for key in ("skill.seed", "data.path", "data.split_dir", "judge.rubric")
        for path in (
            "/etc/passwd", "../secret", "skills/../../secret", "~/.ssh/id_rsa", ".env",
            ".git/config", ".skilltrail/ui-8631.json", "outside/secret", "\x00",
        )
    ),
    *(
        (f"targets.one.{name}", value)
        for name, value in (
            ("base_url", "http://127.0.0.1:9/v1"), ("key_env", "OTHER_API_KEY"),
            ("backend", "exec"), ("exec.argv", ["sh"]), ("model", "m"), ("weight", 3),
        )
    ),
    ("targets", {"one": {"base_url": "http://127.0.0.1:9"}}),
    ("executor", "ray"), ("ray.address", "ray://evil.invalid:10001"),
    ("ray.resources", {"x": 1}), ("store.remote", "s3://evil/x"), ("store.remote", "/tmp/x"),
    *(
        (f"{role}.{name}", value)
        for role in ("target", "optimizer", "judge")
        for name, value in (
            ("handoff.folder", "/tmp/x"), ("handoff.folder", "skills"), ("model", "--config=x"),
            ("model", "-c"), ("effort", "--tools"), ("stages.analyst.model", "/models/x.gguf"),
            ("stages.analyst.base_url", "http://127.0.0.1:9/v1"),
        )
    ),
    ("envs.qa.scorer", "http"), ("envs.qa.scorer", "python:os.system"),
    ("envs.qa.scorer.url", "http://127.0.0.1:9"), ("envs.inspect.task", "/tmp/task.py"),
    ("envs.own.command", ["sh", "-c", "x"]), ("skill.references", "/etc"),
    ("evaluate.skills", ["best", "/etc/passwd"]),
    ("evaluate.skills", [".env"]),
]  # fmt: skip


def test_a_start_cannot_send_the_run_elsewhere_nor_read_what_is_not_the_project_s(
    project: Project,
) -> None:
    (project.folder / "outside").symlink_to("/etc")
    place = Place(project.folder, project.folder)
    for key, value in START_ELSEWHERE:
        with pytest.raises(ParamError) as error:
            options.check(place, {"lr": 8, key: value})
        assert key.strip("+~ ").split(".")[0][:5] in str(error.value)
    assert len(START_ELSEWHERE) == 143  # told in docs/security.md


@pytest.mark.parametrize("path", ["/api/start", "/api/check"])
def test_what_may_not_be_changed_starts_nothing(project: Project, path: str) -> None:
    body = json.dumps({"params": {"target.base_url": "http://127.0.0.1:9/v1"}}).encode()
    status, _, said = ask(guard(project.folder), path, CHANGE, "POST", body)
    assert status == 400
    assert "target.base_url" in json.loads(said)["error"]
    assert not (project.folder / ".skilltrail/ui.json").exists()


def test_what_params_yaml_holds_may_be_sent_again(project: Project) -> None:
    place = Place(project.folder, project.folder)
    options.check(place, {"target.backend": "local", "target.base_url": None, "lr": 8})
    options.check(place, {"target.stop": ["/"], "skill.seed": "skills/best_skill.md"})
    options.check(place, {"gate.rule": "paired", "reflect.show": ["prompt"], "env": "textqa"})
    options.check(place, {"target.model": "org/name", "evaluate.skills": ["best", "main:v2"]})


@pytest.mark.parametrize(
    ("key", "value"), [("evaluate.targets", {"a": {}}), ("envs", {}), ("gate", {"alpha": 0.1})]
)
def test_an_object_is_refused_by_name(project: Project, key: str, value: Any) -> None:
    with pytest.raises(ParamError, match=f"{key}: an object"):
        options.check(Place(project.folder, project.folder), {key: value})


def test_the_form_offers_only_what_a_start_may_change(project: Project) -> None:
    offered = options.form(Place(project.folder, project.folder))["values"]
    assert {"lr", "gate.rule", "target.temperature", "skill.seed"} <= offered.keys()
    assert not [key for key in offered if "base_url" in key or ".exec." in key]


def test_a_body_too_large_is_refused(project: Project) -> None:
    headers = {**CHANGE, "content-length": "9999999"}
    assert ask(guard(project.folder), "/api/start", headers, "POST", b"{}")[0] == 413


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{", b"\xff", b'{"params": 3}', b'{"params": {"lr": "x"}}'),
        b'{"params": {"target.model": "\\ud800"}}',
        b'{"params": {"lr": ' + b"[" * 20_000 + b"]" * 20_000 + b"}}",
        b'{"params": {"lr": ' + b"9" * 400 + b"}}",
        b'{"params": {"gate.alpha": ' + b"9" * 400 + b"}}",
    ],
)
def test_unusable_params_start_nothing(project: Project, body: bytes) -> None:
    status, _, said = ask(guard(project.folder), "/api/start", CHANGE, "POST", body)
    assert status == 400
    assert json.loads(said)["error"]
    assert not (project.folder / ".skilltrail/ui.json").exists()


def test_the_state_tells_the_run(project: Project) -> None:
    state = json.loads(ask(guard(project.folder), "/api/state", OWN)[2])
    assert state["run"] == "last"
    assert state["events"] == len(project.training)
    assert state["now"]["tail"][-1].startswith(f"{len(project.training)} run: finished")


def test_the_page_is_made_again_when_the_run_has_been_evaluated(tmp_path: Path) -> None:
    made = make_project(tmp_path, {"epochs": 1, "batch_size": 4})
    path = made.folder / watch.EVALUATION
    evaluated = path.read_bytes()
    path.unlink()
    here = live(made.folder)
    log = watch.logs(here.place)[0]
    before, page = here.state(None)["revision"], here.pages.page(log)
    assert "held-out test items" not in page
    path.write_bytes(evaluated)
    assert here.state(None)["revision"] != before
    assert "held-out test items" in here.pages.page(log)


@pytest.mark.parametrize(
    "text", ["[" * 2000, "{", "[]", '{"train": {"target": {"made": "x"}}}']
)
def test_damaged_counts_are_named_and_the_run_is_shown(
    tmp_path: Path, project: Project, text: str
) -> None:
    state = tmp_path / ".skilltrail"
    state.mkdir()
    (state / "usage.json").write_text(text, encoding="utf-8")
    told = live(tmp_path).state(None)
    assert (state / "usage.json").as_posix() in told["fault"]
    assert told["usage"] is None


def test_an_empty_project_has_a_page_too(tmp_path: Path) -> None:
    status, _, body = ask(guard(tmp_path), "/", OWN)
    assert status == 200
    assert b"Nothing trained yet" in body


@pytest.fixture
def running(tmp_path: Path) -> Path:
    """A live log whose lock this process holds, cut in the middle of a step."""
    folder = tmp_path / ".skilltrail/runs/0123456789abcdef"
    folder.mkdir(parents=True)
    (tmp_path / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    from skilltrail.store.owner import this_process

    (folder / "lock").write_text(json.dumps(this_process().to_json()), encoding="utf-8")
    return folder / "events.jsonl"


def test_the_six_stages_follow_the_events(project: Project, running: Path) -> None:
    place = Place(running.parents[3], running.parents[3])
    seen = []
    for length in range(2, len(project.training)):
        lines = [event.line + b"\n" for event in project.training[:length]]
        running.write_bytes(b"".join(lines) + b'{"data":{"half')
        log = watch.logs(place)[0]
        assert log.running
        stage = watch.now(log.events(), running=True)["stage"]
        if not seen or seen[-1] != stage:
            seen.append(stage)
    assert list(watch.STAGES) == seen[: len(watch.STAGES)]


def test_a_log_that_starts_anew_after_a_crash_is_followed(
    project: Project, running: Path
) -> None:
    here = live(running.parents[3])
    lines = [event.line + b"\n" for event in project.training]
    for length in (len(lines), 5, 0, 9):
        running.write_bytes(b"".join(lines[:length]))
        assert here.state(None)["events"] == length
        assert here.pages.page(watch.logs(here.place)[0])


def test_a_damaged_log_is_named_and_not_shown(project: Project, running: Path) -> None:
    lines = [event.line + b"\n" for event in project.training]
    running.write_bytes(b"".join([*lines[:4], *lines[5:]]))
    assert "line 5" in live(running.parents[3]).state(None)["fault"]


def test_a_change_is_an_experiment_and_none_the_main_line() -> None:
    assert options.command({}) == ["repro"]
    assert options.command({"lr": 8, "data.ratio": "1:1:1", "target.stop": ["\n"]}) == [
        "exp", "run", "--set-param", 'data.ratio="1:1:1"', "--set-param", "lr=8",
        "--set-param", 'target.stop=["\\n"]',
    ]  # fmt: skip
    with pytest.raises(ParamError):
        options.command({"data.path": "${lr}"})


def test_params_are_checked_as_a_run_would(project: Project) -> None:
    changed = params_with(project.folder, {"lr": 8, "gate.rule": "paired"})
    assert (changed.lr, changed.gate.rule) == (8, "paired")
    for change in ({"lr": 0}, {"gate.rule": "x"}, {"no.such": 1}, {"lr.deep": 1}):
        with pytest.raises(ParamError):
            params_with(project.folder, change)


def read(*overrides: str) -> dict[str, object]:
    return {key: plain(node) for key, node in changes_of(overrides).items()}


def test_a_key_may_have_the_plus_that_dvc_wants() -> None:
    assert read("+envs.korqa.context_chars=9") == {"envs.korqa.context_chars": 9}
    assert params_with(ROOT, changes_of(["env=korqa", "++envs.korqa.context_chars=900"]))


@pytest.mark.parametrize("word", ["no", "off", "False", "NO", "false"])
def test_a_word_for_no_means_false_in_a_plan_as_in_an_experiment(
    tmp_path: Path, word: str
) -> None:
    """Case cli-06: `-S use_gate=no`, and a params.yaml that such an experiment wrote."""
    assert params_with(ROOT, changes_of([f"use_gate={word}"])).use_gate is False
    with pytest.raises(ParamError, match="use_gate: expected true or false"):
        params_with(ROOT, changes_of([f"use_gate='{word}'"]))
    (tmp_path / "params.yaml").write_text(f"use_gate: {word}\n", encoding="utf-8")
    assert params_with(tmp_path, {"lr": 8}).use_gate is False


def test_a_change_reads_the_same_in_a_plan_as_in_an_experiment(project: Project) -> None:
    changes = {"lr": 8, "data.ratio": "1:1:1", "target.stop": ["\n"], "gate.rule": "paired"}
    overrides = options.command(changes)[3::2]
    assert read(*overrides) == changes
    assert read("lr=1e-5", "use_gate=false", "skill.parent=null", "judge.model=") == {
        "lr": 1e-5, "use_gate": False, "skill.parent": None, "judge.model": None,
    }  # fmt: skip
    for wrong in ("lr", "~lr", "=3", "+=3", "lr=[1"):
        with pytest.raises(UsageError):
            changes_of([wrong])


def test_of_two_people_who_start_at_once_one_is_told_that_a_run_is_on(tmp_path: Path) -> None:
    runners = [Runner(tmp_path, tmp_path / ".skilltrail") for _ in range(2)] * 4

    def start(runner: Runner) -> bool:
        try:
            runner.start(["repro"])
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(len(runners)) as pool:
        started = list(pool.map(start, runners))
    assert started.count(True) == 1
    ended(runners[0], runners[1])


def test_no_process_is_stopped_that_was_started_elsewhere(tmp_path: Path) -> None:
    """A mark may come from another host or a container, where its process id meant another."""
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        here = process_of(bystander.pid)
        other = (("boot", "another"), ("namespace", "pid:[1]"), ("ticks", 1), ("ticks", -1))
        others = [{**here.to_json(), name: value} for name, value in other]
        unsigned = {"host": here.host, "pid": here.pid, "started": 1.0}  # by an older version
        none = [{**here.to_json(), "pid": 0}, {**here.to_json(), "pid": -1}, None, "[" * 2000]
        mark = tmp_path / "ui.json"
        for owner in (*others, unsigned, *none):
            mark.write_text(json.dumps({"command": ["dvc"], "owner": owner}), encoding="utf-8")
            runner = Runner(tmp_path, tmp_path)
            assert not runner.stop()
            assert runner.state()["running"] is False
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"owner": {}}', '{"command": 1, "owner": 2}'])
def test_a_damaged_mark_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "ui.json").write_text(text, encoding="utf-8")
    runner = Runner(tmp_path, tmp_path)
    assert runner.state()["command"] is None
    assert not runner.stop()


def test_of_a_huge_output_the_end_is_read(tmp_path: Path) -> None:
    with (tmp_path / "ui.log").open("wb") as output:
        output.truncate(10**10)
        output.seek(10**10)
        output.write(b"\nthe end\n")
    assert Runner(tmp_path, tmp_path).state()["lines"][-2:] == ["the end", ""]


def test_a_run_that_cannot_be_noted_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("", encoding="utf-8")
    with pytest.raises(SkilltrailError, match="Cannot write"):
        Runner(tmp_path, tmp_path / "state").start(["repro"])


def test_one_run_at_a_time_and_stop_ends_it(tmp_path: Path) -> None:
    # `dvc repro` outside a project ends at once; that is all this needs of it.
    runner = Runner(tmp_path, tmp_path / ".skilltrail")
    runner.start(["repro"])
    pid = json.loads((tmp_path / ".skilltrail/ui.json").read_bytes())["owner"]["pid"]
    with pytest.raises(UsageError):
        runner.start(["repro"])
    again = Runner(tmp_path, tmp_path / ".skilltrail")  # the server was started anew
    assert again.owner() is not None
    assert again.stop()
    ended(runner)
    state = runner.state()
    assert state["command"] == ["dvc", "repro"]
    assert state["running"] is False
    assert not again.stop()
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def ended(*runners: Runner) -> None:
    """Wait until what one of `runners` started has ended."""
    deadline = time.monotonic() + 60
    while any(runner.owner() is not None for runner in runners):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def proposals(folder: Path) -> Path:
    """Write two proposed items of sessions, and return their folder."""
    place = folder / "data/sessions"
    place.mkdir(parents=True)
    rows = [
        {"id": f"session:{n}", "question": f"What is {n}?", "answers": [f"{n}."],
         "scorer": "judge", "group": "g", "task_type": "corrected", "found": "corrected",
         "feedback": "No: see http://a.invalid/x", "sessions": 2}
        for n in (1, 2)
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (place / "proposed.jsonl").write_text(text, encoding="utf-8")
    return place


def test_proposed_items_are_reviewed_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    place, app = proposals(tmp_path), guard(tmp_path)
    _, _, body = ask(app, "/api/proposals", OWN)
    (folder,) = json.loads(body)["folders"]
    assert [one["id"] for one in folder["left"]] == ["session:1", "session:2"]
    assert folder["left"][0]["risks"] == ["links"]

    def review(**asked: Any) -> tuple[int, Any]:
        told = json.dumps({"folder": "data/sessions"} | asked).encode()
        status, _, found = ask(app, "/api/review", CHANGE, "POST", told)
        return status, json.loads(found)

    edited = {"question": "What is one?", "answer": " One. "}
    assert review(id="session:1", accepted=True, **edited) == (200, {"left": 1})
    assert review(id="session:1", accepted=False)[0] == 400
    assert review(id="session:2", accepted=False) == (200, {"left": 0})
    (item,) = map(json.loads, (place / "items.jsonl").read_text("utf-8").splitlines())
    assert (item["question"], item["answers"]) == ("What is one?", ["One."])
    assert "sessions" not in item
    _, _, body = ask(app, "/api/proposals", OWN)
    assert json.loads(body)["folders"][0]["left"] == []


def test_an_edited_proposal_keeps_no_key_and_nothing_that_nobody_sees(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    place = proposals(tmp_path)
    key = "sk-" + "abcdefghij0123456789" * 2
    told = {"folder": "data/sessions", "id": "session:1", "accepted": True,
            "question": "Wh\u200bat\U000e0041 is it?", "answer": f"Use {key}."}  # fmt: skip
    app = guard(tmp_path)
    assert ask(app, "/api/review", CHANGE, "POST", json.dumps(told).encode())[0] == 200
    text = (place / "items.jsonl").read_text("utf-8")
    assert json.loads(text)["question"] == "What is it?"
    assert key not in text
    blank = told | {"id": "session:2", "answer": "\u200b\U000e0041"}
    assert ask(app, "/api/review", CHANGE, "POST", json.dumps(blank).encode())[0] == 400


def test_a_damaged_folder_of_proposals_is_told_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    proposals(tmp_path)
    for name, text in {
        "none": "{",
        "bare": '{"id":"x"}',
        "empty": '{"id":"x","question":"q","answers":[]}',
    }.items():
        (tmp_path / "data" / name).mkdir()
        (tmp_path / "data" / name / "proposed.jsonl").write_text(text + "\n", "utf-8")
    status, _, body = ask(guard(tmp_path), "/api/proposals", OWN)
    found = {one["folder"]: one for one in json.loads(body)["folders"]}
    assert status == 200
    assert len(found["data/sessions"]["left"]) == 2
    assert all(found[f"data/{name}"]["fault"] for name in ("none", "bare", "empty"))


def test_a_link_to_proposals_elsewhere_is_neither_shown_nor_written_to(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "here", tmp_path / "there"
    (workspace / "data/one").mkdir(parents=True)
    (workspace / "dvc.yaml").write_text("stages: {}\n")
    place = proposals(outside)
    (workspace / "data/linked").symlink_to(place)
    (workspace / "data/one/proposed.jsonl").symlink_to(place / "proposed.jsonl")
    app = guard(workspace)
    assert json.loads(ask(app, "/api/proposals", OWN)[2])["folders"] == []
    for folder in ("data/linked", "data/one"):
        told = json.dumps({"folder": folder, "id": "session:1", "accepted": True}).encode()
        assert ask(app, "/api/review", CHANGE, "POST", told)[0] == 400
    assert [path.name for path in place.iterdir()] == ["proposed.jsonl"]


def test_a_body_in_chunks_is_refused_whatever_length_is_told(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    headers = {**CHANGE, "content-length": "2", "transfer-encoding": "chunked"}
    assert ask(guard(tmp_path), "/api/stop", headers, "POST", b"{}")[0] == 413


@pytest.mark.parametrize(
    "asked",
    [
        {"folder": "../data/sessions", "id": "session:1", "accepted": True},
        {"folder": "/etc", "id": "session:1", "accepted": True},
        {"folder": "data/sessions", "id": "session:9", "accepted": True},
        {"folder": "data/sessions", "id": "session:1", "accepted": "yes"},
        {"folder": "data/sessions", "id": "session:1", "accepted": True, "answer": "  "},
        {"folder": "data/sessions", "id": "session:1", "accepted": True, "question": 7},
        [],
    ],
)
def test_a_review_of_what_is_not_there_decides_nothing(tmp_path: Path, asked: Any) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    place = proposals(tmp_path)
    told = json.dumps(asked).encode()
    status, _, body = ask(guard(tmp_path), "/api/review", CHANGE, "POST", told)
    assert status == 400
    assert "error" in json.loads(body)
    assert [path.name for path in place.iterdir()] == ["proposed.jsonl"]
    status, _, _ = ask(guard(tmp_path), "/api/review", STRANGER, "POST", told)
    assert status in (401, 403)
