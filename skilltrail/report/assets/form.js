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
