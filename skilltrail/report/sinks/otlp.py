"""Recorded calls as OpenTelemetry spans in the GenAI conventions, sent to an OTLP receiver.

    skilltrail train                 one span for each log
      rollouts.scored, gate.judged…  one for each event
        invoke_agent, chat           one for each recorded rollout or reply, at its first use

Texts of prompts and replies are never sent: names, token counts, outcomes and scores are. A log
holds no times, so spans bear the time of the export, a millisecond apart, in the order of the
log; how long they last says nothing. Ids follow from the log: what is sent twice is one span.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from skilltrail import __version__
from skilltrail.core.canon import digest
from skilltrail.core.errors import UsageError
from skilltrail.core.redact import Redactor
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.outcomes import RolloutsScored
from skilltrail.history.log.types.parts import RowScored
from skilltrail.models.panel import models_in

Fact = Callable[[str], Mapping[str, Any] | None]
# What a span of an event says of it: numbers and names, and no text.
_SAID = ("purpose", "epoch", "step", "version", "verdict", "before", "after", "result", "mean")
_BATCH = 500
_STEP_NS = 1_000_000


class Spans:
    """Makes the spans of a log."""

    def __init__(self, events: Sequence[Event], fact: Fact, hide: Redactor) -> None:
        self._events, self._fact, self._hide = events, fact, hide
        self._trace = int(events[-1].id[:32], 16)
        self._now = time.time_ns()
        self._resource = Resource.create(
            {"service.name": "skilltrail", "service.version": __version__}
        )
        self._seen: set[str] = set()
        self._target = events[0].data.get("target", {})

    def all(self) -> Iterator[ReadableSpan]:
        """Yield a span for the log, then each event's and those of its calls."""
        first = self._events[0]
        kind = "train" if first.type == "run.started" else "evaluate"
        about: dict[str, Any] = {"skilltrail.run": self._events[-1].id}
        root = self._span(f"skilltrail {kind}", kind, None, about)
        yield root
        for event in self._events:
            about = {"skilltrail.event": event.id, "skilltrail.seq": event.seq}
            about |= {f"skilltrail.{name}": event.data.get(name) for name in _SAID}
            span = self._span(event.type, event.id, root, about)
            yield span
            yield from self._calls(event, span)

    def _calls(self, event: Event, parent: ReadableSpan) -> Iterator[ReadableSpan]:
        said = event.said
        for row in said.items if isinstance(said, RolloutsScored) else ():
            if row.key is not None and row.key not in self._seen:
                yield self._rollout(row, row.key, parent)
            if row.judgement is not None and row.judgement not in self._seen:
                yield self._reply("judge", row.judgement, parent)
        reply = getattr(said, "reply", None)
        if reply is not None and reply not in self._seen:
            yield self._reply("optimizer", reply, parent)

    def _rollout(self, row: RowScored, key: str, parent: ReadableSpan) -> ReadableSpan:
        known = models_in(self._target)
        model = self._target if row.target is None else known.get(row.target, {})
        fact = self._fact(key)
        trajectory = {} if fact is None else fact.get("trajectory", {})
        about = {
            "skilltrail.item": row.item,
            "skilltrail.outcome": row.outcome.value,
            "skilltrail.score.hard": row.hard,
            "skilltrail.score.soft": row.soft,
            "skilltrail.calls": len(trajectory.get("turns", ())),
        }
        about |= _told(trajectory, model, "invoke_agent")
        return self._of_fact(key, f"invoke_agent {row.item}", parent, about)

    def _reply(self, role: str, key: str, parent: ReadableSpan) -> ReadableSpan:
        fact = self._fact(key)
        said = {} if fact is None else fact.get("reply", {})
        model = {} if fact is None else fact.get("model", {})
        about = {"skilltrail.role": role} | _told(said, model, "chat")
        return self._of_fact(key, f"chat {role}", parent, about)

    def _of_fact(
        self, key: str, name: str, parent: ReadableSpan, about: Mapping[str, Any]
    ) -> ReadableSpan:
        self._seen.add(key)
        return self._span(name, key, parent, {"skilltrail.fact": key, **about}, SpanKind.CLIENT)

    def _span(
        self,
        name: str,
        id: str,
        parent: ReadableSpan | None,
        about: Mapping[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> ReadableSpan:
        self._now += _STEP_NS
        number = int(digest("span/1", {"trace": self._trace, "of": id})[:16], 16)
        shown = {key: self._shown(value) for key, value in about.items() if value is not None}
        return ReadableSpan(
            name=str(self._hide.value(name))[:200],
            context=SpanContext(self._trace, number, False, TraceFlags(TraceFlags.SAMPLED)),
            parent=None if parent is None else parent.get_span_context(),
            resource=self._resource,
            attributes=shown,
            kind=kind,
            start_time=self._now,
            end_time=self._now + _STEP_NS,
        )

    def _shown(self, value: Any) -> Any:
        return str(self._hide.value(value)) if isinstance(value, str) else value


def _told(said: Mapping[str, Any], model: Mapping[str, Any], operation: str) -> dict[str, Any]:
    """Return what the GenAI conventions have of a call; what is not known is left out."""
    usage = said.get("usage", {})
    asked = model.get("model", model.get("gguf"))
    about = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": model.get("provider", model.get("backend")),
        "gen_ai.request.model": asked,
        "gen_ai.response.model": said.get("model") or None,
        "gen_ai.usage.input_tokens": usage.get("input"),
        "gen_ai.usage.output_tokens": usage.get("output"),
    }
    finish = said.get("finish", said.get("ending"))
    finished = {} if finish is None else {"gen_ai.response.finish_reasons": (finish,)}
    return {name: value for name, value in about.items() if value is not None} | finished


def send(url: str, logs: Sequence[Sequence[Event]], fact: Fact, hide: Redactor) -> int:
    """Send the spans of the logs to the receiver at `url`; return how many.

    Raises:
        UsageError: the receiver did not take them.
    """
    exporter, count = OTLPSpanExporter(endpoint=url), 0
    try:
        for events in logs:
            spans = list(Spans(events, fact, hide).all())
            for start in range(0, len(spans), _BATCH):
                some = spans[start : start + _BATCH]
                if exporter.export(some) is not SpanExportResult.SUCCESS:
                    raise UsageError(
                        "--otlp",
                        f"the receiver did not take the spans; {count} were sent",
                        "Name the whole address, such as http://127.0.0.1:4318/v1/traces; "
                        "OTEL_EXPORTER_OTLP_HEADERS holds keys",
                    )
                count += len(some)
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return count
