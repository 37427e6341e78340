// Pieces of an audit: items, edits, results.
// Where the rollouts of some scored events are shown: item -> the last part of their address.
function placesOf(...all) {
  const places = new Map();
  for (const scored of all) scored.item.forEach((item, row) => places.set(item, `${item}@${scored.seq}.${row}`));
  return places;
}

function itemChip(number, { mark = "", places = new Map(), notes = new Map() } = {}) {
  const [sign, told] = { up: ["▲ ", "now passes: "], down: ["▼ ", "no longer passes: "] }[mark] || [];
  const note = notes.get(number);
  return el("a", { class: `chip ${mark}`, href: `#/items/${places.get(number) || number}` },
    sign ? [el("span", { "aria-hidden": "true" }, sign), el("span", { class: "quiet" }, told)] : null,
    said(itemName(number)), note ? el("small", {}, ` ${note}`) : null);
}

function chips(numbers, options = {}, most = 24) {
  if (!numbers.length) return el("span", { class: "note" }, "none");
  const list = el("span", { class: "chips" }, numbers.slice(0, most).map((number) => itemChip(number, options)));
  if (numbers.length > most) {
    list.append(el("button", { type: "button", class: "more", onclick: (event) =>
      event.target.replaceWith(...numbers.slice(most).map((number) => itemChip(number, options))) }, `${numbers.length - most} more`));
  }
  return list;
}

const OPS = { append: "add", insert_after: "insert after", replace: "replace", delete: "delete",
  write_region: "write region", suggest: "suggest", rewrite: "rewrite" };

function editCard(id, places) {
  const one = edit(id);
  if (!one) return el("li", { class: "edit" }, el("code", {}, id));
  return el("li", { class: "edit" },
    el("p", { class: "head" }, el("code", { class: "id" }, one.id), el("b", {}, OPS[one.op] || one.op),
      one.kind === "rule" ? "" : said(` ${one.kind}`),
      one.section ? [" in “", said(one.section), "”"] : "",
      one.file ? [" of ", el("code", {}, said(one.file))] : "",
      one.support ? el("span", { class: "note" }, ` ${some(one.support, "item")} behind it`) : ""),
    one.target ? el("pre", { class: "target" }, one.target) : null,
    one.content ? el("pre", {}, one.content) : null,
    one.reason ? el("p", { class: "note" }, said(one.reason)) : null,
    one.parents.length ? el("p", { class: "note" }, "merged from ", one.parents.join(", ")) : null,
    one.items.length ? el("details", {}, el("summary", {}, "Items behind it"), chips(one.items, { places })) : null);
}

// A result in one line: the edit itself stands above, under Selection.
function resultRow(result, parent) {
  const one = edit(result.edit);
  const gist = one ? (one.content || one.target).trim().split("\n")[0] : "";
  const file = one && one.file ? `${one.file} of ` : "";
  const side = one && ["replace", "delete", "write_region"].includes(one.op) ? "at" : "after";
  const lines = result.lines.length ? `${side} line ${result.lines.slice(0, 8).join(", ")} of ${file}${skillName(parent)}` : "";
  return el("li", { class: "edit", "data-edit": result.edit, "data-status": result.status },
    el("p", { class: "head" }, el("code", { class: "id" }, result.edit), el("code", { class: "gist" }, gist),
      el("span", { class: "note" }, lines),
      el("span", { class: `status ${result.status}` }, words(result.status))),
    result.detail ? el("p", { class: "note" }, said(result.detail)) : null);
}

const editList = (ids, places) => el("ul", { class: "edits" }, ids.map((id) => editCard(id, places)));
const idsOf = (packed) => packed.edits.map((row) => row[0]);

function scoredSummary(scored) {
  const rows = { passed: [], failed: [], missing: [] };
  scored.item.forEach((item, row) => {
    rows[scored.hard[row] < 0 ? "missing" : scored.hard[row] >= 1000 ? "passed" : "failed"].push(item);
  });
  const list = (name, items) => el("p", { class: name.toLowerCase() }, el("b", {}, `${name} `), chips(items, { places: placesOf(scored) }));
  return [
    el("p", {}, `${some(scored.asked, "rollout")} of ${skillName(scored.skill)}: hard ${score(scored.mean_hard)}, soft ${score(scored.mean_soft)}`,
      scored.scored < scored.asked ? `, ${scored.asked - scored.scored} missing` : "", "."),
    list("Failed", rows.failed),
    list("Passed", rows.passed),
    rows.missing.length ? list("Missing", rows.missing) : null,
  ];
}
