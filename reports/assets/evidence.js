// Pieces of an audit: items, edits, results.
function itemChip(number, mark) {
  const told = { up: "now passes", down: "no longer passes" }[mark];
  return el("a", { class: `chip ${mark || ""}`, href: `#/items/${number}`, "aria-label": told ? `${itemName(number)}, ${told}` : null },
    { up: "▲ ", down: "▼ " }[mark] || "", itemName(number));
}

function chips(numbers, mark, most = 24) {
  if (!numbers.length) return el("span", { class: "note" }, "none");
  const list = el("span", { class: "chips" }, numbers.slice(0, most).map((number) => itemChip(number, mark)));
  if (numbers.length > most) {
    list.append(el("button", { type: "button", class: "more", onclick: (event) =>
      event.target.replaceWith(...numbers.slice(most).map((number) => itemChip(number, mark))) }, `${numbers.length - most} more`));
  }
  return list;
}

const OPS = { append: "add", insert_after: "insert after", replace: "replace", delete: "delete",
  write_region: "write region", suggest: "suggest", rewrite: "rewrite" };

function editCard(id) {
  const one = edit(id);
  if (!one) return el("li", { class: "edit" }, el("code", {}, id));
  return el("li", { class: "edit" },
    el("p", { class: "head" }, el("code", { class: "id" }, one.id), el("b", {}, OPS[one.op] || one.op),
      one.kind === "rule" ? "" : ` ${one.kind}`,
      one.section ? ` in “${one.section}”` : "",
      one.support ? el("span", { class: "note" }, ` ${some(one.support, "item")} behind it`) : ""),
    one.target ? el("pre", { class: "target" }, one.target) : null,
    one.content ? el("pre", {}, one.content) : null,
    one.reason ? el("p", { class: "note" }, one.reason) : null,
    one.parents.length ? el("p", { class: "note" }, "merged from ", one.parents.join(", ")) : null,
    one.items.length ? el("details", {}, el("summary", {}, "Items behind it"), chips(one.items)) : null);
}

// A result in one line: the edit itself stands above, under Selection.
function resultRow(id, result) {
  const one = edit(id);
  const gist = one ? (one.content || one.target).trim().split("\n")[0] : "";
  return el("li", { class: "edit" },
    el("p", { class: "head" }, el("code", { class: "id" }, id), el("code", { class: "gist" }, gist),
      el("span", { class: `status ${result.status}` }, words(result.status))),
    result.detail ? el("p", { class: "note" }, S(result.detail)) : null);
}

const editList = (ids) => el("ul", { class: "edits" }, ids.map(editCard));
const idsOf = (packed) => packed.edits.map((row) => row[0]);

function scoredSummary(scored) {
  const passed = [];
  const failed = [];
  const missing = [];
  scored.item.forEach((item, place) => {
    (scored.hard[place] < 0 ? missing : scored.hard[place] >= 1000 ? passed : failed).push(item);
  });
  return [
    el("p", {}, `${some(scored.asked, "rollout")} of ${skillName(scored.skill)}: hard ${score(scored.mean_hard)}, soft ${score(scored.mean_soft)}`,
      scored.scored < scored.asked ? `, ${scored.asked - scored.scored} missing` : "", "."),
    el("p", {}, el("b", {}, "Failed "), chips(failed)),
    el("p", {}, el("b", {}, "Passed "), chips(passed)),
    missing.length ? el("p", {}, el("b", {}, "Missing "), chips(missing)) : null,
  ];
}
