// Card elements, built and decoded before they are shown.

const LOADING_MS = 10000;

function made(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}

function picture({ src, srcset, width, height, alt }) {
  const image = made("img", { alt, width, height, decoding: "async", draggable: false });
  if (srcset) {
    image.sizes = "(max-width: 40rem) 50vw, 34rem";
    image.srcset = srcset;
  }
  image.src = src;
  return image;
}

function moving(tag, src) {
  return made(tag, { src, controls: true, preload: "auto", playsInline: true });
}

// A picture that cannot be loaded shows its alternative text; it must not block the page.
function loaded(element) {
  const late = new Promise((done) => setTimeout(done, LOADING_MS));
  if (element.tagName === "IMG") return Promise.race([element.decode().catch(() => {}), late]);
  if (element.tagName === "VIDEO") {
    const known = new Promise((done) => (element.onloadedmetadata = element.onerror = done));
    return Promise.race([known, late]);
  }
  return Promise.resolve();
}

function build(card) {
  const parts = [];
  if (card.colour) {
    const swatch = made("div", { className: "swatch" });
    swatch.style.backgroundColor = card.colour; // through the object model, which the content policy allows
    if (!card.label && !card.text) {
      swatch.setAttribute("role", "img");
      swatch.setAttribute("aria-label", card.colour);
    }
    parts.push(swatch);
  }
  if (card.image) parts.push(picture(card.image));
  if (card.video) parts.push(moving("video", card.video));
  if (card.audio) parts.push(moving("audio", card.audio));
  if (card.text) parts.push(made("p", { className: "text", textContent: card.text }));
  if (card.html) parts.push(made("div", { className: "prose", innerHTML: card.html }));
  return parts;
}

// Elements by side, and a promise that resolves when all can be painted.
export function prepare(pair) {
  const left = build(pair.left);
  const right = build(pair.right);
  return { left, right, ready: Promise.all([...left, ...right].map(loaded)) };
}

// Text, players and wide pictures need width: such cards are stacked on a narrow screen.
export const wide = ({ left, right }) => [left, right].some(needsWidth);

const needsWidth = (card) =>
  card.text || card.html || card.audio || card.video || bare(card) || card.image?.width >= card.image?.height;

export const bare = (card) =>
  !card.colour && !card.image && !card.video && !card.audio && !card.text && !card.html;

export const spoken = (card) => card.label || card.image?.alt || card.text || card.colour || card.id;
