// Wide tables, code blocks and figures scroll sideways: the keyboard must reach them, and a fading edge shows that they continue.
const SCROLLING = ".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset .output, .md-typeset .equation, .wide-figure";
function fade(part) {
  part.toggleAttribute("data-more", part.scrollLeft + part.clientWidth < part.scrollWidth - 1);
}
function reachable() {
  for (const part of document.querySelectorAll(SCROLLING)) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    fade(part);
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
document.addEventListener("scroll", ({ target }) => target.matches?.(SCROLLING) && fade(target), { capture: true, passive: true });
