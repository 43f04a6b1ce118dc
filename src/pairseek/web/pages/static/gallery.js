// Cards of items as participants see them, each built when it comes near the screen.

import { MEDIA } from "./cards.js";
import "./players.js"; // adds the media that play
import { block } from "./words.js";

const NEAR = "600px";

function fill(tile, card) {
  const parts = Object.entries(card.media).map(([name, value]) => MEDIA[name](value, card));
  for (const part of parts) {
    // The name is read out below the picture.
    if (part instanceof HTMLImageElement) Object.assign(part, { sizes: "15rem", alt: part.alt === card.name ? "" : part.alt });
    if (part instanceof HTMLMediaElement) Object.assign(part, { preload: "metadata", ariaLabel: card.name });
  }
  tile.querySelector(".tile-show").replaceChildren(...parts);
  tile.classList.toggle("bare", !parts.length);
}

function draw() {
  const gallery = document.getElementById("gallery");
  if (!gallery || gallery.dataset.drawn) return;
  gallery.dataset.drawn = "true";
  const cards = block("cards");
  const rows = new Map([...gallery.children].map((tile, row) => [tile, row]));
  const near = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        fill(target, cards[rows.get(target)]);
      }
    },
    { rootMargin: NEAR },
  );
  for (const tile of gallery.children) near.observe(tile);
}

draw();
// The form replaces the page's content if it was refused.
new MutationObserver(draw).observe(document.getElementById("main"), { childList: true });
