// Epochs with their comparison and memory, cost, trust, and the whole log.
function comparison(data, places) {
  const by = new Map();
  for (const pair of data.pairs) by.set(pair[3], [...(by.get(pair[3]) || []), pair[0]]);
  return [
    el("p", {}, `${skillName(data.previous)} against ${skillName(data.current)} on ${some(data.pairs.length, "train item")} (${data.policy}). `, said(data.reason)),
    by.size ? el("dl", { class: "kinds" }, [...by].map(([kind, list]) => el("div", {}, el("dt", {}, words(kind)), el("dd", {}, chips(list, { places }))))) : null,
  ];
}

function epochs(node) {
  const rows = new Map();
  const at = (name) => book.columns.indexOf(name);
  for (const values of book.curve) {
    const epoch = values[at("epoch")];
    const row = rows.get(epoch) || { epoch, steps: 0, accepted: 0, train: [], best: null, version: null };
    row.steps += 1;
    row.accepted += values[at("verdict")] === "accepted" ? 1 : 0;
    if (values[at("train_hard")] !== null) row.train.push(values[at("train_hard")]);
    row.best = values[at("best")];
    row.version = values[at("version")];
    rows.set(epoch, row);
  }
  const mean = (list) => (list.length ? list.reduce((sum, value) => sum + value, 0) / list.length : null);
  fill(node, table("Epochs", [
    number("epoch", (row) => row.epoch),
    number("steps", (row) => row.steps),
    number("accepted", (row) => row.accepted),
    number("train, mean of batches", (row) => mean(row.train), score),
    number("best at the end", (row) => row.best, score),
    { name: "version", class: "num", show: (row) => link(`#/skill/v${row.version}`, `v${row.version}`) },
  ], [...rows.values()]),
  chapters.epoch.size ? [...chapters.epoch.values()].map((chapter) => el("section", { class: "card" },
    el("h3", {}, `End of epoch ${chapter.number}`),
    el("ol", { class: "account" }, account(chapter)))) : el("p", { class: "note" }, "Nothing was compared between epochs: slow_update and meta_skill are off."));
}

function cost(node) {
  const total = (name) => book.cost.reduce((sum, row) => sum + row[name], 0);
  const known = book.cost.every((row) => row.usd !== null);
  fill(node,
    el("dl", { class: "facts" }, [["Calls", whole(total("made"))], ["Cached", whole(total("reused"))],
      ["Tokens in", whole(total("input"))], ["Tokens out", whole(total("output"))], ["Cost", dollars(known ? total("usd") : null)]].map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    table("Calls and tokens by role and phase", [
      { name: "role", key: (row) => row.role, show: (row) => row.role },
      { name: "phase", key: (row) => row.phase, show: (row) => row.phase },
      number("calls", (row) => row.made),
      number("cached", (row) => row.reused),
      { name: "share of calls", class: "bar", show: (row) => meter(row.made, total("made")) },
      number("tokens in", (row) => row.input),
      number("tokens out", (row) => row.output),
      number("cost", (row) => row.usd, dollars),
      ...(total("unknown") ? [number("of unknown size", (row) => row.unknown)] : []),
    ], book.cost),
    el("p", { class: "note" }, "Calls are the recorded calls that this run rests on, each counted once; cached ones cost nothing. Costs are in US dollars, at the list price of the model that replied; a model without one (an endpoint of your own) has none here. A resumed run or an experiment with the same first steps pays less: see .skilltrail/usage.json."));
}

// As `skilltrail` tells money: small amounts with four digits.
function dollars(usd) {
  if (usd === null || usd === undefined) return "unknown";
  if (usd > 0 && usd < 0.0001) return "<$0.0001";
  return `$${usd.toFixed(usd && usd < 0.1 ? 4 : 2)}`;
}

function meter(part, all) {
  const bar = svg("svg", { viewBox: "0 0 100 8", class: "meter", "aria-hidden": "true", preserveAspectRatio: "none" });
  bar.append(svg("rect", { class: "applied", width: all ? (100 * part) / all : 0, height: 8 }));
  return [bar, el("span", { class: "quiet" }, all ? `${((100 * part) / all).toFixed(0)} %` : "")];
}

function trust(node) {
  const target = Object.entries(book.run.target).filter(([, value]) => value !== null && typeof value !== "object");
  fill(node, trustList(book.trust),
    el("h3", {}, "The frozen model"),
    el("dl", { class: "facts" }, target.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("p", { class: "note" }, "Checked while this page was made. ", el("code", {}, "skilltrail verify"), " also checks the recorded rollouts and the commits.",
      book.longest < 20000 ? [" ", shortened()] : ""));
}

const shortened = () => `${book.longest ? `Texts longer than ${whole(book.longest)} characters are shortened here` : "Texts said early in the run are left out, later ones shortened"}: the page would be too large otherwise. The store has them whole.`;

const logState = { kind: "", text: "" };

function log(node) {
  const kinds = [...new Set(book.log.map((row) => row[1]))].sort();
  const list = el("div");
  const draw = () => {
    const wanted = logState.text.toLowerCase();
    const rows = book.log.filter(([, type, told]) => (!logState.kind || type === logState.kind) && (!wanted || book.strings[told].toLowerCase().includes(wanted)));
    fill(list, table("Events", [
      number("event", (row) => row[0], String),
      { name: "type", show: (row) => el("code", {}, row[1]) },
      { name: "what happened", show: (row) => said(book.strings[row[2]]) },
    ], rows, { class: "log" }));
  };
  fill(node, el("div", { class: "controls" },
    field("type", el("select", { id: "log-kind", onchange: (event) => { logState.kind = event.target.value; draw(); } },
      el("option", { value: "" }, "all"), kinds.map((kind) => el("option", { value: kind, selected: kind === logState.kind }, kind)))),
    field("containing", el("input", { id: "log-text", type: "search", value: logState.text, oninput: (event) => { logState.text = event.target.value; draw(); } }))), list);
  draw();
}
