// Local record of a session: the last state of the service, and unsent operations.
// All tabs share one record in localStorage and therefore show the same pair.
//
// state      last state that the service sent
// ops        answers and undos not yet acknowledged, oldest first; `next` is the pair to show after them, if known
// focus      losses of focus not yet sent
// practised  whether the practice pair was answered

const EMPTY = { state: null, ops: [], focus: [], practised: false };

export function openRecord(session, changed) {
  const key = `pairseek:${session}`;
  let memory = null; // used if the browser refuses storage
  try {
    localStorage.getItem(key);
  } catch {
    memory = EMPTY;
  }

  function read() {
    return { ...EMPTY, ...(memory ?? JSON.parse(localStorage.getItem(key) ?? "null")) };
  }

  function update(change) {
    const record = structuredClone(read());
    change(record);
    try {
      localStorage.setItem(key, JSON.stringify(record));
    } catch {
      memory = record; // storage is full or forbidden: this tab continues on its own
    }
    changed();
  }

  function remove() {
    if (!memory) localStorage.removeItem(key);
  }

  addEventListener("storage", (event) => {
    if (event.key === key) changed();
  });
  return { read, update, remove };
}

// Return the state after all unsent operations.
export function outlook({ state, ops }, offers) {
  if (!ops.length) return state;
  const { answered, total, remaining, share } = state.progress;
  const delta = ops.reduce((sum, op) => sum + op.delta, 0);
  const to = total ?? (remaining === null ? null : answered + remaining);
  const newest = ops.at(-1);
  const undo = newest.kind === "answer" && offers.undo ? newest.body.query : null;
  return {
    status: "asking",
    query: newest.next,
    progress: {
      answered: answered + delta,
      total,
      remaining: remaining === null ? null : Math.max(0, remaining - delta),
      share: to ? Math.min(1, (answered + delta) / to) : share,
    },
    can: { ...state.can, undo },
    result: null,
  };
}
