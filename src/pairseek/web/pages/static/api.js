// Requests to the service. `Unreachable` errors can be retried, `Refused` errors cannot.

const PATIENCE_MS = 15000;

export class Unreachable extends Error {
  constructor(reason, retryAfter = 0) {
    super(reason);
    this.retryAfter = retryAfter;
  }
}

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.message);
    this.status = status;
    this.problem = problem;
  }
}

async function problemOf(reply) {
  try {
    return (await reply.json()).error ?? { message: reply.statusText };
  } catch {
    return { message: reply.statusText };
  }
}

// Return JSON, or null for an empty response (204).
async function call(address, options) {
  let reply;
  try {
    reply = await fetch(address, {
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...options,
    });
    if (reply.status === 204) return null;
    if (reply.ok) return await reply.json();
  } catch (failure) {
    throw new Unreachable(String(failure));
  }
  if (reply.status >= 500 || reply.status === 429 || reply.status === 408) {
    throw new Unreachable(reply.statusText, Number(reply.headers.get("Retry-After")) || 0);
  }
  throw new Refused(reply.status, await problemOf(reply));
}

export const get = (address) => call(address, { headers: { "X-Pairseek": "1" } });

// With `keepalive`, the request continues after the page is closed.
export const post = (address, body) =>
  call(address, {
    method: "POST",
    keepalive: true,
    headers: { "Content-Type": "application/json", "X-Pairseek": "1" },
    body: JSON.stringify(body),
  });
