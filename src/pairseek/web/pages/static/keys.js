// Keyboard shortcuts: arrows, F and J, and one letter each for tie, skip and undo.

const MEANING = {
  ArrowLeft: "left",
  f: "left",
  ArrowRight: "right",
  j: "right",
  t: "tie",
  s: "skip",
  u: "undo",
  Backspace: "undo",
};
const SWITCH = "pairseek:keys";

export function listenKeys(toggle, act) {
  let on = true;
  try {
    on = localStorage.getItem(SWITCH) !== "off";
  } catch {
    // Without storage the setting is not remembered.
  }
  const show = () => toggle.setAttribute("aria-pressed", String(on));
  toggle.addEventListener("click", () => {
    on = !on;
    show();
    try {
      localStorage.setItem(SWITCH, on ? "on" : "off");
    } catch {
      // As above.
    }
  });
  show();

  addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select, audio, video, [contenteditable]")) return;
    if (event.repeat) {
      // A held key answers only once; a held Enter would repeat the click.
      if (event.key === "Enter" || event.key in MEANING) event.preventDefault();
      return;
    }
    if (!on || event.ctrlKey || event.metaKey || event.altKey) return;
    const meaning = MEANING[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!meaning) return;
    event.preventDefault();
    act(meaning, event.timeStamp);
  });
}
