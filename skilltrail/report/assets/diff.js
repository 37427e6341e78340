// What differs between two lists (longest common subsequence), and between two lines in words.
const MOST_CELLS = 4e6;

function compare(before, after) {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const room = Math.min(before.length, after.length) - head;
  while (tail < room && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const a = before.slice(head, before.length - tail);
  const b = after.slice(head, after.length - tail);
  return [
    ...before.slice(0, head).map((value) => [" ", value]),
    ...middle(a, b),
    ...before.slice(before.length - tail).map((value) => [" ", value]),
  ];
}

function middle(a, b) {
  const gone = (list) => list.map((value) => ["-", value]);
  const come = (list) => list.map((value) => ["+", value]);
  if (!a.length || !b.length || a.length * b.length > MOST_CELLS) return [...gone(a), ...come(b)];
  const wide = b.length + 1;
  const best = new Uint32Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i * wide + j] = a[i] === b[j]
        ? best[(i + 1) * wide + j + 1] + 1
        : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  const parts = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      parts.push([" ", a[i]]);
      i += 1;
      j += 1;
    } else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) parts.push(["-", a[i++]]);
    else parts.push(["+", b[j++]]);
  }
  return [...parts, ...gone(a.slice(i)), ...come(b.slice(j))];
}

const tokens = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];

// Returns the two lines as pieces, the words that differ marked; null when they share too little.
function wordDiff(before, after) {
  const parts = compare(tokens(before), tokens(after));
  const length = (kind) => parts.reduce((sum, [mark, text]) => sum + (mark === kind ? text.trim().length : 0), 0);
  if (length(" ") < 0.4 * Math.max(before.trim().length, after.trim().length)) return null;
  const side = (mark, tag) => parts
    .filter(([kind]) => kind === " " || kind === mark)
    .map(([kind, text]) => (kind === " " ? text : el(tag, {}, text)));
  return { before: side("-", "del"), after: side("+", "ins") };
}

// Groups a comparison into rows: unchanged lines, and blocks of removed and added ones.
function blocks(parts) {
  const found = [];
  for (const [mark, value] of parts) {
    const last = found[found.length - 1];
    if (mark === " ") {
      if (last && last.same) last.same.push(value);
      else found.push({ same: [value] });
    } else {
      const block = last && !last.same ? last : (found.push({ gone: [], come: [] }), found[found.length - 1]);
      (mark === "-" ? block.gone : block.come).push(value);
    }
  }
  return found;
}
