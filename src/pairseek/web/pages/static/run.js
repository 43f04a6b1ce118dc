// Page of the pairs: shows the state of the record and adds answers to it.

import { get, Refused } from "./api.js";
import { openPrefetch } from "./prefetch.js";
import { watchFocus } from "./attention.js";
import { bare, spoken, wide } from "./cards.js";
import { listenKeys } from "./keys.js";
import { openOutbox } from "./outbox.js";
import { openRecord, outlook } from "./record.js";
import { block, speaker } from "./words.js";

const GUARD_MS = 250; // a press this soon after a pair appeared was meant for the previous pair
const STALE_MS = 30000;
const WORDY = 90; // characters from which a label is set like a text

const { slug, session, offers, practice, prefetches, play } = block("run-data");
const words = block("words");
const say = speaker(words, document.documentElement.lang);
const base = `/s/${encodeURIComponent(slug)}`;
const part = (id) => document.getElementById(id);
const token = () => `${Date.now()}-${Math.random()}`;
const sides = { left: part("left"), right: part("right") };

let shown = null; // pair on the screen, and time since which both its items are visible
let turn = 0;
let offline = false;
let gone = false; // this page has nothing more to do
let pressed = -GUARD_MS;
let ended = null; // time since which the page says that this was the last pair
let noticeTimer = 0;
let waitTimer = 0;

const players = play === null ? null : (await import("./players.js")).openPlayers(play, { say, act, notice });
const record = openRecord(session, draw);
const prefetch = openPrefetch(base);
const outbox = openOutbox(base, session, record, { lost, back, refused });

// Return the query on the screen, except for practice.
const asked = () => (shown && shown.pair.query !== "practice" ? shown.pair.query : null);

function practicePair() {
  if (practice !== true) return { query: "practice", number: 0, ...practice };
  const card = (side) => ({ id: side, label: say(`run.practice.${side}`), media: {} });
  return { query: "practice", number: 0, left: card("left"), right: card("right") };
}

function here(kept = record.read()) {
  const fresh = !kept.ops.length && kept.state.progress.answered === 0 && kept.state.status === "asking";
  if (practice && fresh && !kept.practised) {
    return { ...kept.state, query: practicePair(), can: { undo: null, tie: false, skip: false }, practising: true };
  }
  return outlook(kept, offers);
}

async function refresh() {
  clearTimeout(waitTimer);
  if (record.read().ops.length) return outbox.flush();
  try {
    const state = await get(`${base}/state`);
    record.update((now) => {
      if (!now.ops.length) now.state = state;
    });
  } catch (failure) {
    if (failure instanceof Refused) refused(failure, null);
    else waitTimer = setTimeout(refresh, 3000);
  }
}

async function leave(address) {
  if (gone) return;
  gone = true;
  await Promise.race([outbox.flush(), new Promise((done) => setTimeout(done, 2000))]);
  record.remove();
  location.replace(address);
}

function draw() {
  if (gone) return;
  const kept = record.read();
  if (!kept.state) return location.replace(`${base}/result`); // another tab has finished
  const now = here(kept);
  if (now.status === "finished") return now.can.undo ? last(now.progress.answered) : leave(now.result);
  if (now.status === "closed") return trouble(say("run.closed.title"), say("run.closed.text"), "");
  if (ended !== null) {
    ended = null; // the last answer was undone
    swap("panel", "run");
  }
  drawProgress(now);
  offer("undo", offers.undo && !now.practising, now.can.undo !== null);
  offer("tie", offers.tie && !now.practising, now.can.tie && !players?.waits());
  offer("skip", offers.skip && !now.practising, now.can.skip);
  part("practice").hidden = !now.practising;
  if (!now.query) return wait();
  clearTimeout(waitTimer);
  if (shown?.pair.query !== now.query.query) show(now.query);
  else if (shown.at !== null) look();
}

// Prefetch once the current pair is shown and all operations are acknowledged.
async function look() {
  const query = asked();
  if (!query || record.read().ops.length) return;
  if (prefetches) await prefetch.look(query);
  if (query === asked()) part("stage").dataset.prefetched = query;
}

function drawProgress({ progress: { answered, total, remaining, share }, practising }) {
  const bar = part("bar");
  bar.value = practising ? 0 : share;
  const words = [total === null ? say("run.answered", { count: answered }) : say("run.of", { count: answered, total })];
  if (total === null && remaining !== null) words.push(say("run.left", { count: remaining }));
  part("count").textContent = practising ? say("run.practice") : words.join(" · ");
  bar.setAttribute("aria-valuetext", part("count").textContent);
}

function offer(name, offered, open) {
  part(name).hidden = !offered;
  part(name).setAttribute("aria-disabled", String(!open));
}

async function show(pair) {
  const mine = (turn += 1);
  shown = { pair, at: null, since: "" };
  delete part("stage").dataset.shown;
  const built = prefetch.take(pair);
  const slow = setTimeout(() => part("stage").setAttribute("aria-busy", "true"), 80);
  await built.ready;
  clearTimeout(slow);
  if (mine !== turn) return;
  part("stage").removeAttribute("aria-busy");
  part("stage").classList.toggle("wide", wide(pair));
  for (const card of document.querySelectorAll(".card")) place(card, pair[card.id], built[card.id]);
  players?.watch(pair, built);
  part("announce").textContent = say("run.announce", {
    number: pair.number || say("run.practice"),
    anchor: pair.anchor && spoken(pair.anchor),
    left: spoken(pair.left),
    right: spoken(pair.right),
  });
  if (part("notice").textContent === say("run.moment")) notice("");
  // The second frame begins once the first, with both items, has been painted.
  requestAnimationFrame(() =>
    requestAnimationFrame((time) => {
      if (mine !== turn) return;
      Object.assign(shown, { at: time, since: new Date().toISOString() });
      part("stage").dataset.shown = pair.query; // this and `prefetched` are for tests
      look();
    }),
  );
}

function place(card, data, parts) {
  card.querySelector(".card-show").replaceChildren(...parts);
  const name = data.label ?? (bare(data) ? data.id : "");
  card.querySelector(".card-label").textContent = name;
  card.classList.toggle("bare", bare(data));
  card.classList.toggle("wordy", name.length > WORDY);
  card.classList.toggle("nameless", !name);
}

// Wait for the service's response; request the state if no response is pending.
function wait() {
  turn += 1;
  shown = null;
  delete part("stage").dataset.shown;
  part("stage").setAttribute("aria-busy", "true");
  clearTimeout(waitTimer);
  waitTimer = setTimeout(() => outbox.busy() || refresh(), 1500);
  if (offline) return notice(say("run.lost"));
  const mine = turn;
  setTimeout(() => mine === turn && !gone && !offline && notice(say("run.moment")), 400);
}

function notice(text, forMs = 0) {
  clearTimeout(noticeTimer);
  part("notice").textContent = text;
  if (forMs) noticeTimer = setTimeout(() => (part("notice").textContent = ""), forMs);
}

function swap(from, to) {
  part(from).hidden = true;
  part(to).hidden = false;
}

function panel(title, text, hint, choices) {
  swap("run", "panel");
  swap(choices === "panel-last" ? "panel-again" : "panel-last", choices);
  part("panel-title").textContent = title;
  part("panel-text").textContent = text;
  part("panel-hint").textContent = hint;
  part("panel-title").focus();
}

function trouble(title, text, hint) {
  gone = true;
  panel(title, text, hint, "panel-again");
}

// All answers are saved. Opening the result needs a confirmation, so that the last answer can still be undone.
function last(count) {
  if (ended !== null) return;
  turn += 1;
  shown = null;
  ended = performance.now();
  notice("");
  panel(say("run.last"), say("run.last.text", { count }), "", "panel-last");
}

function lost() {
  offline = true;
  notice(say(record.read().ops.length ? "run.lost" : "run.offline"));
}

function back() {
  if (offline) notice(say("run.back"), 4000);
  offline = false;
}

function refused(failure, op) {
  if (failure.problem.code === "session_full") return trouble(say("run.trouble"), say("run.closed.text"), "");
  const { code, message, hint } = failure.problem;
  const key = `problem.${code}`;
  const [text, next] = key in words ? [say(key), say(`${key}.hint`)] : [message, hint ?? ""];
  if (!op) return trouble(say("run.trouble"), text, next);
  notice(failure.status === 409 ? say("run.elsewhere") : text, 6000);
}

// Event and frame timestamps use the same clock.
function act(what, moment) {
  if (gone || moment - pressed < GUARD_MS) return;
  if (what === "undo") {
    pressed = moment;
    return undo();
  }
  if (!shown || shown.at === null || moment - shown.at < GUARD_MS || players?.refuses(what)) return;
  pressed = moment;
  if (what in sides) pulse(sides[what]);
  const { pair, at, since } = shown;
  if (pair.query === "practice") {
    if (what in sides || players?.failed()) record.update((now) => (now.practised = true));
    return;
  }
  record.update((now) => {
    const view = here(now);
    if (view.query?.query !== pair.query || (what in view.can && !view.can[what] && !players?.failed())) return;
    now.ops.push({
      id: token(),
      kind: "answer",
      delta: what === "skip" ? 0 : 1,
      next: prefetch.after(pair.query, what),
      body: {
        query: pair.query,
        outcome: what,
        rt_ms: Math.round(moment - at),
        shown_at: since,
        sent_at: new Date().toISOString(),
        attempt: 0,
        played: players?.states(),
      },
    });
  });
  outbox.flush();
}

// The service asks an undone query again under a new name, so wait for its response.
function undo() {
  record.update((now) => {
    const query = here(now).can.undo;
    if (query !== null) now.ops.push({ id: token(), kind: "undo", query, delta: 0, next: null });
  });
  outbox.flush();
}

function pulse(card) {
  card.classList.remove("picked");
  void card.offsetWidth; // restarts the animation
  card.classList.add("picked");
}

for (const side in sides) {
  sides[side].querySelector("button").addEventListener("click", (event) => act(side, event.timeStamp));
}
for (const name of ["undo", "tie", "skip"]) {
  part(name).addEventListener("click", (event) => {
    if (part(name).getAttribute("aria-disabled") !== "true") act(name, event.timeStamp);
  });
}
part("done").addEventListener("click", (event) => {
  if (event.timeStamp - ended > GUARD_MS) leave(record.read().state.result);
});
// The second press of a double click keeps the focus on the title.
addEventListener("mousedown", (event) => {
  if (ended !== null && event.timeStamp - ended <= GUARD_MS) event.preventDefault();
});
part("last").addEventListener("click", (event) => event.timeStamp - ended > GUARD_MS && act("undo", event.timeStamp));
listenKeys(part("keys"), act);
watchFocus(asked, (query, at, ms) => {
  if (query) {
    record.update((now) => now.focus.push({ query, lost_at: at, ms }));
    outbox.flush();
  }
  if (ms > STALE_MS) refresh();
});
addEventListener("offline", lost);
addEventListener("pageshow", (event) => event.persisted && refresh());

record.update((now) => (now.state = block("state")));
if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") refresh();
outbox.flush();
