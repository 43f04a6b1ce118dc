// Researcher's pages: live figures, plots and copy buttons.

import { personMap, personRadius, studyMap } from "./plots.js";
import { block, speaker } from "./words.js";

const EVERY_MS = 3000;
const language = document.documentElement.lang;

function watch(section) {
  const number = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
  const units = { median_seconds: " s", latency_ms: " ms", completion: " %" };
  const shown = (name, value) =>
    value === null ? "–" : number.format(name === "latency_ms" || name === "completion" ? Math.round(value) : value) + (units[name] ?? "");

  async function look() {
    try {
      const reply = await fetch(section.dataset.live, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (reply.ok) draw(await reply.json());
    } catch {
      // Keep the old figures and retry at the next interval.
    }
    setTimeout(look, document.hidden ? 10 * EVERY_MS : EVERY_MS);
  }

  function draw(live) {
    const values = { ...live, completion: live.started ? (100 * live.finished) / live.started : null };
    for (const cell of section.querySelectorAll("[data-number]")) {
      const text = shown(cell.dataset.number, values[cell.dataset.number] ?? null);
      if (cell.textContent === text) continue;
      cell.textContent = text;
      cell.classList.add("changed");
      requestAnimationFrame(() => requestAnimationFrame(() => cell.classList.remove("changed")));
    }
  }

  setTimeout(look, EVERY_MS);
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const done = () => {
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 1500);
  };
  if (navigator.clipboard) return navigator.clipboard.writeText(source.textContent).then(done);
  getSelection().selectAllChildren(source); // the clipboard needs a secure origin: select the text for copying by hand
}

for (const section of document.querySelectorAll("[data-live]")) watch(section);
for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));

if (globalThis.Plotly) {
  const data = block("map-data");
  const say = speaker(block("words"), language);
  const draw = () => {
    const found = (id) => document.getElementById(id);
    if (found("study-map")) studyMap(found("study-map"), data, say);
    if (found("person-map")) personMap(found("person-map"), data, say);
    if (found("person-radius")) personRadius(found("person-radius"), data.track, say);
  };
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
