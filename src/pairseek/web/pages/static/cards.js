// Card elements, built and decoded before they are shown.

const LOADING_MS = 10000;

export function made(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}

function picture({ src, srcset, width, height, alt }) {
  const image = made("img", { alt, width, height, decoding: "async", draggable: false });
  if (srcset) {
    // Upright pictures fit side by side on a phone; the others are as wide as the screen.
    image.sizes = `(max-width: 40rem) ${width < height ? 50 : 100}vw, 34rem`;
    image.srcset = srcset;
  }
  image.src = src;
  return image;
}

// A picture that fails to load shows its alternative text, and must not block the page.
function loaded(element) {
  const late = new Promise((done) => setTimeout(done, LOADING_MS));
  const known = element.tagName === "IMG" ? element.decode().catch(() => {}) : element.known;
  return known && Promise.race([known, late]);
}

function swatch(colour, card) {
  const element = made("div", { className: "swatch" });
  element.style.backgroundColor = colour; // through the DOM, which the content security policy allows
  if (!card.label && !card.media.text) {
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", colour);
  }
  return element;
}

// One function per medium; those that play are in players.js. Markdown arrives as sanitized HTML.
export const MEDIA = {
  colour: swatch,
  image: picture,
  text: (textContent) => made("p", { className: "text", dir: "auto", textContent }),
  markdown: (innerHTML) => made("div", { className: "prose", dir: "auto", innerHTML }),
};

const build = (card) => Object.entries(card.media).map(([name, value]) => MEDIA[name](value, card));

// Elements by side, and a promise that resolves when all can be painted.
export function prepare({ left, right, anchor }) {
  const built = { left: build(left), right: build(right), anchor: anchor ? build(anchor) : [] };
  return { ...built, ready: Promise.all(Object.values(built).flat().map(loaded)) };
}

// Colours and upright pictures fit side by side; other cards are stacked on a narrow screen.
export const wide = ({ left, right }) => [left, right].some(needsWidth);

const needsWidth = (card) =>
  bare(card) || Object.entries(card.media).some(([name, value]) => !(name === "colour" || value.width < value.height));

export const bare = (card) => Object.keys(card.media).length === 0;

export const spoken = ({ id, label, media }) => label || media.image?.alt || media.text || media.colour || id;
