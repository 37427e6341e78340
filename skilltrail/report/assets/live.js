// Follows a run: what it does now, and the page again whenever its log has grown.
const SIX = ["rollout", "reflect", "aggregate", "select", "update", "gate"];
const PAUSE_MS = 1500;
const NEWEST = 3;
const query = location.search.startsWith("?run=") ? location.search : "";
let liveState = null;
let drawn = null;
let busy = false;

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", "X-Skilltrail": "1" } };
  const reply = await fetch(path, options);
  const value = await reply.json();
  if (!reply.ok) throw new Error(value.error || `status ${reply.status}`);
  return value;
}

function follow() {
  const stream = new EventSource(`/api/stream${query}`);
  stream.onmessage = (event) => {
    liveState = JSON.parse(event.data);
    showNow();
    refresh();
  };
  stream.onerror = () => { if (liveState) fill(byId("now"), el("p", { class: "note" }, "The server does not answer; trying again.")); };
}

function showNow() {
  const state = liveState;
  const { stage, step, epoch, tail } = state.now;
  const calls = state.usage && state.usage.total;
  const where = state.running && step ? `step ${step}, epoch ${epoch}` : "";
  const open = byId("tail") && byId("tail").open;
  fill(byId("now"),
    el("div", { class: "bar" },
      el("b", { role: "status" }, state.word), where ? el("span", {}, where) : null,
      state.running ? el("ol", { class: "six", "aria-label": "Stage" }, SIX.map((name) => el("li", { "aria-current": name === stage ? "step" : null }, name))) : null,
      calls ? el("span", { class: "note" }, `${whole(calls.made)} calls made, ${whole(calls.reused)} reused${money(calls)}`) : null,
      el("span", { class: "gap" }),
      state.runs.length > 1 ? picker(state) : null,
      state.process.running
        ? el("button", { type: "button", onclick: () => ask("/api/stop", {}).catch(complain) }, "Stop")
        : link("#/start", "Start a run")),
    state.progress && state.progress.total ? progressBar(state.progress) : null,
    el("ol", { class: "newest", "aria-label": "Newest events" }, tail.slice(-NEWEST).map((line) => el("li", {}, said(line)))),
    state.fault ? el("p", { class: "bad" }, state.fault) : null,
    el("details", { id: "tail", open }, el("summary", {}, "Output"),
      el("pre", { tabindex: 0, "aria-label": "Events" }, tail.join("\n") || "no event yet"),
      state.process.command ? [el("p", { class: "note" }, state.process.command.join(" "),
        state.process.exit === null ? "" : ` ended with exit code ${state.process.exit}`),
      el("pre", {}, state.process.lines.join("\n").trim() || " ")] : null));
  for (const box of byId("tail").querySelectorAll("pre")) box.scrollTop = box.scrollHeight; // the newest in sight
}

function progressBar({ done, total, left }) {
  return el("p", { class: "progress" },
    el("progress", { max: total, value: done, "aria-label": "Rollouts done" }),
    el("span", { class: "note" }, `${whole(done)} of at most ${whole(total)} rollouts${left === null ? "" : `, at most ${left} left`}`));
}

// Unknown is said, and nothing was paid where no call was made.
function money({ made, cost }) {
  if (!made) return "";
  return cost === null ? ", cost unknown" : `, cost $${cost.toFixed(cost && cost < 0.1 ? 4 : 2)}`;
}

function picker(state) {
  return [el("label", { for: "run-choice", class: "quiet" }, "Run"),
    el("select", { id: "run-choice", onchange: (event) => { location.search = `?run=${encodeURIComponent(event.target.value)}`; } },
      state.runs.map(([name, running]) => el("option", { value: name, selected: name === state.run }, name + (running ? " (running)" : ""))))];
}

function complain(error) {
  byId("now").append(el("p", { class: "bad", role: "alert" }, error.message));
}

// Fetches the page again and takes over its first screen, its charts and its data.
async function refresh() {
  const wanted = JSON.stringify(liveState.revision);
  if (busy || wanted === drawn || liveState.fault) return;
  busy = true;
  try {
    const fresh = new DOMParser().parseFromString(await (await fetch(`/${query}`)).text(), "text/html");
    takeOver(fresh);
    drawn = wanted;
  } catch (error) {
    complain(error);
  }
  setTimeout(() => { busy = false; refresh(); }, PAUSE_MS);
}

function takeOver(fresh) {
  const data = fresh.getElementById("book");
  if (!data) return;
  if (!byId("book")) {
    location.reload(); // the first events: every panel is new
    return;
  }
  if (byId("book").textContent === data.textContent) return;
  byId("book").textContent = data.textContent;
  for (const part of [".lead", ".first", "#overview > .facts", "#steps > .chart"]) {
    document.querySelector(part).replaceWith(document.importNode(fresh.querySelector(part), true));
  }
  open(JSON.parse(data.textContent));
  const at = [window.scrollX, window.scrollY];
  if (!byId("main").contains(document.activeElement) || document.activeElement === byId("main")) show(false);
  window.scrollTo(...at);
}

follow();
