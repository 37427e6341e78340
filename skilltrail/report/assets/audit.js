// The audit of a step: from the evidence to the aftermath.
function audit(node, kind, name, version) {
  const line = kind === "line" ? lineAt(name, version) : null;
  const chapter = kind === "line" ? line && chapterOfVersion(book.lines.version[line.id])
    : kind === "epoch" ? chapters.epoch.get(Number(name)) : chapters.step.get(Number(name));
  if (!chapter) {
    fill(node, line ? lineNote(line) : null,
      el("p", {}, "Choose a step, a version or a line of the skill to see why it is as it is."), chooser());
    return;
  }
  const title = chapter.kind === "step" ? `Step ${chapter.number}, epoch ${chapter.epoch}` : `End of epoch ${chapter.number}`;
  const whole = el("ol", { class: "account" }, account(chapter));
  const writer = line && edit(book.lines.edit[line.id]);
  fill(node, neighbours(chapter), el("h3", {}, title),
    outcome(chapter),
    line ? lineNote(line) : null,
    writer ? [el("h4", {}, "The edit that wrote it"), el("ul", { class: "edits" }, editCard(writer.id, new Map())),
      el("details", {}, el("summary", {}, "The whole step"), whole)] : whole);
}

function chooser() {
  const all = [...chapters.step.values(), ...chapters.epoch.values()].sort((a, b) => a.events[0].seq - b.events[0].seq);
  return table("Steps and epoch ends", [
    { name: "what", show: (one) => link(chapterHash(one), one.kind === "step" ? `Step ${one.number}` : `End of epoch ${one.number}`) },
    { name: "how it ended", show: (one) => outcome(one) || "–" },
  ], all, { size: 50 });
}

function neighbours(chapter) {
  const all = [...chapters.step.values(), ...chapters.epoch.values()].sort((a, b) => a.events[0].seq - b.events[0].seq);
  const at = all.indexOf(chapter);
  const to = (other, text) => (other ? link(chapterHash(other), text) : el("span", { class: "off" }, text));
  return el("p", { class: "neighbours" }, to(all[at - 1], "← Before"), to(all[at + 1], "After →"));
}

function outcome(chapter) {
  const judged = firstOf(chapter, "gate.judged");
  const ended = firstOf(chapter, "step.ended");
  if (!judged) return ended ? el("p", { class: "judged" }, verdict(ended.packed.result), ended.packed.reason ? [" ", said(S(ended.packed.reason))] : "") : null;
  return el("p", { class: "judged" }, scores(judged.packed));
}

// A line of a version (the best one unless named), counted from 1 as `skilltrail audit --line` does.
function lineAt(name, versionName) {
  const version = versionName === undefined ? bestVersion() : Number(versionName.replace(/^v/, ""));
  const id = book.versions[version] && linesOf(version)[Number(name) - 1];
  return id === undefined ? null : { id, number: Number(name), version };
}

const lineHash = (number, version) => `#/audit/line/${number}/v${version}`;

function lineNote({ id, number, version }) {
  const origin = book.versions[book.lines.version[id]];
  const writer = origin.version === 0 ? "It stood in the seed."
    : `Written by edit ${book.lines.edit[id]} in version v${origin.version}${gained(origin)}.`;
  return el("blockquote", {}, el("code", {}, lineText(id)), el("p", { class: "note" }, `Line ${number} of v${version}. ${writer}`));
}

// A gate judges a version whole, so a gain belongs to all its edits.
function gained(version) {
  const gain = gainOf(version);
  if (gain === null) return "";
  return `, whose gain is ${signed(gain)}${together(version)}`;
}

const together = (version) => (version.edits.length > 1 ? ` of ${some(version.edits.length, "edit")} together` : "");

function account(chapter) {
  const learned = ofType(chapter, "rollouts.scored").map((event) => event.scored).filter((scored) => scored.purpose !== "selection");
  const places = placesOf(...learned);
  const part = (name, ...content) => el("li", {}, el("h4", {}, name), content);
  const kinds = {
    "budget.decided": (data) => part("Edit budget", budget(data)),
    "patch.proposed": (data) => part("Proposal", proposal(data, places)),
    "reply.rejected": (data) => part("Invalid reply", el("p", {}, `${data.stage}: `, said(data.message), ". ", said(data.then))),
    "patch.merged": (data) => part("Merge", merge(data, places)),
    "edits.selected": (data) => part("Selection", selection(data, places)),
    "appendix.proposed": (data) => part("Notes", editList(idsOf(data), places)),
    "slow_update.compared": (data) => part("Comparison of epochs", comparison(data, places)),
    "slow_update.proposed": (data) => part("Guidance", el("p", {}, said(data.reasoning)), editList(idsOf(data), places)),
    "compaction.proposed": (data) => part("Compaction", el("p", {}, said(data.reasoning)), editList(idsOf(data), places)),
    "meta_skill.written": (data) => part("Meta skill", el("pre", {}, data.text)),
    "candidate.built": (data) => part("Application", application(data)),
    "gate.judged": (data, seq) => part("Verdict", judgement(data, seq)),
    "skill.versioned": (data, seq) => part("Aftermath", aftermath(data, seq)),
    "step.ended": (data) => (data.result === "accepted" ? null : part("Aftermath", ended(data))),
  };
  return chapter.events.map((event) => {
    if (event.scored) {
      return event.scored.purpose === "selection" ? null
        : part(event.scored.purpose === "train" ? "Evidence" : "Evidence of the epoch", scoredSummary(event.scored));
    }
    return kinds[event.type] ? kinds[event.type](unpacked(event.packed), event.seq) : null;
  });
}

function budget(data) {
  const most = data.budget === null ? "No cap" : `At most ${some(data.budget, "edit")}`;
  const told = ["lr", "lr_min", "total_steps"].filter((name) => data[name] !== undefined).map((name) => `, ${name} ${data[name]}`);
  return el("p", {}, `${most}: schedule ${data.schedule}`, told, ". ", said(data.reason));
}

function proposal(data, places) {
  const source = some(data.items.length, data.source).replace("successs", "successes");
  return [
    el("p", {}, `Patch ${data.patch}, from ${source}, decided by ${data.rule === null ? "the optimizer model" : data.rule}.`),
    data.reasoning ? el("blockquote", {}, inTerms(data.reasoning)) : null,
    data.failure_types.length ? failureTypes(data.failure_types, places) : null,
    editList(idsOf(data), places),
  ];
}

function failureTypes(groups, places) {
  return el("dl", { class: "kinds" }, groups.map(([type, items]) => el("div", {}, el("dt", {}, words(type)), el("dd", {}, chips(items, { places })))));
}

function merge(data, places) {
  return [
    el("p", {}, `${data.inputs.join(", ")} → ${data.patch}: ${some(data.edits.length, "edit")}, level ${data.level}, ${data.group}.`,
      data.dropped && data.dropped.length ? ` Dropped: ${data.dropped.join(", ")}.` : "", " ", said(data.reason)),
    el("details", {}, el("summary", {}, "Merged edits"), editList(idsOf(data), places)),
  ];
}

function selection(data, places) {
  return [
    el("p", {}, `${data.selected.length} chosen, in this order. `, said(data.reason)),
    editList(data.selected, places),
    data.left_out.length ? el("details", {}, el("summary", {}, `${data.left_out.length} left out`),
      el("ul", {}, data.left_out.map((one) => el("li", {}, el("code", {}, one.edit), " ", said(one.reason))))) : null,
  ];
}

function application(data) {
  return [
    el("p", {}, `${data.mode === "patch" ? "Edits applied to the current skill" : "The document was rewritten"}, ${some(data.tokens, "token")}.`),
    el("ul", { class: "edits" }, data.results.map((result) => resultRow(result, data.parent))),
    data.faults.length ? el("p", { class: "bad" }, "Invalid document: ", data.faults.map((fault) => [said(fault), " "])) : null,
    data.diff ? el("details", {}, el("summary", {}, "Unified diff"), el("pre", { class: "changes" }, data.diff)) : null,
  ];
}

function ended(data) {
  return el("p", {}, `The step ended: ${words(data.result)}`, data.reason ? [", ", said(inTerms(data.reason))] : "", `. The skill stayed v${data.version}.`);
}
