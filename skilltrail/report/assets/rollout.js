// One item: all its rollouts, and what was said in one of them.
function rollouts(node, item, wanted) {
  const rows = [];
  for (const scored of book.scored) {
    scored.item.forEach((number_, row) => { if (number_ === item) rows.push({ scored, row, name: `${scored.seq}.${row}` }); });
  }
  const shown = rows.find((one) => one.name === wanted) || rows[rows.length - 1];
  if (!shown) {
    fill(node, el("p", {}, "There is no such item."));
    return;
  }
  fill(node,
    el("p", {}, link("#/items", "← All items")),
    el("h3", {}, said(itemName(item)), el("small", {}, ` ${book.items.split[item]}`)),
    el("div", { class: "two wide-left" },
      trajectory(shown),
      el("section", {}, el("h4", {}, "All rollouts of this item"), table("Rollouts of this item", [
        { name: "skill", key: (one) => one.scored.seq, show: (one) => el("a", { href: `#/items/${item}@${one.name}`, "aria-current": one === shown ? "true" : null }, skillName(one.scored.skill)) },
        { name: "for", show: (one) => words(one.scored.purpose) + (one.scored.step ? ` ${one.scored.step}` : "") },
        number("hard", (one) => point(one.scored.hard[one.row]), score),
        number("soft", (one) => point(one.scored.soft[one.row]), score),
      ], rows, { size: 30 }))));
}

const point = (thousandths) => (thousandths < 0 ? null : thousandths / 1000);

function trajectory({ scored, row }) {
  const found = book.trajectories[scored.trajectory[row]];
  const hard = point(scored.hard[row]);
  const head = el("p", {}, hard === null ? "No reply. " : [el("b", {}, `hard ${score(hard)}, soft ${score(point(scored.soft[row]))}`), " "],
    said(book.strings[scored.reason[row]]), ` (${skillName(scored.skill)}, ${words(scored.purpose)})`);
  if (!found) {
    return el("section", { class: "trajectory" }, head, el("p", { class: "note" }, book.run.facts
      ? "This rollout is not among the exported ones."
      : "Rollouts are not here: `dvc pull`, then build the report again."));
  }
  const { answer, ending, turns } = spoken(found);
  const box = (name, text, kind) => el("div", { class: `turn ${kind}` }, el("h5", {}, name), el("pre", {}, text || " "));
  const expected = book.items.expected[scored.item[row]];
  return el("section", { class: "trajectory" }, head,
    turns.map(([sent, reply, finish, observation], place) => [
      box(turns.length > 1 ? `Sent, turn ${place + 1}` : "Sent after the skill", book.strings[sent], "sent"),
      box(finish === "stop" ? "Reply" : `Reply (${finish})`, book.strings[reply], "reply"),
      observation === undefined ? null : box("Observed", book.strings[observation], "sent"),
    ]),
    box(ending === "answered" ? "Answer as scored" : `Answer as scored (${words(ending)})`, answer, "answer"),
    expected === null ? null : box("Expected", book.strings[expected], "expected"));
}

function spoken(found) {
  if (found.length === 3) return { answer: book.strings[found[0]], ending: found[1], turns: found[2] };
  const [sent, reply] = found; // one plain turn
  return { answer: book.strings[reply].trim(), ending: "answered", turns: [[sent, reply, "stop"]] };
}
