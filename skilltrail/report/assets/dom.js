// Making elements. A string only ever becomes a text node, with what would not show spelled out.
const plain = (text) =>
  String(text).replace(HIDDEN, (found) => `\\u{${found.codePointAt(0).toString(16)}}`);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : plain(value));
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
  return node;
}

const fill = (node, ...children) => add((node.replaceChildren(), node), children);
const link = (hash, ...children) => el("a", { href: hash }, children);
// A text from outside within a sentence of ours: neither turns the direction of the other.
const said = (text) => el("bdi", {}, text);
const byId = (id) => document.getElementById(id);

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, plain(value));
  return add(node, children);
}

const score = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
const whole = (value) => value.toLocaleString("en");
// What logs call things, and what people are told (`TERMS` in history/log/terms.py).
const TERMS = {
  "no_patch": "no edit proposed",
  "no_change": "document unchanged",
  "nobody proposed an edit": "no edit proposed",
  "cannot win any more": "cannot reach the current score",
  "one half of what lost": "retry: half of the rejected edits",
};
function inTerms(recorded) {
  const text = String(recorded);
  const word = Object.keys(TERMS).find((one) => text.startsWith(one));
  return word ? TERMS[word] + text.slice(word.length) : text;
}
const words = (name) => inTerms(name).replace(/_/g, " ");
// A control and what it is called, which stay together where a row of them breaks.
const field = (name, control) => el("label", { class: "field" }, el("span", {}, name), control);
const some = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;
