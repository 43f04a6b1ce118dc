// Mutual exclusion between tabs: `alone(name, work)` acquires the lock, then runs `work`.
// Web Locks exist only on secure origins; on plain HTTP a lease in localStorage takes their place.

const LEASE_MS = 20000;
const me = `${Math.random()}`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function leased(key, work) {
  const held = () => JSON.parse(localStorage.getItem(key) ?? "null");
  for (;;) {
    const lease = held();
    if (!lease || lease.until < Date.now() || lease.tab === me) {
      localStorage.setItem(key, JSON.stringify({ tab: me, until: Date.now() + LEASE_MS }));
      await pause(30); // another tab may have written at the same moment; the last to write holds the lease
      if (held()?.tab === me) break;
    }
    await pause(150);
  }
  try {
    return await work();
  } finally {
    if (held()?.tab === me) localStorage.removeItem(key);
  }
}

export function alone(name, work) {
  if (navigator.locks) return navigator.locks.request(name, work);
  try {
    localStorage.setItem("pairseek:probe", "1");
    localStorage.removeItem("pairseek:probe");
  } catch {
    return work(); // without storage, tabs cannot know of each other
  }
  return leased(`${name}:lease`, work);
}
