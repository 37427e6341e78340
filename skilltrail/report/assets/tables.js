// Tables, with pages where they are long, and headings that sort.
const PAGE = 100;

function table(caption, columns, rows, options = {}) {
  const body = el("tbody");
  const state = { sort: options.sort, down: options.down || false, page: 0 };
  const head = el("tr");
  const foot = el("div", { class: "pages" });
  const size = options.size || PAGE;
  const draw = () => {
    const sorted = state.sort === undefined ? rows : [...rows].sort(order(columns[state.sort], state.down));
    const first = state.page * size;
    fill(body, sorted.slice(first, first + size).map((row) => line(columns, row)));
    fill(head, columns.map((column, place) => heading(column, place, state, draw)));
    fill(foot, pages(rows.length, size, state, draw));
  };
  draw();
  const node = el("table", { class: options.class },
    el("caption", { class: options.showCaption ? null : "quiet" }, caption), el("thead", {}, head), body);
  return [el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, node), foot];
}

function line(columns, row) {
  return el("tr", {}, columns.map((column, place) =>
    el(place === 0 ? "th" : "td", { scope: place === 0 ? "row" : null, class: column.class }, column.show(row))));
}

function heading(column, place, state, draw) {
  const attributes = { scope: "col", class: column.class };
  if (!column.key) return el("th", attributes, column.name);
  const chosen = state.sort === place;
  if (chosen) attributes["aria-sort"] = state.down ? "descending" : "ascending";
  const turn = () => {
    state.down = chosen ? !state.down : false;
    state.sort = place;
    draw();
  };
  return el("th", attributes, el("button", { type: "button", class: "sort", onclick: turn },
    column.name, el("span", { "aria-hidden": "true" }, chosen ? (state.down ? " ↓" : " ↑") : "")));
}

function order(column, down) {
  const sign = down ? -1 : 1;
  return (a, b) => {
    const [x, y] = [column.key(a), column.key(b)];
    if (x === null || x === undefined) return y === null || y === undefined ? 0 : 1;
    if (y === null || y === undefined) return -1;
    return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
  };
}

function pages(total, size, state, draw) {
  if (total <= size) return null;
  const last = Math.ceil(total / size) - 1;
  const go = (page) => () => {
    state.page = Math.max(0, Math.min(last, page));
    draw();
  };
  const first = state.page * size;
  return [
    el("button", { type: "button", disabled: state.page === 0, onclick: go(state.page - 1) }, "Previous"),
    el("span", {}, `${whole(first + 1)} to ${whole(Math.min(first + size, total))} of ${whole(total)}`),
    el("button", { type: "button", disabled: state.page === last, onclick: go(state.page + 1) }, "Next"),
  ];
}

const number = (name, key, show = whole) => ({ name, key, class: "num", show: (row) => {
  const value = key(row);
  return value === null || value === undefined ? "–" : show(value);
} });

const verdict = (name) => el("span", { class: `verdict ${name}` }, words(name));
