// What changed and what may be relied on, below the first screen.
function overview(node) {
  const newest = [...book.versions].slice(1).reverse();
  fill(node,
    el("div", { class: "two" },
      el("section", {},
        el("h2", {}, "What was learnt"),
        newest.length ? learnt(newest) : el("p", { class: "note" }, "No change has been accepted.")),
      el("section", {},
        el("h2", {}, "Integrity checks"),
        trustList(book.trust.filter((row) => ["note", "bad"].includes(row.verdict) || ["Chain", "Decisions", "Evaluation", "Test split", "Coverage"].includes(row.what))),
        el("p", {}, link("#/trust", "All checks")))));
}

function learnt(newest) {
  const shown = newest.slice(0, 6);
  return [
    el("ol", { class: "learnt" }, shown.map((version) => {
      const gain = gainOf(version);
      const lines = version.edits.map(edit).filter((one) => one && one.content).map(gist);
      return el("li", {},
        link(`#/skill/v${version.version}`, `v${version.version}`),
        el("span", { class: "gain" }, gain === null ? "" : signed(gain)),
        el("span", { class: "what" }, said(lines[0] || ""), " ",
          el("small", {}, `${some(version.edits.length, "edit")}, +${version.lines_added} −${version.lines_removed} lines`),
          lines.length > 1 ? el("ul", {}, lines.slice(1, 6).map((line) => el("li", {}, said(line)))) : null));
    })),
    newest.length > shown.length ? el("p", {}, link("#/skill", `All ${newest.length} versions`)) : null,
  ];
}

// An edit in a line: a rule's first line, a worked example by its question and answer.
function gist({ content, kind }) {
  const lines = content.trim().split("\n").filter((text) => text && !text.startsWith("<!--"));
  const asked = lines.find((text) => /^\s*(?:Question|질문):/.test(text));
  const line = kind !== "rule" && asked ? `Example: ${asked.replace(/^\s*\S+\s*/, "")} → ${lines[lines.length - 1].replace(/^\s*\S+:\s*/, "")}` : lines[0] || "";
  return line.slice(0, 160) + (line.length > 160 ? "…" : "");
}

function trustList(rows) {
  const marks = { good: "✓", fact: "", note: "!", bad: "✗" };
  const told = { good: "verified", fact: "not verified", note: "note", bad: "fault" };
  return el("dl", { class: "trust" }, rows.map((row) => el("div", { class: row.verdict },
    el("dt", {}, el("span", { class: "mark", role: "img", "aria-label": told[row.verdict] }, marks[row.verdict]), row.what),
    el("dd", {}, said(row.found)))));
}
