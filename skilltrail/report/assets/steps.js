// The run chart's details: a tip on hover and focus, and a table of all steps.
function steps(node) {
  const rows = book.curve.map((values) => Object.fromEntries(book.columns.map((name, place) => [name, values[place]])));
  fill(node, el("h3", {}, "All steps"), table("All steps", [
    { name: "step", key: (row) => row.step, class: "num", show: (row) => link(`#/audit/step/${row.step}`, row.step) },
    number("epoch", (row) => row.epoch),
    { name: "verdict", key: (row) => row.verdict, show: (row) => verdict(row.verdict) },
    number("train", (row) => row.train_hard, score),
    number("before", (row) => row.before, score),
    { name: "candidate", key: (row) => row.after, class: "num", show: (row) => after(row) },
    number("best", (row) => row.best, score),
    number("budget", (row) => row.lr),
    number("applied", (row) => row.applied),
    number("saved", (row) => gate(row.step) && gate(row.step).saved),
    number("tokens", (row) => row.skill_tokens),
    { name: "version", key: (row) => row.version, class: "num", show: (row) => link(`#/skill/v${row.version}`, `v${row.version}`) },
  ], rows));
}

function gate(step) {
  const chapter = chapters.step.get(step);
  const judged = chapter && firstOf(chapter, "gate.judged");
  return judged ? judged.packed : null;
}

function after(row) {
  if (row.after !== null) return score(row.after);
  const judged = gate(row.step);
  return judged && judged.after_max !== null ? `≤ ${score(judged.after_max)}` : "–";
}

function tip(step) {
  const row = curveRow(step);
  if (!row) return null;
  const judged = gate(step);
  const facts = [
    ["train batch", score(row.train_hard)],
    ["selection", `${score(row.before)} → ${after(row)}`],
    ["best so far", score(row.best)],
    ["edits", `${row.applied} applied, budget ${row.lr === null ? "none" : row.lr}`],
  ];
  if (judged) facts.push(["judged", `${judged.judged} of ${judged.total} items` + (judged.saved ? `, ${judged.saved} skipped` : "")]);
  return [
    el("p", {}, el("b", {}, `Step ${step}`), ` epoch ${row.epoch} `, verdict(row.verdict)),
    el("dl", {}, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    judged && judged.reason ? el("p", { class: "note" }, said(inTerms(S(judged.reason)))) : null,
  ];
}

// The step that the pointer or the focus is at, and the place to tell of it.
function stepAt(event) {
  const mark = event.target.closest && event.target.closest("[data-step]");
  if (mark) return { step: Number(mark.dataset.step), at: mark.getBoundingClientRect() };
  const chart = event.type !== "focusin" && event.target.closest && event.target.closest("svg[data-steps]");
  if (!chart) return null; // a chart of so many steps that not each has a mark of its own
  const box = chart.getBoundingClientRect();
  const { steps: count, from, to } = chart.dataset;
  const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
  const step = Math.round((count * (x - from)) / (to - from));
  return step < 1 || step > count ? null
    : { step, at: { left: event.clientX, width: 0, top: event.clientY, bottom: event.clientY } };
}

function tips() {
  const box = byId("tip");
  const hide = () => { box.hidden = true; };
  const show = (event) => {
    const found = stepAt(event);
    if (!found) return;
    const { step, at } = found;
    fill(box, tip(step));
    box.hidden = false;
    const left = Math.max(8, Math.min(at.left + at.width / 2 - box.offsetWidth / 2, window.innerWidth - box.offsetWidth - 8));
    const above = at.top - box.offsetHeight - 10;
    box.style.left = `${left + window.scrollX}px`;
    box.style.top = `${(above > 0 ? above : at.bottom + 10) + window.scrollY}px`;
  };
  for (const name of ["mousemove", "focusin"]) document.addEventListener(name, show);
  for (const name of ["mouseout", "focusout", "click"]) document.addEventListener(name, hide);
  document.addEventListener("click", (event) => {
    const found = event.target.closest("a") ? null : stepAt(event);
    if (found) location.hash = `#/audit/step/${found.step}`;
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}
