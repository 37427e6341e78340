// Items against versions: what passes where.
const COLUMNS = 24;
const itemState = { split: null, sort: "id", broken: "", fixed: "", first: null, page: 0, text: "", left: "", right: "" };

// Scores of one split: item -> version -> { hard, soft in thousandths, scored event, row }, of the
// version's last rollouts; of repeats the mean, and the first row.
function scoresOf(split) {
  const found = new Map();
  const purposes = { selection: ["baseline", "selection"], train: ["train", "slow_update"] }[split];
  for (const scored of book.scored) {
    const version = versionByDigest.get(scored.skill);
    if (version === undefined || (purposes ? !purposes.includes(scored.purpose) : scored.split !== split)) continue;
    for (const [item, rows] of rowsByItem(scored)) {
      if (!found.has(item)) found.set(item, new Map());
      const known = rows.filter((row) => scored.hard[row] >= 0);
      const mean = (list) => (known.length ? known.reduce((sum, row) => sum + list[row], 0) / known.length : -1);
      found.get(item).set(version, { hard: mean(scored.hard), soft: mean(scored.soft), scored, row: rows[0] });
    }
  }
  return found;
}

function rowsByItem(scored) {
  const rows = new Map();
  scored.item.forEach((item, row) => rows.set(item, [...(rows.get(item) || []), row]));
  return rows;
}

function items(node, name) {
  if (name !== undefined) return rollouts(node, Number(name.split("@")[0]), name.split("@")[1]);
  const splits = [...new Set(book.items.split)].filter(Boolean);
  const state = itemState;
  if (state.split === null) state.split = splits[0];
  const scores = scoresOf(state.split);
  const versions = [...new Set([...scores.values()].flatMap((row) => [...row.keys()]))].sort((a, b) => a - b);
  const again = (name_, value) => { state[name_] = value; state.page = 0; items(node); };
  const choose = (id, label, values, value, name_) => field(label,
    el("select", { id, onchange: (event) => again(name_, event.target.value) },
      values.map(([key, text]) => el("option", { value: key, selected: String(key) === String(value) }, text))));
  const all = versions.map((version) => [version, `v${version}`]);
  const from = all.slice(1);
  const list = el("div");
  const draw = () => {
    const wanted = state.text.toLowerCase();
    const rows = filtered(scores, versions).filter((item) => !wanted || holds(item, scores, wanted));
    const sides = [state.left, state.right].filter((one) => one !== "").map(Number);
    fill(list, sides.length ? sideBySide(rows, scores, [...new Set(sides)]) : matrix(rows, versions, scores));
  };
  fill(node,
    el("div", { class: "controls" },
      choose("item-split", "split", splits.map((split) => [split, split]), state.split, "split"),
      choose("item-sort", "sorted by", [["id", "id"], ["fails", "most failures"], ["first", "first pass"]], state.sort, "sort"),
      choose("item-broken", "broken by", [["", "any"], ...from], state.broken, "broken"),
      choose("item-fixed", "fixed by", [["", "any"], ...from], state.fixed, "fixed"),
      choose("item-left", "side by side", [["", "no"], ...all], state.left, "left"),
      choose("item-right", "and", [["", "none"], ...all], state.right, "right"),
      field("containing", el("input", { id: "item-text", type: "search", value: state.text, oninput: (event) => { state.text = event.target.value; draw(); } }))),
    el("ul", { class: "legend" }, ["pass", "part", "fail", "missing", "unseen"].map((kind) =>
      el("li", {}, el("span", { class: `cell ${kind}`, "aria-hidden": "true" }, GLYPHS[kind]), { part: "in part", missing: "no reply", unseen: "not rolled out" }[kind] || kind))),
    list);
  draw();
}

const GLYPHS = { pass: "●", part: "◐", fail: "○", missing: "?", unseen: "·" };
const stateOf = (cell) => (!cell ? "unseen" : cell.hard < 0 ? "missing" : cell.hard >= 1000 ? "pass" : cell.hard > 0 || cell.soft > 0 ? "part" : "fail");

function filtered(scores, versions) {
  const { sort, broken, fixed } = itemState;
  const earlier = (version) => versions[versions.indexOf(version) - 1];
  const turned = (row, version, sign) => {
    const [before, after] = [row.get(earlier(version)), row.get(version)];
    return before && after && sign * (after.hard - before.hard) > 0;
  };
  const rows = [...scores.keys()].filter((item) => {
    const row = scores.get(item);
    if (broken !== "" && !turned(row, Number(broken), -1)) return false;
    return fixed === "" || turned(row, Number(fixed), 1);
  });
  const fails = (item) => [...scores.get(item).values()].filter((cell) => cell.hard < 1000).length;
  const first = (item) => Math.min(1e9, ...[...scores.get(item)].filter(([, cell]) => cell.hard >= 1000).map(([version]) => version));
  const byId_ = (a, b) => itemName(a).localeCompare(itemName(b), "en", { numeric: true });
  const by = { fails: (a, b) => fails(b) - fails(a) || byId_(a, b), first: (a, b) => first(a) - first(b) || byId_(a, b) };
  return rows.sort(by[sort] || byId_);
}

function matrix(rows, versions, scores) {
  if (!rows.length) return el("p", { class: "note" }, "No item is like that.");
  const last = Math.max(0, versions.length - COLUMNS);
  const first = itemState.first === null ? last : Math.min(itemState.first, last);
  const shown = versions.slice(first, first + COLUMNS);
  const node = el("div");
  const move = (by) => () => { itemState.first = Math.max(0, Math.min(last, first + by)); node.replaceWith(matrix(rows, versions, scores)); };
  const columns = [
    { name: "item", key: itemName, show: (item) => link(itemHash(item, scores), said(itemName(item))) },
    ...shown.map((version) => ({ name: `v${version}`, class: "cellbox", key: (item) => keyOf(scores.get(item).get(version)), show: (item) => cell(item, version, scores.get(item).get(version)) })),
  ];
  fill(node,
    last > 0 ? el("div", { class: "pages" },
      el("button", { type: "button", disabled: first === 0, onclick: move(-COLUMNS) }, "Earlier versions"),
      el("span", {}, `v${shown[0]} to v${shown[shown.length - 1]}`),
      el("button", { type: "button", disabled: first === last, onclick: move(COLUMNS) }, "Later versions")) : null,
    el("p", { class: "note" }, `${some(rows.length, "item")}.`),
    table("Items by version", columns, rows, { class: "matrix", size: 60 }));
  return node;
}

// Where an item's name leads: to the rollout of the version that broke or fixed it, where asked.
function itemHash(item, scores) {
  const chosen = itemState.broken !== "" ? itemState.broken : itemState.fixed;
  const found = chosen === "" ? null : scores.get(item).get(Number(chosen));
  return found ? `#/items/${item}@${found.scored.seq}.${found.row}` : `#/items/${item}`;
}

const keyOf = (cell) => (cell && cell.hard >= 0 ? cell.hard + cell.soft / 1e4 : null);

function cell(item, version, found) {
  const kind = stateOf(found);
  const told = `${itemName(item)}, v${version}: ${kind}`;
  if (!found) return el("span", { class: `cell ${kind}`, title: told }, GLYPHS[kind]);
  return el("a", { class: `cell ${kind}`, href: `#/items/${item}@${found.scored.seq}.${found.row}`, "aria-label": told, title: `${told}, soft ${(found.soft / 1000).toFixed(3)}` }, GLYPHS[kind]);
}
