"""The addresses of the live page.

GET  /             the page of one run (?run=NAME; default: the one that is on)
GET  /api/state    what runs, which stage, the last lines
GET  /api/stream   the same whenever it changes, as server-sent events
GET  /api/params   the form
POST /api/check    {"params": {...}}: faults, doctor, plan, and the command it would be
POST /api/start    {"params": {...}}
POST /api/stop
GET  /api/proposals  items that sessions propose and nobody has decided on
POST /api/review     {"folder", "id", "accepted", "question"?, "answer"?}
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from skilltrail.core.canon import canonical, value_of
from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.store.place import Place
from skilltrail.ui import options, review, watch
from skilltrail.ui.asking import Ask
from skilltrail.ui.pages import FindRuns, Pages, content_policy
from skilltrail.ui.runner import Runner

POLL_S = 0.5
KEEP_ALIVE_S = 15.0
BODY_S = 20.0


class Live:
    """The live page of one project."""

    def __init__(self, place: Place, find_runs: FindRuns, ask: Ask) -> None:
        self.place = place
        self.pages = Pages(place, find_runs)
        self.runner = Runner(place.workspace, place.state)
        self.ask = ask

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self.page),
                Route("/api/state", self.get_state),
                Route("/api/stream", self.stream),
                Route("/api/params", self.params),
                Route("/api/check", self.check, methods=["POST"]),
                Route("/api/start", self.start, methods=["POST"]),
                Route("/api/stop", self.stop, methods=["POST"]),
                Route("/api/proposals", self.proposals),
                Route("/api/review", self.review, methods=["POST"]),
            ],
            exception_handlers={SkilltrailError: _told},
        )

    async def page(self, request: Request) -> Response:
        log = self._log(request.query_params.get("run"))
        text = await run_in_threadpool(self.pages.page, log)
        policy = f"{content_policy()}; frame-ancestors 'none'"
        return HTMLResponse(text, headers={"content-security-policy": policy})

    async def get_state(self, request: Request) -> Response:
        return JSONResponse(
            await run_in_threadpool(self.state, request.query_params.get("run"))
        )

    async def stream(self, request: Request) -> Response:
        return StreamingResponse(
            self._changes(request), media_type="text/event-stream; charset=utf-8"
        )

    async def params(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(options.form, self.place))

    async def check(self, request: Request) -> Response:
        changes = await _changes_in(request)
        await run_in_threadpool(options.check, self.place, changes)
        command = options.command(changes)
        doctor, plan = await self.ask.doctor(), await self.ask.plan(changes)
        return JSONResponse(
            {
                "command": ["dvc", *command],
                "doctor": [asdict(check) for check in doctor],
                "plan": plan,
            }
        )

    async def start(self, request: Request) -> Response:
        changes = await _changes_in(request)
        await run_in_threadpool(options.check, self.place, changes)
        await run_in_threadpool(self.runner.start, options.command(changes))
        return JSONResponse(self.runner.state())

    async def stop(self, request: Request) -> Response:
        return JSONResponse({"stopped": await run_in_threadpool(self.runner.stop)})

    async def proposals(self, request: Request) -> Response:
        found = await run_in_threadpool(review.waiting, self.place.workspace)
        return JSONResponse({"folders": found})

    async def review(self, request: Request) -> Response:
        asked = await _object_in(request)
        return JSONResponse(
            await run_in_threadpool(review.decided, self.place.workspace, asked)
        )

    def state(self, name: str | None) -> dict[str, Any]:
        """Return what is on, in JSON."""
        log = self._log(name)
        fault, events, usage = None, [], None
        try:
            events = [] if log is None else log.events()
            usage = watch.usage(self.place)
        except SkilltrailError as error:
            fault = str(error)
        running = log is not None and log.running
        process = self.runner.state()
        return {
            "word": watch.word(events, running=running, process=process),
            "progress": watch.progress(log),
            "fault": fault,
            "run": None if log is None else log.name,
            "runs": [[one.name, one.running] for one in watch.logs(self.place)],
            "running": running,
            "events": len(events),
            "revision": None if log is None else watch.revision(self.place, log),
            "now": watch.now(events, running=running),
            "usage": usage,
            "process": process,
        }

    async def _changes(self, request: Request) -> AsyncIterator[str]:
        before, idle_s = "", 0.0
        while not await request.is_disconnected():
            state = await run_in_threadpool(self.state, request.query_params.get("run"))
            text = json.dumps(state, sort_keys=True)
            if text != before:
                before, idle_s = text, 0.0
                yield f"data: {text}\n\n"
            elif idle_s >= KEEP_ALIVE_S:
                idle_s = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(POLL_S)
            idle_s += POLL_S

    def _log(self, name: str | None) -> watch.Log | None:
        """Return the log of that name; names are looked up in a list and never used as paths.

        Raises:
            UsageError: there is none.
        """
        found = watch.logs(self.place)
        if name is None:
            return found[0] if found else None
        for log in found:
            if log.name == name:
                return log
        raise UsageError(f"run {name[:60]!r}", "there is no such log", "Choose from the list")


async def _changes_in(request: Request) -> dict[str, Any]:
    params = (await _object_in(request)).get("params")
    if not isinstance(params, dict):
        raise UsageError("The request", "has no object `params`")
    return params


async def _object_in(request: Request) -> dict[str, Any]:
    try:
        sent = await asyncio.wait_for(request.body(), BODY_S)
        body = value_of(sent.decode("utf-8"))
        canonical(body).encode("utf-8")  # a lone surrogate fits in no argument of a command
    except asyncio.TimeoutError as error:
        raise UsageError("The request", f"was not whole within {BODY_S:.0f} s") from error
    except ValueError as error:
        raise UsageError("The request", f"is not usable JSON: {error}") from error
    return body if isinstance(body, dict) else {}


async def _told(request: Request, error: Exception) -> Response:
    """Return an error as its one message."""
    status = 400 if isinstance(error, UsageError) else 500
    if isinstance(error, UsageError) and request.method == "GET":
        status = 404
    return JSONResponse({"error": str(error)}, status_code=status)
