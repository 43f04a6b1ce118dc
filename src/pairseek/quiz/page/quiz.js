// Reads the tree of a compiled quiz and shows it inside an element. See docs/how-to/embedding-a-quiz.md.

const SIDES = ["left", "right"];

function read(from, at, width) {
  let value = 0;
  for (let i = at; i < at + width; i += 1) value = value * 2 + ((from[i >> 3] >> (7 - (i & 7))) & 1);
  return value;
}

// A path is a list of answers, "left" or "right". Pictures are addressed relative to `base`.
export function openQuiz(tree, base = "") {
  if (tree?.format !== "pairseek quiz" || tree.version !== 1) throw new TypeError("this is not a quiz tree of version 1");
  const { answers, bits, items, recommended, dimensions, scales } = tree;
  const [pairs, results] = [tree.pairs, tree.results].map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
  const last = 2 ** answers - 1; // positions from here on come after the last answer
  const size = recommended * (bits + 16) + 16 * scales.length + 32 * dimensions;
  const sides = (n) => SIDES.map((_, i) => read(pairs, (2 * n + i) * bits, bits));
  const asks = (n) => n < last && sides(n)[0] !== sides(n)[1];
  const ends = (n) => !asks(n) && (n === 0 || asks((n - 1) >> 1));

  function position(path) {
    let n = 0;
    for (const side of path) {
      if (!SIDES.includes(side)) throw new TypeError(`an answer is ${side}: give "left" or "right"`);
      if (!asks(n)) throw new RangeError(`the quiz ends before ${path.length} answers`);
      n = 2 * n + 1 + SIDES.indexOf(side);
    }
    return n;
  }

  function item(row) {
    const id = items.id[row];
    const own = { id, label: items.label ? items.label[row] ?? id[0].toUpperCase() + id.slice(1) : id };
    for (const name of ["colour", "text", "markdown", "alt"]) if (items[name]?.[row]) own[name] = items[name][row];
    const [name, ...sizes] = items.image?.[row] ?? [];
    if (name) {
      const wide = sizes.filter((_, i) => i % 2 === 0);
      const source = (width) => `${base}pictures/${name}/${width}.webp`;
      const [width, height] = sizes.slice(-2);
      own.image = { src: source(width), srcset: wide.map((w) => `${source(w)} ${w}w`).join(", "), width, height };
    }
    return own;
  }

  function pair(path) {
    const n = position(path);
    if (!asks(n)) return null;
    const [left, right] = sides(n).map(item);
    return { left, right };
  }

  function result(path) {
    const n = position(path);
    if (asks(n)) throw new RangeError(`the quiz continues after ${path.length} answers`);
    let at = 0;
    for (let before = 0; before < n; before += 1) at += ends(before) ? size : 0;
    const next = (width) => read(results, (at += width) - width, width);
    const best = Array.from({ length: recommended }, () => next(bits));
    const recommendations = best.map((row) => ({ ...item(row), share: next(16) / 65535 }));
    const [radius, ...region] = scales.map(([low, step]) => low + step * next(16));
    const point = Array.from({ length: dimensions }, () => new Float32Array(Uint32Array.of(next(32)).buffer)[0]);
    const given = path.map((side, i) => {
      const { left, right } = pair(path.slice(0, i));
      return { left: left.id, right: right.id, winner: { left, right }[side].id };
    });
    return { answers: given, estimate: { point, radius, region }, recommendations };
  }

  const early = () => Array.from({ length: last }, (_, n) => n).some((n) => !asks(n));
  return { tree, pair, result, early };
}

export async function loadQuiz(url = new URL("tree.js", import.meta.url)) {
  const reply = await fetch(url);
  if (!reply.ok) throw new Error(`${url} cannot be loaded: ${reply.status} ${reply.statusText}`);
  const text = await reply.text();
  return openQuiz(JSON.parse(text.slice(text.indexOf("=") + 1)), new URL(".", new URL(url, document.baseURI)).href);
}

// Shows a quiz inside an element; see player.js for the options.
export async function mount(element, options) {
  if (!globalThis.pairseekPlayer) await import("./player.js");
  return globalThis.pairseekPlayer(element, options);
}
