// Prefetching of the pairs that may come next: fetches and builds them, and decodes their pictures.

import { get } from "./api.js";
import { prepare } from "./cards.js";

const TRIES = 4;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export function openPrefetch(base) {
  let held = new Map(); // query -> outcome -> {pair, built}
  let wanted = null;
  let coming = null;

  // Resolves once the pairs are available or cannot be fetched.
  function look(query) {
    if (wanted !== query) {
      wanted = query;
      coming = fetchNext(query);
    }
    return coming;
  }

  async function fetchNext(query) {
    for (let tried = 0; tried < TRIES && wanted === query; tried += 1) {
      let reply = null;
      try {
        reply = await get(`${base}/prefetch?query=${encodeURIComponent(query)}`);
      } catch {
        break; // prefetching is optional
      }
      if (reply) {
        if (wanted !== query) return;
        const next = {};
        for (const outcome of ["left", "right", "tie", "skip"]) {
          if (reply[outcome]) next[outcome] = { pair: reply[outcome], built: prepare(reply[outcome]) };
        }
        held = new Map([[query, next]]);
        return;
      }
      await pause(500 * 2 ** tried); // the service is busy
    }
    if (wanted === query) wanted = null;
  }

  const after = (query, outcome) => held.get(query)?.[outcome]?.pair ?? null;

  // Return the elements of this pair only once, because a node can be inserted in only one place.
  function take(pair) {
    for (const next of held.values()) {
      for (const one of Object.values(next)) {
        if (one.pair.query === pair.query && one.built && JSON.stringify(one.pair) === JSON.stringify(pair)) {
          const { built } = one;
          one.built = null;
          return built;
        }
      }
    }
    return prepare(pair);
  }

  return { look, after, take };
}
