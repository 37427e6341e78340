// The data block, and ways to look things up in it.
let book, chapters, versionByDigest, editById, eventBySeq;

function open(data) {
  book = data;
  versionByDigest = new Map();
  for (const version of book.versions) versionByDigest.set(version.digest, version.version);
  editById = new Map();
  eventBySeq = new Map();
  for (const [seq, type, packed] of book.events) eventBySeq.set(seq, { seq, type, packed });
  for (const scored of book.scored) {
    scored.trajectory = scored.trajectory.flatMap(([first, length]) => Array.from({ length }, (_, at) => first + at));
    eventBySeq.set(scored.seq, { seq: scored.seq, type: "rollouts.scored", scored });
  }
  chapters = chaptersOf([...eventBySeq.values()].sort((a, b) => a.seq - b.seq));
}

const S = (value) => (value !== null && typeof value === "object" && "$" in value ? book.strings[value.$] : value);

// A packed value with all its texts put in.
function unpacked(value) {
  if (Array.isArray(value)) return value.map(unpacked);
  if (value === null || typeof value !== "object") return value;
  if ("$" in value) return book.strings[value.$];
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, unpacked(inner)]));
}

const itemName = (number) => book.items.id[number];

// A chapter is a step, or what follows the last step of an epoch.
function chaptersOf(events) {
  const found = { step: new Map(), epoch: new Map(), start: { events: [] } };
  let chapter = found.start;
  for (const event of events) {
    const data = event.packed || event.scored;
    const training = event.type === "rollouts.scored" && data.purpose === "train";
    if (training) {
      chapter = { kind: "step", number: data.step, epoch: data.epoch, events: [] };
      found.step.set(data.step, chapter);
    } else if (chapter.kind === "step" && chapter.ended) {
      chapter = { kind: "epoch", number: data.epoch, epoch: data.epoch, events: [] };
      if (data.epoch) found.epoch.set(data.epoch, chapter);
    }
    chapter.events.push(event);
    if (event.type === "step.ended") chapter.ended = true;
    for (const row of (event.packed && event.packed.edits) || []) {
      if (Array.isArray(row)) editById.set(row[0], { row, seq: event.seq });
    }
  }
  return found;
}

function edit(id) {
  const found = editById.get(id);
  if (!found) return null;
  if (found.row.length === 2) return { ...edit(found.row[1][0]), id, parents: found.row[1] };
  const [name, op, target, content, section, inline, kind, reason, items, parents, file] = found.row;
  return { id: name, op, target: S(target), content: S(content), section, inline, kind,
    reason: S(reason), items, parents, file: file && S(file), support: new Set(items).size };
}

const ofType = (chapter, type) => chapter.events.filter((event) => event.type === type);
const firstOf = (chapter, type) => ofType(chapter, type)[0];
const curveRow = (step) => {
  const at = book.columns.indexOf("step");
  const row = book.curve.find((values) => values[at] === step);
  return row && Object.fromEntries(book.columns.map((name, place) => [name, row[place]]));
};

function chapterOfVersion(number) {
  const version = book.versions[number];
  if (!version || !version.step) return null;
  const step = chapters.step.get(version.step);
  if (step && step.events.some((event) => event.seq === version.seq)) return step;
  return chapters.epoch.get(version.epoch) || step;
}

const chapterHash = (chapter) => (chapter ? `#/audit/${chapter.kind}/${chapter.number}` : "#/audit");

function linesOf(number) {
  const lines = [];
  for (const [first, length] of book.versions[number].lines) {
    for (let at = 0; at < length; at += 1) lines.push(first + at);
  }
  return lines;
}

const lineText = (number) => book.strings[book.lines.text[number]];
const bestVersion = () => book.versions.reduce((best, version) => (version.best ? version.version : best), 0);

function gainOf(version) {
  const gate = version.gate && eventBySeq.get(version.gate);
  if (!gate || gate.packed.after === null || gate.packed.before === null) return null;
  return gate.packed.after - gate.packed.before;
}

function skillName(digest) {
  const number = versionByDigest.get(digest);
  return number === undefined ? "a candidate" : `v${number}`;
}
