// The audit of a step: from the evidence to the aftermath.
function audit(node, kind, name) {
  const chapter = kind === "line" ? chapterOfVersion(book.lines.version[Number(name)])
    : kind === "epoch" ? chapters.epoch.get(Number(name)) : chapters.step.get(Number(name));
  if (!chapter) {
    fill(node, el("p", {}, "Choose a step, a version or a line of the skill to see why it is as it is."), chooser());
    return;
  }
  const title = chapter.kind === "step" ? `Step ${chapter.number}, epoch ${chapter.epoch}` : `End of epoch ${chapter.number}`;
  fill(node, neighbours(chapter), el("h3", {}, title),
    outcome(chapter),
    kind === "line" ? lineNote(Number(name)) : null,
    el("ol", { class: "account" }, account(chapter)));
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
  if (!judged) return ended ? el("p", { class: "judged" }, verdict(ended.packed.result), ended.packed.reason ? [" ", S(ended.packed.reason)] : "") : null;
  return el("p", { class: "judged" }, scores(judged.packed));
}

function scores(data) {
  const now = data.after === null ? `at most ${score(data.after_max)}` : score(data.after);
  return [verdict(data.verdict), ` ${score(data.before)} → ${now}`, data.forced ? " (forced)" : ""];
}

function lineNote(line) {
  return el("blockquote", {}, el("code", {}, lineText(line)), el("p", { class: "note" },
    `Written by edit ${book.lines.edit[line]} in version v${book.lines.version[line]}.`));
}

function account(chapter) {
  const part = (name, ...content) => el("li", {}, el("h4", {}, name), content);
  const kinds = {
    "rollouts.scored": (event) => (event.scored.purpose === "selection" ? null : part(
      event.scored.purpose === "train" ? "Evidence" : "Evidence of the epoch", scoredSummary(event.scored))),
    "budget.decided": (event) => part("Edit budget", budget(event.packed)),
    "patch.proposed": (event) => part("Proposal", proposal(event.packed)),
    "reply.rejected": (event) => part("Unusable reply", el("p", {}, `${event.packed.stage}: `, S(event.packed.message), ". ", S(event.packed.then))),
    "patch.merged": (event) => part("Merge", merge(event.packed)),
    "edits.selected": (event) => part("Selection", selection(event.packed)),
    "appendix.proposed": (event) => part("Notes", editList(idsOf(event.packed))),
    "slow_update.compared": (event) => part("Comparison of epochs", comparison(event.packed)),
    "slow_update.proposed": (event) => part("Guidance", el("p", {}, S(event.packed.reasoning)), editList(idsOf(event.packed))),
    "compaction.proposed": (event) => part("Compaction", el("p", {}, S(event.packed.reasoning)), editList(idsOf(event.packed))),
    "meta_skill.written": (event) => part("Meta skill", el("pre", {}, S(event.packed.text))),
    "candidate.built": (event) => part("Application", application(event.packed)),
    "gate.judged": (event) => part("Verdict", judgement(event.packed)),
    "skill.versioned": (event) => part("Aftermath", aftermath(event.packed)),
    "step.ended": (event) => (event.packed.result === "accepted" ? null : part("Aftermath", ended(event.packed))),
  };
  return chapter.events.map((event) => (kinds[event.type] ? kinds[event.type](event) : null));
}

function budget(data) {
  const most = data.budget === null ? "No cap" : `At most ${some(data.budget, "edit")}`;
  return el("p", {}, `${most}, schedule ${data.schedule}`, data.lr === undefined ? "" : ` from lr ${data.lr}`, ". ", S(data.reason));
}

function proposal(data) {
  return [
    el("p", {}, `Patch ${data.patch}, from ${some(data.items.length, data.source)}, decided by ${data.rule || "the optimizer model"}.`.replace("successs", "successes")),
    data.reasoning ? el("blockquote", {}, S(data.reasoning)) : null,
    data.failure_types.length ? failureTypes(data.failure_types) : null,
    editList(idsOf(data)),
  ];
}

function failureTypes(pairs) {
  const groups = new Map();
  for (const [item, type] of pairs) groups.set(type, [...(groups.get(type) || []), item]);
  return el("dl", { class: "kinds" }, [...groups].map(([type, items]) => el("div", {}, el("dt", {}, words(type)), el("dd", {}, chips(items)))));
}

function merge(data) {
  return [
    el("p", {}, `${data.inputs.join(", ")} → ${data.patch}: ${some(data.edits.length, "edit")}, level ${data.level}, ${data.group}.`,
      data.dropped && data.dropped.length ? ` Dropped: ${data.dropped.join(", ")}.` : "", " ", S(data.reason)),
    el("details", {}, el("summary", {}, "Merged edits"), editList(idsOf(data))),
  ];
}

function selection(data) {
  return [
    el("p", {}, `${data.selected.length} chosen, in this order. `, S(data.reason)),
    editList(data.selected),
    data.left_out.length ? el("details", {}, el("summary", {}, `${data.left_out.length} left out`),
      el("ul", {}, data.left_out.map((one) => el("li", {}, el("code", {}, one.edit), " ", S(one.reason))))) : null,
  ];
}

function application(data) {
  return [
    el("p", {}, `${data.mode === "patch" ? "Edits applied to the current skill" : "The document was rewritten"}, ${some(data.tokens, "token")}.`),
    el("ul", { class: "edits" }, data.results.map((result) => resultRow(result.edit, result))),
    data.faults.length ? el("p", { class: "bad" }, "Unusable: ", data.faults.map(S).join("; ")) : null,
    data.diff ? el("details", {}, el("summary", {}, "Unified diff"), el("pre", { class: "diff" }, S(data.diff))) : null,
  ];
}

function judgement(data) {
  return [
    el("p", { class: "judged" }, scores(data)),
    el("p", {}, S(data.reason), `. ${data.judged} of ${data.total} items judged by ${data.rule} on ${data.metric}`,
      data.saved ? `; ${data.saved} rollouts saved: even a perfect rest could not have won.` : ".",
      data.statistic ? ` ${data.statistic.name}: p = ${data.statistic.p.toPrecision(2)}, ${data.statistic.wins} up, ${data.statistic.losses} down.` : ""),
    el("p", {}, el("b", {}, "Up "), chips(data.flips.won, "up")),
    el("p", {}, el("b", {}, "Down "), chips(data.flips.lost, "down")),
    el("p", { class: "note" }, `Tokens ${data.tokens_before} → ${data.tokens_after}.`),
  ];
}

function aftermath(data) {
  const last = book.versions.length - 1;
  const mine = linesOf(data.version).filter((line) => book.lines.version[line] === data.version);
  const left = new Set(linesOf(last));
  const kept = mine.filter((line) => left.has(line)).length;
  return el("p", {}, "The candidate became ", link(`#/skill/v${data.version}`, `v${data.version}`), data.best ? ", the best so far" : "",
    `. Of the ${some(mine.length, "line")} it wrote, ${kept} ${kept === 1 ? "stands" : "stand"} in the last version, v${last}.`);
}

function ended(data) {
  return el("p", {}, `The step ended: ${words(data.result)}`, data.reason ? [", ", S(data.reason)] : "", `. The skill stayed v${data.version}.`);
}
