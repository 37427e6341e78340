// Versions of the skill: what changed in words, and who wrote each line.
const CONTEXT = 3;

function skill(node, choice) {
  const [from, to] = chosen(choice);
  const last = book.versions.length - 1;
  const go = (a, b) => { location.hash = a === b - 1 ? `#/skill/v${b}` : `#/skill/v${a}..v${b}`; };
  const slider = el("input", { type: "range", id: "version", min: 0, max: last, value: to,
    oninput: (event) => byId("version-name").replaceChildren(`v${event.target.value}`),
    onchange: (event) => go(Number(event.target.value) - 1, Number(event.target.value)) });
  const base = el("select", { id: "base", onchange: (event) => go(Number(event.target.value), to) },
    book.versions.map((version) => el("option", { value: version.version, selected: version.version === from }, `v${version.version}`)));
  const version = book.versions[to];
  fill(node,
    el("div", { class: "controls" },
      el("label", { for: "version" }, "Version ", el("output", { id: "version-name" }, `v${to}`)), slider,
      el("button", { type: "button", disabled: to === 0, onclick: () => go(to - 2, to - 1) }, "Older"),
      el("button", { type: "button", disabled: to === last, onclick: () => go(to, to + 1) }, "Newer"),
      field("compared with", base)),
    el("p", { class: "sub" }, about(version)),
    el("div", { class: "skillview" },
      el("section", {}, el("h3", {}, from < 0 ? "The seed" : `What changed since v${from}`),
        from < 0 ? document_(to, false) : changes(from, to)),
      el("section", {}, el("h3", {}, `v${to}, line by line`),
        el("p", { class: "note" }, "On the left, the version and step that wrote the line, and what all edits of that version gained together. Choose a line for its audit."),
        document_(to, true))),
    book.versions.length > 1 ? [el("h3", {}, "All versions"), versionTable()] : null);
}

function chosen(choice) {
  const found = /^v(\d+)(?:\.\.v(\d+))?$/.exec(choice || "");
  const last = book.versions.length - 1;
  if (!found) return [Math.max(-1, bestVersion() - 1), bestVersion()];
  const to = Math.min(last, Number(found[2] === undefined ? found[1] : found[2]));
  return [found[2] === undefined ? to - 1 : Math.min(last, Number(found[1])), to];
}

function about(version) {
  if (version.version === 0) return `The seed skill, ${some(version.tokens, "token")}.`;
  const gain = gainOf(version);
  const chapter = chapterOfVersion(version.version);
  return [
    chapter && chapter.kind === "epoch" ? `From the end of epoch ${version.epoch}` : `From step ${version.step}`,
    gain === null ? "" : `, ${signed(gain)}${together(version)} on the selection split`,
    `, +${version.lines_added} −${version.lines_removed} lines, ${some(version.tokens, "token")}. `,
    version.version === bestVersion() ? "This is the best version. " : "",
    link(chapterHash(chapter), "Why it was accepted"),
  ];
}

function changes(from, to) {
  const parts = blocks(compare(linesOf(from), linesOf(to)));
  if (parts.every((part) => part.same)) return el("p", { class: "note" }, "The two versions are the same.");
  return el("div", { class: "diff", role: "group", "aria-label": `Changes from v${from} to v${to}` },
    parts.map((part, place) => (part.same ? context(part.same, place, parts.length) : changed(part))));
}

function context(lines, place, total) {
  const row = (number) => el("div", { class: "row" }, el("span", { class: "sign", "aria-hidden": "true" }, " "), el("code", {}, lineText(number) || " "));
  const before = place === 0 ? 0 : CONTEXT;
  const behind = place === total - 1 ? 0 : CONTEXT;
  if (lines.length <= before + behind + 1) return lines.map(row);
  const hidden = lines.slice(before, lines.length - behind);
  const more = el("button", { type: "button", class: "more", onclick: (event) => event.target.replaceWith(...hidden.map(row)) },
    some(hidden.length, "unchanged line"));
  return [lines.slice(0, before).map(row), more, lines.slice(lines.length - behind).map(row)];
}

function changed({ gone, come }) {
  const pairs = gone.map((number, place) => (place < come.length ? wordDiff(lineText(number), lineText(come[place])) : null));
  const row = (kind, sign, told, pieces) => el("div", { class: `row ${kind}` },
    el("span", { class: "sign", role: "img", "aria-label": told }, sign), el("code", {}, pieces));
  return [
    gone.map((number, place) => row("gone", "−", "removed", pairs[place] ? pairs[place].before : lineText(number))),
    come.map((number, place) => row("come", "+", "added", pairs[place] ? pairs[place].after : lineText(number))),
  ];
}

function document_(number, blamed) {
  let before = null;
  return el("ol", { class: blamed ? "blame" : "blame bare" }, linesOf(number).map((line, place) => {
    const origin = book.lines.version[line];
    const version = book.versions[origin];
    const gain = version ? gainOf(version) : null;
    const repeated = before === `${origin}`;
    before = `${origin}`;
    const told = origin === 0 ? "seed" : `v${origin} · step ${version.step}${gain === null ? "" : ` · ${signed(gain)}`}`;
    const text = el("code", {}, lineText(line) || " ");
    if (!blamed) return el("li", {}, text);
    const who = el("span", { class: repeated ? "who again" : "who" }, told);
    const at = el("span", { class: "at" }, `${place + 1}`);
    return el("li", { class: origin === number && number > 0 ? "fresh" : null },
      origin === 0 ? [who, at, text] : el("a", { href: lineHash(place + 1, number) }, who, at, text));
  }));
}

function versionTable() {
  return table("All versions", [
    { name: "version", key: (row) => row.version, show: (row) => [link(`#/skill/v${row.version}`, `v${row.version}`), row.version === bestVersion() ? " best" : ""] },
    number("step", (row) => row.step),
    number("gain", gainOf, signed),
    number("lines added", (row) => row.lines_added),
    number("removed", (row) => row.lines_removed),
    number("tokens", (row) => row.tokens),
    { name: "digest", show: (row) => el("code", {}, row.digest) },
  ], book.versions, { size: 50 });
}
