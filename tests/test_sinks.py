"""Runs handed to programs that keep runs: MLflow, and receivers of OpenTelemetry spans."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from verify_project import says, write_project

from skilltrail.cli.commands.deliver.export import export
from skilltrail.core.errors import UsageError
from skilltrail.history.log.log import read_log
from skilltrail.report.tables import curve, metrics
from tests.fault_server import FaultServer
from tests.model_world import run_stages

SECRET = "Answer with the tree."  # a line of the skill, as if it were somebody's key


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a scripted project."""
    folder = tmp_path_factory.mktemp("run")
    with FaultServer(say=says) as server, pytest.MonkeyPatch.context() as patch:
        write_project(folder, server.url, {"epochs": 1})
        run_stages(folder, patch)
    return folder


@pytest.fixture(autouse=True)
def inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


class Receiver:
    """A receiver of OTLP over HTTP that decodes with OpenTelemetry's own messages."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.bodies = b""
        self.headers: list[dict[str, str]] = []
        took = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                took.bodies += body
                took.headers.append(dict(self.headers))
                message = ExportTraceServiceRequest.FromString(body)
                for resource in message.resource_spans:
                    for scope in resource.scope_spans:
                        took.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.server.shutdown()
    found.server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {
        one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes
    }


def test_a_run_stands_in_mlflow_once_with_its_params_curve_and_scores(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = (tmp_path / "mlruns").as_uri()
    export(mlflow=uri)
    export(mlflow=uri)
    assert "MLflow has this run already" in capsys.readouterr().out
    client = MlflowClient(tracking_uri=uri)
    (experiment,) = [e for e in client.search_experiments() if e.name == "skilltrail qa"]
    (run,) = client.search_runs([experiment.experiment_id])
    training = read_log(project / "skills/events.jsonl")
    evaluation = read_log(project / "reports/out/evaluation.jsonl", after=training[-1])
    numbers = metrics(training, evaluation)
    assert run.data.tags["skilltrail.run"] == training[-1].id
    assert run.data.metrics["test.best"] == numbers["test"]["best"]
    assert run.data.metrics["test.gain_low"] == numbers["test"]["gain_low"]
    assert run.data.params["gate.rule"] == "strict"
    steps = client.get_metric_history(run.info.run_id, "curve.before")
    assert [one.value for one in steps] == [
        row["before"] for row in curve(training) if row["before"] is not None
    ]
    assert run.info.status == "FINISHED"


def test_spans_tell_every_recorded_call_and_none_of_its_texts(
    project: Path, receiver: Receiver
) -> None:
    export(otlp=receiver.url)
    training = read_log(project / "skills/events.jsonl")
    evaluation = read_log(project / "reports/out/evaluation.jsonl", after=training[-1])
    keys = {
        row["key"]
        for event in (*training, *evaluation)
        if event.type == "rollouts.scored"
        for row in event.data["items"]
    }
    keys |= {e.data["reply"] for e in training if e.data.get("reply") is not None}
    told = [attributes(span) for span in receiver.spans]
    assert {one["skilltrail.fact"] for one in told if "skilltrail.fact" in one} == keys
    rollouts = [one for one in told if one.get("gen_ai.operation.name") == "invoke_agent"]
    assert {one["gen_ai.request.model"] for one in rollouts} == {"target"}
    assert {one["gen_ai.usage.input_tokens"] for one in rollouts} == {40}
    chats = [one for one in told if one.get("gen_ai.operation.name") == "chat"]
    assert {one["gen_ai.usage.output_tokens"] for one in chats} == {20}
    by_id = {span.span_id: span for span in receiver.spans}
    assert len(by_id) == len(receiver.spans)
    orphans = [s for s in receiver.spans if s.parent_span_id and s.parent_span_id not in by_id]
    assert orphans == []
    assert b"an oak" not in receiver.bodies
    assert b"Which tree" not in receiver.bodies


def test_what_is_sent_twice_is_the_same_spans(receiver: Receiver) -> None:
    export(otlp=receiver.url)
    first = [(span.trace_id, span.span_id) for span in receiver.spans]
    export(otlp=receiver.url)
    assert [(span.trace_id, span.span_id) for span in receiver.spans] == first * 2


def test_secrets_of_the_environment_never_leave(
    project: Path, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", SECRET)
    monkeypatch.setenv("OTHER_SECRET", "selection-w1")
    export(mlflow=(tmp_path / "mlruns").as_uri(), otlp=receiver.url)
    kept = b"".join(p.read_bytes() for p in (tmp_path / "mlruns").rglob("*") if p.is_file())
    assert SECRET in (project / "skills/best_skill.md").read_text("utf-8")
    for planted in (SECRET.encode(), b"selection-w1"):
        assert planted not in kept
        assert planted not in receiver.bodies
    assert b"[hidden]" in receiver.bodies


@pytest.mark.parametrize("options", [{"otlp": "http://127.0.0.1:9/v1/traces"},
                                     {"mlflow": "http://127.0.0.1:9"}])  # fmt: skip
def test_nobody_there_is_one_error_with_the_way_on(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(UsageError) as refused:
        export(**options)
    assert refused.value.remedy


def test_a_server_of_mlflow_that_is_not_there_is_not_asked_for_minutes() -> None:
    from mlflow.environment_variables import MLFLOW_HTTP_REQUEST_MAX_RETRIES

    import skilltrail.report.sinks.mlflow_run  # noqa: F401  sets what nobody set

    assert MLFLOW_HTTP_REQUEST_MAX_RETRIES.get() <= 2
