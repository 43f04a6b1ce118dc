// Wide tables and code blocks scroll sideways: the keyboard must reach them.
function reachable() {
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset .output")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
