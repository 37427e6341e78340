// This run among others: where they diverge, and how they fare.
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 4", "10 4", "8 3 2 3 2 3", "14 3 4 3"];
const look = (place) => ({ class: `best run${place % 6}`, "stroke-dasharray": DASHES[place % DASHES.length] });

function runs(node) {
  if (book.runs.length < 2) {
    const [own] = book.runs;
    fill(node, el("p", {}, `This page holds one run, ${book.run.id.slice(0, 12)}.`,
      book.run.parent ? ` It continues event ${book.run.parent.slice(0, 12)} of another run.` : ""),
    el("p", { class: "note" }, el("code", {}, "skilltrail export --html FILE --runs"), " puts every run of this repository on one page; ", el("code", {}, "skilltrail ui"), " shows them as they go."),
    own && (own.tags.length || own.notes.length) ? el("p", {}, own.tags.map((tag) => el("span", { class: "tag" }, said(tag))), " ", said(own.notes.join("; "))) : null,
    own ? anytime([own]) : null);
    return;
  }
  const chosen = new Set(book.runs.slice(0, 6).map((run) => run.name));
  const drawing = el("div");
  const draw = () => {
    const shown = book.runs.filter((run) => chosen.has(run.name));
    fill(drawing, overlay(shown), anytime(shown), differences(shown));
  };
  fill(node, el("h3", {}, "Where runs diverge"), tree(), el("h3", {}, "Compared"),
    table("Runs", [
      { name: "run", key: (run) => run.name, show: (run) => [el("label", {}, el("input", { type: "checkbox", checked: chosen.has(run.name), onchange: (event) => {
        if (event.target.checked) chosen.add(run.name); else chosen.delete(run.name);
        draw();
      } }), " ", said(run.name)), run.page ? [" ", el("a", { href: `/?run=${encodeURIComponent(run.page)}#/`, "aria-label": `The page of ${run.name}` }, "open")] : run.id === book.run.id.slice(0, 12) ? [" ", link("#/", "this page")] : ""] },
      number("steps", (run) => run.steps),
      number("accepted", (run) => run.accepted),
      number("seed", (run) => run.seed, score),
      number("best", (run) => run.best, score),
      { name: "test gain", class: "num", key: (run) => run.test && run.test[0], show: (run) => (run.test ? `${signed(run.test[0])} on ${some(run.test[1], "item")}` : "–") },
      ...differing(book.runs).slice(0, MOST_PARAMS).map((name) => ({ name, class: "num", key: (run) => run.params[name], show: (run) => shownParam(run, name) })),
      number("tokens", (run) => run.tokens),
      { name: "state", show: (run) => (run.finished ? "finished" : "not finished") },
      ...(book.runs.some((run) => run.tags.length || run.notes.length) ? [{ name: "tags and notes", show: (run) => [
        run.tags.map((tag) => el("span", { class: "tag" }, said(tag))), run.notes.map((note) => el("p", { class: "note" }, said(note)))] }] : []),
    ], book.runs), drawing);
  draw();
}

function tree() {
  const below = (name) => book.runs.filter((run) => run.fork === name);
  const list = (name) => {
    const children = below(name);
    return children.length ? el("ul", { class: "tree" }, children.map((run) => el("li", {}, el("b", {}, said(run.name)),
      run.fork === null ? "" : [` shares ${some(run.at, "event")} with `, said(run.fork)], run.differs ? ["; then ", said(run.differs)] : "",
      run.parent ? [" Its seed skill is ", said(run.parent), "."] : "", list(run.name)))) : null;
  };
  return list(null);
}

function overlay(chosen) {
  const lines = chosen.map((run, place) => ({ name: run.name, place, end: null, points: run.curve.map((value, step) => [step, value]).filter(([, value]) => value !== null) }));
  const most = Math.max(1, ...chosen.map((run) => run.curve.length - 1));
  return [stepped("overlay", "step", `Best score by step of ${chosen.map((run) => run.name).join(", ")}`, most, lines),
    el("ul", { class: "legend" }, lines.map((one) => el("li", {}, keyLine(one.place), said(one.name))))];
}

// What a score cost: methods have a line of their own where several are shown, else runs have.
function anytime(chosen) {
  const known = chosen.filter((run) => run.anytime.length);
  if (!known.length) return null;
  const methods = [...new Set(chosen.map((run) => run.params.method))];
  const byMethod = methods.length > 1;
  const lines = known.map((run) => ({ name: byMethod ? `${run.name} (${run.params.method})` : run.name,
    place: byMethod ? methods.indexOf(run.params.method) : chosen.indexOf(run), end: run.calls, points: run.anytime }));
  const keys = byMethod ? methods.map((name, place) => [place, name]) : lines.map((one) => [one.place, one.name]);
  const caption = "Best selection score by target calls";
  return [el("h3", {}, caption),
    stepped("anytime", "calls", `${caption} of ${lines.map((one) => one.name).join(", ")}`, Math.max(1, ...known.map((run) => run.calls)), lines),
    el("ul", { class: "legend" }, keys.map(([place, name]) => el("li", {}, keyLine(place), said(name)))),
    table(caption, [
      { name: "run", key: (run) => run.name, show: (run) => said(run.name) },
      { name: "method", key: (run) => run.params.method, show: (run) => said(run.params.method) },
      number("target calls", (run) => run.calls),
      number("calls to best", (run) => run.anytime.at(-1)[0]),
      { name: "score at calls", show: (run) => run.anytime.map(([calls, value]) => `${score(value)} at ${whole(calls)}`).join(", ") },
    ], known),
    el("p", { class: "note" }, "Calls are target calls of training, recorded ones counted as if made. The selection split chose these skills, so they look better there than they are.")];
}

// Lines that hold a value until the next point; `end` is where a line stops, null = at its last point.
function stepped(name, unit, label, most, lines) {
  const all = lines.flatMap((one) => one.points.map(([, value]) => value));
  const low = Math.max(0, Math.floor(Math.min(1, ...all) * 10) / 10);
  const high = Math.max(low + 0.1, Math.ceil(Math.max(0, ...all) * 10) / 10);
  // One unit is one pixel, so that the words keep their size on a phone.
  const wide = Math.max(320, Math.min(832, byId("runs-more").clientWidth));
  const x = (at) => 40 + ((wide - 60) * at) / most;
  const y = (value) => 20 + 200 * (1 - (value - low) / (high - low));
  const drawing = svg("svg", { viewBox: `0 0 ${wide} 250`, role: "img", class: name, "aria-label": label });
  for (const value of [low, (low + high) / 2, high]) {
    drawing.append(svg("path", { class: "grid", d: `M40 ${y(value)}H${wide - 20}` }), svg("text", { class: "axis", x: 32, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(2)));
  }
  drawing.append(svg("text", { class: "axis", x: 0, y: 244 }, unit));
  for (const at of new Set([0, Math.round(most / 2), most])) drawing.append(svg("text", { class: "axis", x: x(at), y: 244, "text-anchor": "middle" }, whole(at)));
  for (const one of lines) {
    const d = one.points.map(([at, value], place) => (place ? `H${x(at)}V${y(value)}` : `M${x(at)} ${y(value)}`)).join("");
    const path = svg("path", { ...look(one.place), d: one.end === null ? d : `${d}H${x(one.end)}` });
    path.append(svg("title", {}, one.name));
    drawing.append(path);
  }
  return drawing;
}

function keyLine(place) {
  const key = svg("svg", { viewBox: "0 0 30 8", class: "keyline", "aria-hidden": "true" });
  key.append(svg("path", { ...look(place), d: "M0 4H30" }));
  return key;
}

const MOST_PARAMS = 4; // in the table of runs; the table below has all
const shownParam = (run, name) => (run.params[name] === undefined ? "–" : String(run.params[name]));

function differing(chosen) {
  const names = [...new Set(chosen.flatMap((run) => Object.keys(run.params)))].sort();
  return names.filter((name) => new Set(chosen.map((run) => JSON.stringify(run.params[name]))).size > 1);
}

function differences(chosen) {
  const names = differing(chosen);
  if (!names.length) return el("p", { class: "note" }, "Nothing that their events carry differs between these runs.");
  return table("Params that differ", [
    { name: "param", show: (name) => el("code", {}, name) },
    ...chosen.map((run) => ({ name: run.name, class: "num", show: (name) => shownParam(run, name) })),
  ], names, { showCaption: true });
}
