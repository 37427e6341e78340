// The form of params, made from the schema; before a run starts, doctor and plan are shown.
let formData = null;
const edited = new Map();

VIEWS.push(["start", "Start"]);
DRAW.start = async (node) => {
  try {
    if (!formData) formData = await ask("/api/params");
  } catch (error) {
    fill(node, el("p", { class: "bad", role: "alert" }, error.message));
    return;
  }
  fill(node, el("p", {}, "Left as it is, this is ", el("code", {}, "dvc repro"), "; with any change it is an experiment, ", el("code", {}, "dvc exp run -S …"), "."),
    el("form", { onsubmit: (event) => { event.preventDefault(); checkRun(); } },
      fields(formData.schema.properties, ""),
      el("p", { class: "controls" }, el("button", { type: "submit" }, "Check"), el("span", { id: "changed", class: "note" }, told()))),
    el("div", { id: "checked", "aria-live": "polite" }));
};

function fields(properties, prefix) {
  const plainOnes = [];
  const sections = [];
  for (const [name, schema] of Object.entries(properties)) {
    const key = prefix + name;
    if (schema.properties) sections.push(el("details", {}, el("summary", {}, key), fields(schema.properties, `${key}.`)));
    else if (key in formData.values) plainOnes.push(knob(key, schema));
  }
  return [el("div", { class: "knobs" }, plainOnes), sections];
}

function knob(key, schema) {
  const id = `knob-${key}`;
  const value = edited.has(key) ? edited.get(key) : formData.values[key];
  const types = [].concat(schema.type);
  const set = (fresh) => {
    if (JSON.stringify(fresh) === JSON.stringify(formData.values[key])) edited.delete(key);
    else edited.set(key, fresh);
    byId("changed").replaceChildren(told());
  };
  let input;
  if (types[0] === "boolean") {
    input = el("input", { type: "checkbox", id, checked: value, onchange: (event) => set(event.target.checked) });
  } else if (schema.enum) {
    input = el("select", { id, onchange: (event) => set(event.target.value === "" ? null : event.target.value) },
      schema.enum.map((one) => el("option", { value: one === null ? "" : one, selected: one === value }, one === null ? "null" : one)));
  } else {
    input = el("input", { id, type: "text", value: value === null ? "" : typeof value === "string" ? value : JSON.stringify(value),
      placeholder: value === null ? "null" : "", onchange: (event) => set(typed(event.target.value, types)) });
  }
  return el("div", { class: "knob" }, el("label", { for: id }, key), input,
    el("small", { id: `${id}-about` }, schema.description || ""));
}

// Text stays text where the schema wants it; the server says what it thinks of the rest.
function typed(text, types) {
  if (text === "" && types.includes("null")) return null;
  if (types[0] === "string") return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    return text; // not a number: the check names the key and what it must be
  }
}

const told = () => (edited.size ? [...edited].map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ") : "no change");

async function checkRun() {
  const node = byId("checked");
  const params = Object.fromEntries(edited);
  fill(node, el("p", {}, "Checking …"));
  try {
    const found = await ask("/api/check", { params });
    const bad = found.doctor.filter((row) => row.verdict !== "ok");
    fill(node,
      el("h3", {}, "Doctor"),
      bad.length ? el("ul", {}, bad.map((row) => el("li", {}, el("b", {}, `${row.verdict}: ${row.name} `), row.found, row.remedy ? `. ${row.remedy}` : ""))) : el("p", {}, "Nothing is wrong."),
      el("h3", {}, "Plan"), el("pre", {}, found.plan.told),
      el("p", {}, el("code", {}, found.command.join(" "))),
      el("button", { type: "button", onclick: () => startRun(node, params) }, "Start"));
  } catch (error) {
    fill(node, el("p", { class: "bad", role: "alert" }, error.message));
  }
}

async function startRun(node, params) {
  try {
    await ask("/api/start", { params });
    fill(node, el("p", {}, "Started. The page follows it."));
    location.hash = "#/";
  } catch (error) {
    fill(node, el("p", { class: "bad", role: "alert" }, error.message));
  }
}

if (byId("start")) {
  byId("nav").append(el("a", { href: "#/start", "data-view": "start" }, "Start"));
  if (location.hash === "#/start") show(false);
}

// Proposed items of sessions: a person accepts, edits or drops each.
VIEWS.push(["review", "Review"]);
DRAW.review = async (node) => {
  try {
    drawProposals(node, (await ask("/api/proposals")).folders);
  } catch (error) {
    fill(node, el("p", { class: "bad", role: "alert" }, error.message));
  }
};

function drawProposals(node, folders) {
  const waiting = folders.filter((one) => one.left.length);
  const faults = folders.filter((one) => one.fault).map((one) => el("p", { class: "bad", role: "alert" }, `${one.folder}: ${one.fault}`));
  if (!waiting.length) {
    fill(node, faults, el("p", {}, "No proposed item waits. ", el("code", {}, "skilltrail harvest --from claude"), " proposes some."));
    return;
  }
  fill(node, faults, waiting.map((one) => {
    const count = el("span", { role: "status" }, some(one.left.length, "proposal"));
    return [
      el("p", { class: "note" }, count, " in ", el("code", {}, one.folder), "; what is accepted goes to ", el("code", {}, one.items)),
      el("ul", { class: "edits" }, one.left.map((record) => proposedItem(node, one.folder, record, count)))];
  }));
}

function proposedItem(node, folder, record, count) {
  const box = (name, text) => el("textarea", { id: `${name}-${record.id}`, rows: Math.min(8, text.split("\n").length + 1) }, text);
  const question = box("question", record.question);
  const answer = box("answer", record.answer);
  const card = el("li", { class: "edit" });
  const decide = async (accepted) => {
    const body = { folder, id: record.id, accepted };
    if (question.value !== record.question) body.question = question.value;
    if (answer.value !== record.answer) body.answer = answer.value;
    try {
      count.textContent = some((await ask("/api/review", body)).left, "proposal");
      const next = card.nextElementSibling ?? card.previousElementSibling;
      card.remove();
      if (!node.querySelector("li.edit")) DRAW.review(node);
      else next?.querySelector("button").focus();
    } catch (error) {
      card.append(el("p", { class: "bad", role: "alert" }, error.message));
    }
  };
  card.append(
    el("p", { class: "head" }, el("code", { class: "id" }, record.id), el("b", {}, record.found),
      el("span", { class: "note" }, ` in ${some(record.sessions, "session")}`)),
    record.risks.length ? el("p", { class: "bad" }, `Look twice: ${record.risks.join(", ")}`) : "",
    el("label", { for: question.id }, "Question"), question,
    record.feedback ? el("p", { class: "note" }, said(record.feedback)) : "",
    record.command ? el("p", { class: "note" }, el("code", {}, record.command)) : "",
    el("label", { for: answer.id }, "Answer"), answer,
    el("p", { class: "controls" },
      el("button", { type: "button", onclick: () => decide(true) }, "Accept"), " ",
      el("button", { type: "button", onclick: () => decide(false) }, "Drop")));
  return card;
}

if (byId("review")) {
  byId("nav").append(el("a", { href: "#/review", "data-view": "review" }, "Review"));
  if (location.hash === "#/review") show(false);
}
