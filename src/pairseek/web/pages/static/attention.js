// Detection of lost focus: another tab, another window, a closed laptop.

// `current()` returns the query on the screen; `lost(name, at, ms)` is called when focus returns.
export function watchFocus(current, lost) {
  let since = null;

  function look() {
    const away = document.hidden || !document.hasFocus();
    if (away) {
      since ??= { name: current(), at: new Date().toISOString(), now: Date.now() };
    } else if (since) {
      const { name, at, now } = since;
      since = null;
      lost(name, at, Math.max(0, Date.now() - now));
    }
  }

  for (const event of ["blur", "focus", "pageshow"]) addEventListener(event, look);
  document.addEventListener("visibilitychange", look);
}
