// Media players of a pair: a choice counts once all were played; media that cannot be played are reported.

import { made, MEDIA } from "./cards.js";

const STUCK_MS = 15000;
const WORDS = { no: "play.state.no", yes: "play.state.yes", failed: "play.state.failed" };
const NEARLY = 0.95; // a file may end a little before its declared duration

function moving(tag, src) {
  const element = made(tag, { src, controls: true, preload: "auto", playsInline: true });
  // A video has its size once its metadata have loaded.
  if (tag === "video") element.known = new Promise((done) => (element.onloadedmetadata = element.onerror = done));
  return element;
}

MEDIA.video = (src) => moving("video", src);
MEDIA.audio = (src) => moving("audio", src);

const isPlayer = (element) => element instanceof HTMLMediaElement;
const playerOf = (side, element) => ({
  side,
  element,
  note: made("p", { className: "player-state" }),
  done: false,
  stuck: false,
  timer: 0,
});

// Seconds that were played, not counting skipped parts.
function heard({ played }) {
  let seconds = 0;
  for (let k = 0; k < played.length; k += 1) seconds += played.end(k) - played.start(k);
  return seconds;
}

// `needed` is "end" or seconds.
export function openPlayers(needed, { say, act, notice }) {
  const part = (id) => document.getElementById(id);
  const enough = ({ duration }) =>
    Math.min(needed === "end" ? Infinity : needed, duration > 0 ? NEARLY * duration : Infinity);
  let players = [];
  let watching = new AbortController();

  function stateOf({ element, done, stuck }) {
    if (done) return "yes";
    return element.error || stuck ? "failed" : "no";
  }

  // The worst state of the players by side; null for a pair without players.
  function states() {
    const found = {};
    for (const worse of ["yes", "no", "failed"]) {
      for (const player of players) if (stateOf(player) === worse) found[player.side] = worse;
    }
    return players.length ? found : null;
  }

  const failed = () => players.some((player) => stateOf(player) === "failed");
  const waits = () => needed !== 0 && players.some(({ done }) => !done);

  function draw() {
    const left = players.filter(({ done }) => !done).length;
    for (const player of players) {
      const state = stateOf(player);
      player.note.dataset.state = state;
      const words = say(WORDS[state]);
      if (player.note.textContent !== words) player.note.textContent = words;
    }
    const rest = needed === "end" ? "play.end" : "play.seconds";
    const hint = waits() ? say(rest, { count: left, seconds: needed }) : say("play.done");
    const words = failed() ? say("play.failed") : hint;
    if (part("gate").textContent !== words) part("gate").textContent = words; // only if changed, because a screen reader reads every change
    part("gate").hidden = !players.length || (needed === 0 && !failed());
    part("failed").hidden = !failed();
    for (const choice of document.querySelectorAll(".card-pick, #tie")) {
      choice.setAttribute("aria-disabled", String(waits()));
    }
  }

  function update(player) {
    player.done ||= heard(player.element) >= enough(player.element);
    draw();
  }

  function wait(player) {
    clearTimeout(player.timer);
    player.timer = setTimeout(() => {
      player.stuck = !player.element.paused && player.element.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
      draw();
    }, STUCK_MS);
  }

  function started(player) {
    for (const { element } of players) if (element !== player.element) element.pause();
    wait(player);
  }

  function going(player) {
    clearTimeout(player.timer);
    player.stuck = false;
    update(player);
  }

  function follow(player) {
    const on = (names, act) => {
      for (const name of names) player.element.addEventListener(name, () => act(player), { signal: watching.signal });
    };
    on(["play"], started);
    on(["waiting", "stalled"], wait);
    on(["playing", "timeupdate"], going);
    on(["pause", "ended", "durationchange", "error"], update);
  }

  function stop() {
    watching.abort();
    watching = new AbortController();
    for (const { element, timer } of players) {
      clearTimeout(timer);
      element.pause();
    }
  }

  // A card with a player is not a button: pressing the player or next to it must not choose.
  function arrange(side, { label }) {
    const card = part(side);
    if (label) card.querySelector(".card-show").prepend(made("p", { className: "player-name", textContent: label }));
    card.querySelector(".card-label").textContent = say("play.this");
    card.classList.remove("nameless");
  }

  // Watch the players of the pair on the page.
  function watch(pair, built) {
    stop();
    players = Object.entries(built).flatMap(([side, elements]) =>
      side in pair && Array.isArray(elements) ? elements.filter(isPlayer).map((element) => playerOf(side, element)) : [],
    );
    for (const side of ["left", "right"]) {
      const plays = players.some((player) => player.side === side);
      part(side).classList.toggle("plays", plays);
      if (plays) arrange(side, pair[side]);
    }
    for (const player of players) {
      player.element.after(player.note);
      follow(player);
    }
    draw();
  }

  function retry() {
    for (const player of players.filter((one) => stateOf(one) === "failed")) {
      player.stuck = false;
      player.element.load();
    }
    draw();
  }

  function refuses(what) {
    const refused = what !== "skip" && waits();
    if (refused) notice(say("play.first"), 4000);
    return refused;
  }

  part("retry").addEventListener("click", retry);
  part("pass").addEventListener("click", (event) => act("skip", event.timeStamp));
  return { watch, states, waits, refuses, failed };
}
