"""The page: one self-contained HTML file, the same bytes for the same logs.

The first screen is drawn here and needs no script; the script reads the data block and draws
the rest. Text from items, skills and models is only ever text: Jinja escapes it here, the
script sets it by `textContent`, and the Content-Security-Policy lets nothing run or load but
the two blocks whose digests it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from skilltrail.core.hidden import UNSEEN, UNSEEN_PATTERN, spelled_out
from skilltrail.core.stats import mean_interval
from skilltrail.history.log import types
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.replay import version_of
from skilltrail.history.log.words import score
from skilltrail.models.backends.weights import EMBEDDED_SHA256
from skilltrail.params.model_options import EMBEDDED_MODEL
from skilltrail.report.book import RunFacts, book_of
from skilltrail.report.book.summary import points_of
from skilltrail.report.charts import interval_chart, run_chart
from skilltrail.report.costs import score_against_cost
from skilltrail.report.tables import held_out_values
from skilltrail.skill.risks import risks_text, risky_lines

WIDTHS = {"wide": 960, "middle": 660, "narrow": 360}
PANELS = (
    ("skill", "Skill"), ("audit", "Audit"), ("items", "Items"), ("epochs", "Epochs"),
    ("cost", "Cost"), ("runs", "Runs"), ("trust", "Trust"), ("log", "Log"),
)  # fmt: skip
SCRIPTS = (
    "dom.js", "book.js", "diff.js", "tables.js", "overview.js", "steps.js", "skill.js",
    "evidence.js", "verdict.js", "audit.js", "items.js", "rollout.js", "epochs.js", "runs.js",
    "app.js",
)  # fmt: skip
LIVE_SCRIPTS = ("live.js", "form.js")
LEGEND = {
    "best": "best so far",
    "accepted": "accepted",
    "rejected": "rejected",
    "indecisive": "indecisive",
}


def page(
    training: Sequence[Event],
    evaluation: Sequence[Event],
    facts: RunFacts | None = None,
    runs: Sequence[dict[str, Any]] = (),
) -> str:
    """Return the whole page of one run."""
    book = book_of(training, evaluation, RunFacts() if facts is None else facts, runs)
    return rendered(book, training, evaluation)


def rendered(
    book: Mapping[str, Any], training: Sequence[Event], evaluation: Sequence[Event]
) -> str:
    """Return the page of `book`."""
    css, js = asset("page.css"), script(SCRIPTS)
    return document(
        first_screen(book, training, evaluation),
        csp=policy(css, js),
        css=css,
        js=js,
        data=f'<script type="application/json" id="book">{inert(book)}</script>',
    )


def document(screen: Mapping[str, Any], *, csp: str, css: str, js: str, data: str) -> str:
    """Return the template filled in; `css`, `js` and `data` are put in as they are."""
    text: str = _template().render(
        screen, panels=PANELS, csp=csp, css=Markup(css), js=Markup(js), data=Markup(data)
    )
    return text.rstrip("\n") + "\n"


def first_screen(
    book: Mapping[str, Any], training: Sequence[Event], evaluation: Sequence[Event]
) -> dict[str, Any]:
    """Return what the template shows without a script."""
    run, numbers = book["run"], book["numbers"]
    points, start = points_of(training), numbers["selection"]["seed"]
    held_out = held_out_values(training, evaluation)
    return {
        "title": shown(f"Skilltrail: {_named_run(run, training)}"),
        "live": False,
        "run": {
            "env": shown(_named_run(run, training)),
            "short": run["id"][:12],
            "name": None if run["name"] is None else shown(run["name"]),
        },
        "told": shown(_told(run)),
        "result": _result(numbers, _on_items(held_out, evaluation), run["selection"]),
        "interval": _interval(held_out),
        "charts": {
            "curve": _three(points, start, strips=False),
            "run": _three(points, start, strips=True),
            "cost": Markup(score_against_cost(training)),
        },
        "legend": _legend(LEGEND),
        "legend_all": _legend(
            LEGEND | {"train": "train batch", "applied": "edits within budget",
                      "saved": "items skipped by early stopping"}
        ),
        "facts": [
            *((what, shown(value)) for what, value in _facts(run, numbers)),
            ("New lines to review", _risks(training)),
        ],
        "best_skill": shown(_best_skill(training)),
    }  # fmt: skip


def empty_screen() -> dict[str, Any]:
    """Return the screen of a project where nothing was trained yet (live page only)."""
    return {"title": "Skilltrail", "run": None, "live": True}


def shown(text: str) -> str:
    """Return `text` with what would not show, or would turn its direction, spelled out."""
    return spelled_out(text, UNSEEN)


def inert(value: Any) -> str:
    """Return JSON that cannot end the block it stands in, whatever its texts say."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy(css: str, js: str, connect: str = "'none'") -> str:
    """Return the Content-Security-Policy: only these two blocks count, nothing is loaded."""
    return (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(js)}'; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


@cache
def asset(name: str) -> str:
    """Return the text of a file in `reports/assets`."""
    return files("skilltrail.report.assets").joinpath(name).read_text(encoding="utf-8")


@cache
def script(names: tuple[str, ...]) -> str:
    """Return the page's scripts as one, in a scope of its own."""
    pattern = json.dumps(UNSEEN_PATTERN).replace("<", "\\u003c")
    hidden = f"const HIDDEN = new RegExp({pattern}, 'gu');\n"
    return '(() => {\n"use strict";\n' + hidden + "\n".join(map(asset, names)) + "\n})();"


@cache
def _template() -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(asset("page.html"))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _three(points: Sequence[Mapping[str, Any]], start: float | None, *, strips: bool) -> Markup:
    """Return the chart at three widths; the style sheet shows the one that fits."""
    drawn = (
        f'<div class="{name}">{run_chart(points, start, width=width, strips=strips)}</div>'
        for name, width in WIDTHS.items()
    )
    return Markup("".join(drawn))


def _legend(entries: Mapping[str, str]) -> Markup:
    items = "".join(
        f'<li><span class="key {kind}"></span>{label}</li>' for kind, label in entries.items()
    )
    return Markup(f'<ul class="legend" aria-label="Legend">{items}</ul>')


def _named_run(run: Mapping[str, Any], training: Sequence[Event]) -> str:
    """Return what tells this run from others: name, environment, lr, optimizer, seed."""
    budgets = list(read_all(training, types.BudgetDecided))
    most = max((one.budget for one in budgets if one.budget is not None), default=None)
    rules = {patch.rule is not None for patch in read_all(training, types.PatchProposed)}
    lr = most if most is None or budgets[0].lr is None else budgets[0].lr
    parts = [f"{'' if run['name'] is None else run['name'] + ': '}{run['env']}"]
    parts += [] if lr is None else [f"lr {lr}"]
    parts += [("rules" if all(rules) else "prompted optimizer")] if rules else []
    return ", ".join([*parts, f"seed {run['seed']}"])


def _told(run: Mapping[str, Any]) -> str:
    target = run["target"]
    several = ", ".join(target.get("targets", ()))
    model = target.get("model", f"a {target.get('backend', 'frozen')} model")
    model = f"several models ({several})" if several else model
    if "gguf" in target:  # known by its bytes alone
        named = target["gguf"] == EMBEDDED_SHA256
        model = EMBEDDED_MODEL if named else f"a local model (GGUF {target['gguf'][:8]})"
    state = "" if run["finished"] else " The run is still in progress."
    return (
        f"A skill document for {model}, which {'stay' if several else 'itself stays'} frozen, "
        f"trained on {run['train']} items and chosen on {run['selection']} others.{state}"
    )


def _result(numbers: Mapping[str, Any], items: str, selection: int) -> dict[str, str]:
    test = numbers.get("test")
    means = numbers["selection"] if test is None else test
    told = {name: score(means.get(name), "–") for name in ("seed", "best")}
    if test is None or test["gain"] is None:
        gain = None if None in (means["seed"], means["best"]) else means["best"] - means["seed"]
        return told | {
            "heading": f"On the {selection} selection items",
            "gain": "–" if gain is None else f"{gain:+.3f}",
            "note": "The skill was chosen on these items, so this gain flatters it. "
            + _missing(test),
        }
    return told | {
        "heading": f"On {items} held-out test items",
        "gain": f"{test['gain']:+.3f}",
        "note": f"95 % interval of the gain: {test['gain_low']:+.3f} to "
        f"{test['gain_high']:+.3f}, paired by item.{_named(test)}",
    }


def _missing(test: Mapping[str, Any] | None) -> str:
    # A log without its evaluation does not tell whether the test split was ever opened.
    if test is None:
        return "No evaluation on held-out items is available."
    return "The evaluation on held-out items gives no gain."


def _named(test: Mapping[str, Any]) -> str:
    """Return a sentence on the environment's further metrics, if it has any."""
    means = test.get("metrics", {})
    if not {"seed", "best"} <= set(means):
        return ""
    told = [
        f"{name} {means['seed'][name]:.3f} → {mean:.3f}" for name, mean in means["best"].items()
    ]
    return f" Besides: {', '.join(told)}."


def _interval(held_out: Mapping[str, Sequence[Fraction]]) -> Markup | None:
    rows = []
    for name, kind in (("seed", "seed"), ("best", "end")):
        values = held_out.get(name, ())
        if values:
            mean = float(sum(values, Fraction(0)) / len(values))
            rows.append((name, kind, mean, *mean_interval(values)))
    return Markup(interval_chart(rows)) if rows else None


def _on_items(held_out: Mapping[str, Sequence[Fraction]], evaluation: Sequence[Event]) -> str:
    """Return how many test items the means are over, of how many where some are missing."""
    opened = next((len(said.items) for said in read_all(evaluation, types.TestOpened)), 0)
    n = len(held_out.get("best", ()))
    return f"{opened}" if n in (0, opened) else f"{n} of {opened}"


def _facts(run: Mapping[str, Any], numbers: Mapping[str, Any]) -> list[tuple[str, str]]:
    verdicts = [f"{numbers['accepted']} accepted", f"{numbers['rejected']} rejected"]
    if numbers["indecisive"]:
        verdicts.append(f"{numbers['indecisive']} indecisive")
    best = "–" if run["best"] is None else f"v{run['best']}"
    return [
        ("Steps", f"{numbers['steps']}: {', '.join(verdicts)}"),
        ("Best version", best),
        ("Size of the best skill", f"{numbers['skill_tokens']} tokens"),
        ("Run", run["id"][:16]),
    ]


def _risks(training: Sequence[Event]) -> str:
    """Return in words what of the lines that training wrote a person should look at."""
    if not any(event.type == "skill.versioned" for event in training):
        return "–"
    lines = risky_lines(version_of(training, "best").text, version_of(training, 0).text)
    return f"{len(lines)}: {risks_text(lines)}" if lines else "none"


def _best_skill(training: Sequence[Event]) -> str:
    versioned = any(event.type == "skill.versioned" for event in training)
    return version_of(training, "best").text if versioned else ""
