// This run among others: where they diverge, and how they fare.
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 4", "10 4"];

function runs(node) {
  if (book.runs.length < 2) {
    const [own] = book.runs;
    fill(node, el("p", {}, `This page holds one run, ${book.run.id.slice(0, 12)}.`,
      book.run.parent ? ` It continues event ${book.run.parent.slice(0, 12)} of another run.` : ""),
    el("p", { class: "note" }, el("code", {}, "skilltrail export --html FILE --runs"), " puts every run of this repository on one page; ", el("code", {}, "skilltrail ui"), " shows them as they go."),
    own && (own.tags.length || own.notes.length) ? el("p", {}, own.tags.map((tag) => el("span", { class: "tag" }, said(tag))), " ", said(own.notes.join("; "))) : null);
    return;
  }
  const chosen = new Set(book.runs.slice(0, 6).map((run) => run.name));
  const drawing = el("div");
  const draw = () => fill(drawing, overlay(book.runs.filter((run) => chosen.has(run.name))), differences(book.runs.filter((run) => chosen.has(run.name))));
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
  const steps_ = Math.max(1, ...chosen.map((run) => run.curve.length - 1));
  const all = chosen.flatMap((run) => run.curve).filter((value) => value !== null);
  const low = Math.max(0, Math.floor(Math.min(1, ...all) * 10) / 10);
  const high = Math.max(low + 0.1, Math.ceil(Math.max(0, ...all) * 10) / 10);
  // One unit is one pixel, so that the words keep their size on a phone.
  const wide = Math.max(320, Math.min(832, byId("runs-more").clientWidth));
  const x = (step) => 40 + ((wide - 60) * step) / steps_;
  const y = (value) => 20 + 200 * (1 - (value - low) / (high - low));
  const drawing = svg("svg", { viewBox: `0 0 ${wide} 250`, role: "img", class: "overlay", "aria-label": `Best score by step of ${chosen.map((run) => run.name).join(", ")}` });
  for (const value of [low, (low + high) / 2, high]) {
    drawing.append(svg("path", { class: "grid", d: `M40 ${y(value)}H${wide - 20}` }), svg("text", { class: "axis", x: 32, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(2)));
  }
  drawing.append(svg("text", { class: "axis", x: 0, y: 244 }, "step"));
  for (const step of new Set([0, Math.round(steps_ / 2), steps_])) drawing.append(svg("text", { class: "axis", x: x(step), y: 244, "text-anchor": "middle" }, step));
  chosen.forEach((run, place) => {
    const known = run.curve.map((value, step) => [step, value]).filter(([, value]) => value !== null);
    const d = known.map(([step, value], at) => (at ? `H${x(step)}V${y(value)}` : `M${x(step)} ${y(value)}`)).join("");
    drawing.append(svg("path", { class: `best run${place % 6}`, "stroke-dasharray": DASHES[place % 6], d }));
  });
  return [drawing, el("ul", { class: "legend" }, chosen.map((run, place) => el("li", {}, keyLine(place), said(run.name))))];
}

function keyLine(place) {
  const key = svg("svg", { viewBox: "0 0 30 8", class: "keyline", "aria-hidden": "true" });
  key.append(svg("path", { class: `best run${place % 6}`, "stroke-dasharray": DASHES[place % 6], d: "M0 4H30" }));
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
