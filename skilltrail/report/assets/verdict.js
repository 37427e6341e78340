// The verdict of a gate: the means, and every item whose score moved, before and after.
function judgement(data, seq) {
  const before = lastScored(data.current, seq);
  const after = lastScored(data.candidate, seq);
  const notes = movesOf(data, before, after);
  const places = placesOf(...(after ? [after] : []));
  const flips = (mark, name, items) => el("p", { class: mark }, el("b", {}, `${name} `), chips(items, { mark, places, notes }));
  return [
    el("p", { class: "judged" }, scores(data)),
    el("p", {}, said(inTerms(data.reason)), `. ${data.judged} of ${data.total} items judged by ${data.rule} on ${data.metric}`,
      data.saved ? `; ${some(data.saved, "rollout")} skipped: even a perfect rest could not have reached the current score.` : ".",
      data.statistic ? ` ${data.statistic.name}: p=${Number(data.statistic.p.toPrecision(3))}, ${data.statistic.wins} up, ${data.statistic.losses} down.` : ""),
    ...(data.targets || []).map((one) => el("p", { class: "note" }, `${one.target}: ${meansOf(one)}, floor ${one.floor}, weight ${one.weight}.`)),
    flips("up", "Up", data.flips.won),
    flips("down", "Down", data.flips.lost),
    el("p", { class: "note" }, `Tokens ${data.tokens_before} → ${data.tokens_after}.`),
    ...(data.cost ? [el("p", { class: "note" }, `The agent used ${costOf(data.cost.before)} before, ${costOf(data.cost.after)} after.`)] : []),
  ];
}

function costOf({ tokens, calls }) {
  return `${tokens === null ? "an unknown number of" : tokens} tokens in ${some(calls, "call")}`;
}

// The last rollouts of a skill on the selection split before an event.
function lastScored(skill, seq) {
  for (let at = book.scored.length - 1; at >= 0; at -= 1) {
    const scored = book.scored[at];
    if (scored.seq < seq && scored.skill === skill && ["baseline", "selection"].includes(scored.purpose)) return scored;
  }
  return null;
}

function movesOf(data, before, after) {
  if (!before || !after) return new Map();
  const [from, to] = [metricOf(data, before), metricOf(data, after)];
  const short = (value) => (value === undefined ? "none" : String(Number(value.toPrecision(3))));
  return new Map([...data.flips.won, ...data.flips.lost].map((item) => [item, `${short(from.get(item))}→${short(to.get(item))}`]));
}

// The gate's metric by item, the mean over its repeats; items without a score are left out.
function metricOf(data, scored) {
  const weight = data.mixed_weight === undefined ? 0.5 : data.mixed_weight;
  const value = { hard: (hard) => hard, soft: (_, soft) => soft, mixed: (hard, soft) => (1 - weight) * hard + weight * soft }[data.metric];
  const found = new Map();
  scored.item.forEach((item, row) => {
    if (scored.hard[row] < 0) return;
    const values = found.get(item) || [];
    values.push(value(scored.hard[row] / 1000, scored.soft[row] / 1000));
    found.set(item, values);
  });
  return new Map([...found].map(([item, values]) => [item, values.reduce((sum, one) => sum + one, 0) / values.length]));
}

function meansOf(data) {
  const now = data.after === null ? `at most ${score(data.after_max)}` : score(data.after);
  return `${score(data.before)} → ${now}`;
}

function scores(data) {
  return [verdict(data.verdict), ` ${meansOf(data)}`, data.forced ? " (forced)" : ""];
}

// What became of the lines that a version's edits wrote, and what was tried on them in vain.
function aftermath(data, seq) {
  const vain = attempts(data.version, seq);
  return [
    el("p", {}, "The candidate became ", link(`#/skill/v${data.version}`, `v${data.version}`), data.best ? ", the best so far." : "."),
    el("ul", { class: "fates" }, fates(data.version).map(({ id, written, losses, kept, last }) => el("li", { "data-edit": id },
      el("code", {}, id), ` wrote ${some(written, "line")}: `,
      losses.map((loss) => [`${loss.lines} gone in `, link(`#/skill/v${loss.version}`, `v${loss.version}`), loss.patch ? ` by ${S(loss.patch)}; ` : "; "]),
      kept ? `${kept === written ? "all" : kept} still in v${last}.` : "none left."))),
    vain.length ? el("ul", { class: "fates" }, vain.map(({ gate, id, op, line }) => el("li", { "data-edit": id },
      `Step ${gate.step} tried to ${op} `, el("q", {}, line), " (", el("code", {}, id), "): ", scores(gate)))) : null,
  ];
}

// Edits of later candidates that lost, which would have changed or removed a line of a version.
function attempts(number, seq) {
  const wrote = linesOf(number).filter((line) => book.lines.version[line] === number).map(lineText);
  const wanted = new Set(wrote.filter((line) => line.trim()));
  const accepted = new Set(book.versions.map((version) => version.gate));
  const found = [];
  let built = null;
  for (const event of [...eventBySeq.values()].sort((a, b) => a.seq - b.seq)) {
    if (event.type === "candidate.built") built = event;
    if (event.type !== "gate.judged" || !built || built.seq < seq || accepted.has(event.seq)) continue;
    for (const { edit: id } of unpacked(built.packed).results) {
      const { op, target } = edit(id) || {};
      const line = ["delete", "replace"].includes(op) && target.split("\n").find((text) => wanted.has(text));
      if (line) found.push({ gate: unpacked(event.packed), id, op, line });
    }
  }
  return found;
}

function fates(number) {
  const last = book.versions.length - 1;
  const edits = new Map();
  for (let version = number; version <= last; version += 1) {
    const alive = new Map();
    for (const line of linesOf(version)) {
      const id = book.lines.edit[line];
      if (book.lines.version[line] === number) alive.set(id, (alive.get(id) || 0) + 1);
    }
    if (version === number) for (const [id, written] of alive) edits.set(id, { id, written, kept: written, losses: [], last });
    for (const fate of edits.values()) {
      const now = alive.get(fate.id) || 0;
      if (now < fate.kept) fate.losses.push({ version, lines: fate.kept - now, patch: book.versions[version].patch });
      fate.kept = now;
    }
  }
  return [...edits.values()];
}
