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
      el("div", {}, whyOf(shown), trajectory(shown)),
      el("section", {}, el("h4", {}, "All rollouts of this item"), table("Rollouts of this item", [
        { name: "skill", key: (one) => one.scored.seq, show: (one) => el("a", { href: `#/items/${item}@${one.name}`, "aria-current": one === shown ? "true" : null }, skillName(one.scored.skill)) },
        { name: "for", show: (one) => words(one.scored.purpose) + (one.scored.step ? ` ${one.scored.step}` : "") },
        number("hard", (one) => point(one.scored.hard[one.row]), score),
        number("soft", (one) => point(one.scored.soft[one.row]), score),
      ], rows, { size: 30 }))));
}

// The skill that made a rollout, whether it broke or fixed the item, and its audit.
function whyOf({ scored, row }) {
  const version = versionByDigest.get(scored.skill);
  if (!version) return null; // the seed, or a candidate that became no version
  const item = scored.item[row];
  const before = scoresOf(book.items.split[item]).get(item);
  const was = before && before.get(version - 1);
  const mine = before && before.get(version);
  const now = mine ? mine.hard : scored.hard[row];
  const turned = !was || was.hard < 0 || now < 0 || was.hard === now ? "" : now < was.hard ? "broke this item; " : "fixed this item; ";
  return el("p", {}, link(`#/skill/v${version}`, `v${version}`), ` ${turned}`,
    link(chapterHash(chapterOfVersion(version)), `why v${version} was accepted`), turned && was ? [", ",
      link(`#/items/${item}@${was.scored.seq}.${was.row}`, `the reply under v${version - 1}`)] : "");
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

// What was asked of an item, what is expected, what two versions answered.
const QUESTION_CHARS = 240;

// The question as the target was sent it: the last line so called, else the end of the text.
function questionOf(item, scores) {
  for (const { scored, row } of scores.get(item).values()) {
    const found = book.trajectories[scored.trajectory[row]];
    if (!found) continue;
    const sent = book.strings[spoken(found).turns[0][0]];
    const named = [...sent.matchAll(/^\s*(?:Question|질문|Task):\s*(.+)$/gm)].pop();
    const text = named ? named[1] : sent.slice(-QUESTION_CHARS);
    return text.length > QUESTION_CHARS ? `${text.slice(0, QUESTION_CHARS)}…` : text;
  }
  return "";
}

function expectedOf(item) {
  const text = book.items.expected[item];
  return text === null || text === undefined ? "" : book.strings[text];
}

function answerOf(found) {
  if (!found) return null;
  const trajectory = book.trajectories[found.scored.trajectory[found.row]];
  return trajectory ? spoken(trajectory).answer : null;
}

// Whether an item's name, question, expected answer or any answer holds a text.
function holds(item, scores, wanted) {
  const answers = [...scores.get(item).values()].map(answerOf);
  return [itemName(item), questionOf(item, scores), expectedOf(item), ...answers]
    .some((text) => text !== null && text.toLowerCase().includes(wanted));
}

function sideBySide(rows, scores, versions) {
  const got = (version) => ({ name: `v${version}`, class: "got", key: (item) => keyOf(scores.get(item).get(version)),
    show: (item) => {
      const found = scores.get(item).get(version);
      const text = answerOf(found);
      return [cell(item, version, found), " ", text === null ? el("span", { class: "note" }, "not here") : said(text.slice(0, 400) || "(empty)")];
    } });
  return [el("p", { class: "note" }, `${some(rows.length, "item")}.`),
    table("Side by side", [
      { name: "item", key: itemName, show: (item) => link(itemHash(item, scores), said(itemName(item))) },
      { name: "question", show: (item) => said(questionOf(item, scores)) },
      { name: "expected", show: (item) => said(expectedOf(item)) },
      ...versions.map(got),
    ], rows, { class: "sides", size: 40 })];
}
