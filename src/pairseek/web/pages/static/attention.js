// Losses of focus: another tab, another window, a closed laptop.

export function watchFocus(lost) {
  let since = null;
  const away = () => document.hidden || !document.hasFocus();

  function look() {
    if (away()) {
      since ??= { at: new Date().toISOString(), now: Date.now() };
    } else if (since) {
      const { at, now } = since;
      since = null;
      lost(at, Math.max(0, Date.now() - now));
    }
  }

  for (const event of ["blur", "focus", "pageshow"]) addEventListener(event, look);
  document.addEventListener("visibilitychange", look);
}
