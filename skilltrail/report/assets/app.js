// Which view is shown: the part of the address after `#` says it, so that every view has a link.
const VIEWS = [["overview", "Overview"], ["steps", "Steps"], ["skill", "Skill"], ["audit", "Audit"], ["items", "Items"],
  ["epochs", "Epochs"], ["cost", "Cost"], ["runs", "Runs"], ["trust", "Trust"], ["log", "Log"]];
const DRAW = { overview, steps, skill, audit, items, epochs, cost, runs, trust, log };

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch (error) {
      return part; // not an address of this page; the view will say so
    }
  });
  const view = DRAW[parts[0]] && byId(parts[0]) ? parts[0] : "overview";
  return { view, rest: parts.slice(1).filter(Boolean) };
}

function show(focus) {
  const { view, rest } = route();
  for (const panel of document.querySelectorAll(".panel")) panel.hidden = panel.id !== view;
  for (const item of document.querySelectorAll("#nav a")) {
    if (item.dataset.view === view) {
      item.setAttribute("aria-current", "page");
      const nav = byId("nav");
      nav.scrollLeft = item.offsetLeft - nav.offsetLeft - (nav.clientWidth - item.clientWidth) / 2;
    } else item.removeAttribute("aria-current");
  }
  draw(view, rest);
  if (!focus) return;
  window.scrollTo(0, 0);
  const head = byId(`${view}-title`);
  if (head) head.focus({ preventScroll: true });
}

function draw(view, rest) {
  const node = byId(`${view}-more`);
  if (node) DRAW[view](node, ...rest);
}

function theme() {
  const button = byId("theme");
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const now = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const name = () => { button.textContent = now() === "dark" ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = now() === "dark" ? "light" : "dark";
    name();
  });
  dark.addEventListener("change", name);
  name();
}

function print() {
  window.addEventListener("beforeprint", () => {
    const { view, rest } = route();
    for (const [name] of VIEWS) if (name !== view && !["log", "audit", "start", "review"].includes(name)) draw(name, []);
    draw(view, rest);
  });
}

function start(data) {
  if (data) open(data);
  fill(byId("nav"), VIEWS.filter(([id]) => byId(id)).map(([id, name]) => el("a", { href: `#/${id === "overview" ? "" : id}`, "data-view": id }, name)));
  window.addEventListener("hashchange", () => show(true));
  theme();
  tips();
  print();
  show(false);
}

const block = byId("book");
if (block || byId("now")) start(block ? JSON.parse(block.textContent) : null);
