// Queue of unsent operations: sent in order and retried until acknowledged. Requests are idempotent.

import { get, post, Refused } from "./api.js";
import { alone } from "./alone.js";

const FIRST_MS = 1000;
const LONGEST_MS = 10000;

export function openOutbox(base, session, record, { lost, back, refused }) {
  let wait = FIRST_MS;
  let timer = 0;
  let sending = false;
  let again = false;

  const send = (op) =>
    op.kind === "undo" ? post(`${base}/undo`, { query: op.query }) : post(`${base}/answer`, op.body);

  async function sendOps() {
    for (let op; (op = record.read().ops[0]); ) {
      if (op.kind === "answer") op.body.attempt += 1;
      record.update((now) => {
        if (now.ops[0]?.id === op.id) now.ops[0] = op;
      });
      try {
        const state = await send(op);
        record.update((now) => {
          if (now.ops[0]?.id === op.id) now.ops.shift();
          now.state = state;
        });
      } catch (failure) {
        if (!(failure instanceof Refused)) throw failure;
        const state = await get(`${base}/state`);
        // The service has rejected it, so discard the operations that depend on it.
        record.update((now) => Object.assign(now, { ops: [], state }));
        refused(failure, op);
      }
    }
  }

  async function sendFocus() {
    for (let loss; (loss = record.read().focus[0]); ) {
      try {
        await post(`${base}/focus`, loss);
      } catch (failure) {
        if (!(failure instanceof Refused)) throw failure;
      }
      record.update((now) => now.focus.shift());
    }
  }

  async function flush() {
    clearTimeout(timer);
    timer = 0;
    if (sending) {
      again = true;
      return;
    }
    sending = true;
    again = false;
    try {
      await alone(`pairseek:${session}`, async () => {
        await sendOps();
        await sendFocus();
      });
      wait = FIRST_MS;
      back();
    } catch (failure) {
      if (failure instanceof Refused) {
        refused(failure, null);
      } else {
        lost();
        const delay = Math.max(wait * (0.8 + 0.4 * Math.random()), 1000 * (failure.retryAfter ?? 0));
        timer = setTimeout(flush, delay);
        wait = Math.min(2 * wait, LONGEST_MS);
      }
    } finally {
      sending = false;
      if (again) flush();
    }
  }

  addEventListener("online", () => {
    wait = FIRST_MS;
    flush();
  });
  // Whether a request is in progress or scheduled.
  const busy = () => sending || timer !== 0;

  return { flush, busy };
}
