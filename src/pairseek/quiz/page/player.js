// The pages of a quiz, in the shadow tree of an element. A classic script, since browsers do not import modules from files.

"use strict";

{
  const GUARD_MS = 250; // a press this soon after a pair appears was meant for the previous pair
  const LOADING_MS = 3000;
  const SIDES = ["left", "right"];

  // Grey with one accent, because people may be judging colours. Set the --pairseek-... properties to change them.
  const STYLE = `
:host { display: block; container-type: inline-size; }
.body {
  --ground: var(--pairseek-ground, #f7f7f7); --paper: var(--pairseek-paper, #fff); --ink: var(--pairseek-ink, #191919);
  --soft: var(--pairseek-soft, #606060); --line: var(--pairseek-line, #dcdcdc);
  --accent: var(--pairseek-accent, #0b6b4f); --on-accent: var(--pairseek-on-accent, #fff);
  --round: 0.875rem; --quick: 160ms cubic-bezier(0.2, 0.7, 0.3, 1);
  --serif: "Iowan Old Style", "Palatino Linotype", Palatino, P052, "Book Antiqua", Georgia, serif;
  background: var(--ground); color: var(--ink); overflow-wrap: break-word;
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, Inter, "Helvetica Neue", Arial, sans-serif;
}
@supports (color: light-dark(#000, #fff)) {
  .body {
    --ground: var(--pairseek-ground, light-dark(#f7f7f7, #131313)); --paper: var(--pairseek-paper, light-dark(#fff, #1d1d1d));
    --ink: var(--pairseek-ink, light-dark(#191919, #efefef)); --soft: var(--pairseek-soft, light-dark(#606060, #a6a6a6));
    --line: var(--pairseek-line, light-dark(#dcdcdc, #373737)); --accent: var(--pairseek-accent, light-dark(#0b6b4f, #72d4af));
    --on-accent: var(--pairseek-on-accent, light-dark(#fff, #0b1f18));
  }
}
*, ::before, ::after { box-sizing: border-box; }
[hidden] { display: none !important; }
h1, h2, h3 { margin: 0; font-family: var(--serif); font-weight: 500; line-height: 1.15; text-wrap: balance; outline: 0; }
h1, h2 { font-size: clamp(2rem, 1.4rem + 2.6cqi, 3.25rem); letter-spacing: -0.02em; }
section h2, h3 { font-size: clamp(1.35rem, 1.2rem + 0.7cqi, 1.75rem); letter-spacing: -0.01em; }
p, ol, figure { margin: 0; }
.soft { color: var(--soft); font-size: 0.9375rem; }
.lead { max-width: 36rem; color: var(--soft); font-size: 1.125rem; text-wrap: pretty; }
.prose { max-width: 38rem; text-wrap: pretty; }
.prose > * { margin: 0; }
.prose > * + * { margin-top: 0.9em; }
.prose:empty { display: none; }
a { color: var(--accent); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.icon { width: 1.125em; height: 1.125em; fill: none; stroke: currentcolor; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round; }
button {
  display: inline-flex; align-items: center; justify-content: center; gap: 0.5em; min-height: 2.75rem; padding: 0.5rem 1.25rem;
  border: 1px solid transparent; border-radius: 999px; background: none; color: var(--soft); font: inherit; font-weight: 500;
  line-height: 1.3; cursor: pointer; touch-action: manipulation; transition: border-color var(--quick), background-color var(--quick);
}
button:hover { border-color: var(--line); color: var(--ink); }
button:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
button[aria-disabled="true"] { opacity: 0.45; cursor: default; border-color: transparent; }
.primary, .primary:hover { min-height: 3.25rem; padding-inline: 2rem; background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.primary:hover { background: color-mix(in srgb, var(--accent) 88%, var(--ink)); }

.column {
  display: flex; flex-direction: column; justify-content: center; gap: 1.25rem; width: min(100%, 44rem);
  min-height: var(--pairseek-height, 0); margin-inline: auto; padding: 2.5rem clamp(1.25rem, 5cqi, 2.5rem);
}
.column.broad { width: min(100%, 66rem); justify-content: flex-start; }

.run {
  position: relative; display: grid; grid-template-rows: auto auto auto minmax(12rem, 1fr) auto; gap: clamp(0.75rem, 2.2vh, 1.75rem);
  width: min(100%, 72rem); height: var(--pairseek-height, 36rem); min-height: 26rem; max-height: 66rem; margin-inline: auto;
  padding: 0 clamp(1rem, 4cqi, 2.5rem) 0.5rem;
}
.run > * { min-width: 0; }
progress { width: 100%; height: 4px; border: 0; appearance: none; background: var(--line); }
progress::-webkit-progress-bar { background: var(--line); }
progress::-webkit-progress-value { background: var(--accent); transition: width 500ms cubic-bezier(0.2, 0.7, 0.3, 1); }
progress::-moz-progress-bar { background: var(--accent); }
.head { display: flex; justify-content: space-between; gap: 1.5rem; }
.head p:first-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.count { flex: none; font-variant-numeric: tabular-nums; }
.run h1, .run h2 { font-size: clamp(1.5rem, 1.1rem + 2.2cqi, 2.75rem); text-align: center; overflow-wrap: anywhere; }
.stage { display: grid; grid-template-columns: 1fr 1fr; gap: clamp(0.75rem, 2.5cqi, 2rem); min-height: 0; }
.card {
  position: relative; display: flex; flex-direction: column; min-width: 0; min-height: 0; border-radius: var(--round);
  background: var(--paper); box-shadow: 0 0 0 1px var(--line); transition: box-shadow var(--quick), transform var(--quick);
}
.show { flex: 1; display: flex; flex-direction: column; justify-content: center; min-height: 0; overflow: hidden; border-radius: var(--round) var(--round) 0 0; }
.show > * { animation: settle 260ms cubic-bezier(0.2, 0.7, 0.3, 1); }
.show > .swatch, .show > img { flex: 1 1 0px; min-height: 0; width: 100%; }
.show > img { height: 0; object-fit: contain; }
.show > .text, .show > .prose { padding: clamp(1rem, 3cqi, 2.5rem); overflow: auto; }
.show > .text { font: 400 clamp(1.125rem, 1rem + 1cqi, 1.75rem)/1.35 var(--serif); }
.show a { position: relative; z-index: 1; }
.pick {
  justify-content: space-between; width: 100%; min-height: 3.25rem; padding: 0.75rem 1.125rem; border: 0; text-align: left;
  color: var(--ink); -webkit-tap-highlight-color: transparent;
}
.pick::after { content: ""; position: absolute; inset: 0; border-radius: var(--round); } /* the whole card is the button */
.pick:focus-visible { outline: 0; }
.pick:focus-visible::after { outline: 3px solid var(--accent); outline-offset: 4px; }
.label { min-width: 0; overflow-wrap: anywhere; hyphens: auto; }
kbd { flex: none; min-width: 1.75em; border: 1px solid var(--line); border-radius: 0.375em; font: inherit; font-size: 0.8125rem; text-align: center; color: var(--soft); }
.bare .show { display: none; }
.bare .pick { flex: 1; flex-direction: column; justify-content: center; text-align: center; }
.bare .label { font: 500 clamp(1.5rem, 1rem + 2.5cqi, 2.75rem)/1.2 var(--serif); }
.card.picked::before {
  content: ""; position: absolute; inset: 0; border-radius: var(--round); box-shadow: 0 0 0 3px var(--accent); opacity: 0;
  pointer-events: none; animation: picked 420ms ease-out;
}
@keyframes picked { from { opacity: 1; } to { opacity: 0; inset: -0.625rem; } }
@keyframes settle { from { opacity: 0.55; transform: translateY(4px); } }
.foot { text-align: center; }
@media (hover: hover) {
  .card:hover { box-shadow: 0 0 0 1px var(--soft), 0 1.25rem 2.5rem -1.5rem rgb(0 0 0 / 35%); transform: translateY(-3px); }
}
@media (hover: none) and (pointer: coarse) { kbd, .only-keys { display: none; } }
@container (max-width: 40rem) {
  kbd, .only-keys { display: none; }
  .run h1, .run h2 { text-align: left; }
  .pick { min-height: 2.75rem; padding: 0.5rem 1rem; }
  .nameless .pick { position: absolute; inset: 0; padding: 0; }
  .nameless .show { border-radius: var(--round); }
  .stage.wide { grid-template-columns: 1fr; grid-template-rows: 1fr 1fr; }
  .choices, .choices button, .column p > .primary { width: 100%; }
}
@media (max-height: 30rem) { .run { grid-template-rows: auto auto auto minmax(9rem, 1fr) auto; gap: 0.5rem; min-height: 20rem; } }

.found { display: grid; gap: clamp(1.5rem, 5cqi, 4rem); width: 100%; }
@container (min-width: 56rem) { .found:has(figure) { grid-template-columns: 1.25fr 1fr; align-items: start; } }
figure svg { display: block; width: 100%; max-height: 34rem; border-radius: var(--round); background: var(--paper); }
figcaption { margin-top: 0.75rem; }
figure text { fill: var(--soft); font-size: 34px; text-anchor: middle; }
.dots { fill: var(--soft); }
.dots circle:not([fill]) { opacity: 0.5; }
.region { fill: var(--accent); fill-opacity: 0.1; stroke: var(--accent); stroke-width: 3; stroke-dasharray: 3 10; stroke-linecap: round; }
.ring { fill: var(--paper); stroke: var(--ink); stroke-width: 4; }
.heart { fill: var(--ink); }
section > * + * { margin-top: 1rem; }
ol { padding: 0; list-style: none; }
li { display: grid; grid-template-columns: 3.5rem 1fr auto; align-items: center; gap: 1rem; padding-block: 0.625rem; border-bottom: 1px solid var(--line); }
.sample { display: block; width: 3.5rem; height: 3.5rem; border-radius: 0.625rem; object-fit: cover; outline: 1px solid rgb(128 128 128 / 30%); outline-offset: -1px; }
.letter { display: grid; place-items: center; color: var(--accent); font: 500 1.5rem var(--serif); }
.choices { display: flex; flex-wrap: wrap; gap: 0.75rem; }
@media (prefers-reduced-motion: reduce) { *, ::before, ::after { animation: none !important; transition: none !important; } }
@media (forced-colors: active) {
  .card { border: 1px solid ButtonText; }
  .primary { border: 2px solid ButtonText; }
  .swatch, .dots circle { forced-color-adjust: none; }
}
`;

  function made(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  function drawn(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const icon = (d) => drawn("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" }, drawn("path", { d }));
  const undoIcon = () => icon("M8 5 4 9l4 4M4 9h8a4 4 0 0 1 0 8h-2");

  function speaker({ words, language }) {
    const plural = new Intl.PluralRules(language);
    const number = new Intl.NumberFormat(language);
    return (key, values = {}) => {
      const message = words[key];
      const text = typeof message === "string" ? message : message[plural.select(values.count)] ?? message.other;
      return text.replace(/\{(\w+)\}/g, (_, name) => {
        return typeof values[name] === "number" ? number.format(values[name]) : values[name];
      });
    };
  }

  function picture({ image, alt, label }) {
    const shown = made("img", { alt: alt ?? label, width: image.width, height: image.height, draggable: false });
    return Object.assign(shown, { sizes: "(max-width: 40rem) 50vw, 34rem", srcset: image.srcset, src: image.src });
  }

  function swatch(colour) {
    const shown = made("div", { className: "swatch" });
    shown.style.backgroundColor = colour;
    return shown;
  }

  function media(item) {
    const shown = [];
    if (item.colour) shown.push(swatch(item.colour));
    if (item.image) shown.push(picture(item));
    if (item.text) shown.push(made("p", { className: "text", textContent: item.text }));
    if (item.markdown) shown.push(made("div", { className: "prose", innerHTML: item.markdown })); // sanitized by pairseek
    return shown;
  }

  // An id used as a label is hidden if the card shows something else.
  const caption = (item, shown) => (item.label === item.id && shown.length ? "" : item.label);
  const spoken = (item) => (item.label === item.id ? item.alt ?? item.text ?? item.colour ?? item.label : item.label);
  const needsWidth = ({ colour, image }) => !(colour || (image && image.width < image.height));

  function sample(item) {
    if (item.image) return Object.assign(picture(item), { className: "sample", alt: "", sizes: "3.5rem" });
    if (item.colour) return Object.assign(swatch(item.colour), { className: "sample swatch" });
    const letter = made("span", { className: "sample letter", textContent: [...spoken(item)][0] });
    letter.setAttribute("aria-hidden", "true");
    return letter;
  }

  function drawMap({ size, origin, axes, dots, names }, { point, region: [xx, xy, yy] }, say) {
    const [x, y] = origin.map((from, i) => axes[i].reduce((sum, factor, j) => sum + factor * point[j], from));
    // Semi-axes and direction of the 95 % ellipse of this covariance.
    const middle = (xx + yy) / 2;
    const off = Math.hypot((xx - yy) / 2, xy);
    const [rx, ry] = [middle + off, middle - off].map((variance) => 2.4477 * Math.sqrt(Math.max(variance, 0)));
    const turn = (90 / Math.PI) * Math.atan2(2 * xy, xx - yy);
    const dot = ([cx, cy, fill]) => drawn("circle", { cx, cy, r: fill ? 9.5 : 5.5, ...(fill && { fill }) });
    const named = ([left, top, text]) => drawn("text", { x: left, y: top }, text);
    return drawn(
      "svg",
      { viewBox: `0 0 ${size[0]} ${size[1]}`, role: "img", "aria-label": say("result.map") },
      drawn("g", { class: "dots" }, ...dots.map(dot)),
      drawn("ellipse", { class: "region", rx, ry, transform: `translate(${x} ${y}) rotate(${turn})` }),
      drawn("circle", { class: "ring", cx: x, cy: y, r: 22 }),
      drawn("circle", { class: "heart", cx: x, cy: y, r: 9 }),
      ...names.map(named),
    );
  }

  // Shows a quiz inside an element. Callbacks receive the answers by id, the estimate and the recommendations.
  globalThis.pairseekPlayer = function mount(element, { quiz, onanswer, onfinish, intro = true, result = true, page = false }) {
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    const { tree } = quiz;
    const say = speaker(tree);
    const keys = page ? document : element;
    const body = made("div", { className: "body", lang: tree.language });
    root.replaceChildren(body);

    let path = [];
    let stage = null; // elements of the pairs while they are on screen
    let turn = 0;
    let ready = Infinity; // time from which the pair can be answered

    const heading = (text) => made(page ? "h1" : "h2", { textContent: text, tabIndex: -1 });
    const button = (className, onclick, ...content) => made("button", { type: "button", className, onclick }, ...content);

    function screen(className, ...parts) {
      turn += 1;
      stage = null;
      const began = body.hasChildNodes();
      body.replaceChildren(made("div", { className }, ...parts));
      if (began) body.querySelector("h1, h2").focus({ preventScroll: !page });
    }

    function welcome() {
      const count = { count: tree.answers };
      const length = quiz.early() ? say("quiz.most", count) : say("quiz.length", count);
      const how = made("div", { className: "prose", innerHTML: tree.instructions });
      const keys = made("span", { className: "only-keys", textContent: say("quiz.keys") });
      if (!tree.instructions) how.append(made("p", { textContent: say("start.instructions") }));
      screen(
        "column",
        made("p", { className: "soft", textContent: say("quiz.kicker") }),
        heading(tree.title),
        made("p", { className: "lead", textContent: length }),
        how,
        made("p", { className: "soft" }, `${say("start.tap")} `, keys, page ? ` ${say("quiz.private")}` : ""),
        made("p", {}, button("primary", restart, say("start.begin"))),
      );
    }

    function restart() {
      path = [];
      show();
    }

    function card(side, arrow) {
      const display = made("div", { className: "show", id: `${side}-show` });
      const label = made("span", { className: "label", id: `${side}-label` });
      const pick = button("pick", (event) => answer(side, event.timeStamp));
      pick.setAttribute("aria-labelledby", `${side}-side ${side}-label ${side}-show`);
      const key = made("kbd", { textContent: arrow });
      key.setAttribute("aria-hidden", "true");
      pick.append(made("span", { className: "unseen", id: `${side}-side`, textContent: say(`run.side.${side}`) }), label, key);
      return { box: made("div", { className: "card" }, display, pick), display, label };
    }

    function openStage() {
      const bar = made("progress", { max: tree.answers });
      bar.setAttribute("aria-label", say("run.progress"));
      const [left, right] = [card("left", "←"), card("right", "→")];
      const cards = made("div", { className: "stage" }, left.box, right.box);
      cards.setAttribute("role", "group");
      cards.setAttribute("aria-label", tree.question);
      const undo = button("quiet", (event) => takeBack(event.timeStamp), undoIcon(), say("run.undo"));
      undo.hidden = !tree.undo;
      const count = made("p", { className: "count soft" });
      const announce = made("p", { className: "unseen" });
      announce.setAttribute("aria-live", "polite");
      const head = made("div", { className: "head soft" }, made("p", { textContent: tree.title }), count);
      screen("run", bar, head, heading(tree.question), cards, made("p", { className: "foot" }, undo), announce);
      stage = { bar, count, undo, announce, cards, left, right };
    }

    async function show() {
      const pair = quiz.pair(path);
      if (!pair) return finish();
      if (!stage) openStage();
      const mine = (turn += 1);
      ready = Infinity;
      const built = SIDES.map((side) => media(pair[side]));
      const pictures = built.flat().filter((shown) => shown.tagName === "IMG");
      const late = new Promise((done) => setTimeout(done, LOADING_MS));
      if (pictures.length) await Promise.race([late, Promise.all(pictures.map((one) => one.decode().catch(() => {})))]);
      if (mine !== turn) return undefined;
      const { bar, count, undo, announce, cards } = stage;
      SIDES.forEach((side, i) => {
        const { box, display, label } = stage[side];
        display.replaceChildren(...built[i]);
        label.textContent = caption(pair[side], built[i]);
        box.classList.toggle("bare", !built[i].length);
        box.classList.toggle("nameless", !label.textContent);
        const colour = built[i].length === 1 && !label.textContent && pair[side].colour;
        if (colour) display.firstChild.setAttribute("role", "img");
        if (colour) display.firstChild.setAttribute("aria-label", colour);
      });
      cards.classList.toggle("wide", SIDES.some((side) => needsWidth(pair[side])));
      cards.dataset.shown = path.length; // for tests
      bar.value = path.length;
      count.textContent = say("run.of", { count: path.length, total: tree.answers });
      undo.setAttribute("aria-disabled", String(!path.length));
      const [left, right] = SIDES.map((side) => spoken(pair[side]));
      announce.textContent = say("run.announce", { number: path.length + 1, left, right });
      requestAnimationFrame((time) => mine === turn && (ready = time + GUARD_MS));
      // Preload the pictures of the pairs that may follow.
      for (const side of SIDES) for (const item of Object.values(quiz.pair([...path, side]) ?? {})) media(item);
      return undefined;
    }

    function answer(side, moment) {
      if (!stage || moment < ready) return;
      const { box } = stage[side];
      box.classList.remove("picked");
      void box.offsetWidth; // restarts the animation
      box.classList.add("picked");
      const { left, right } = quiz.pair(path);
      path = [...path, side];
      onanswer?.({ left: left.id, right: right.id, winner: { left, right }[side].id });
      show();
    }

    function takeBack(moment) {
      if (!tree.undo || !path.length || (stage && moment < ready)) return;
      path = path.slice(0, -1);
      show();
    }

    function finish() {
      const found = quiz.result(path);
      const { answers, estimate, recommendations } = found;
      if (result) {
        const nearest = recommendations.map((item) => {
          const percent = Math.round(100 * item.share);
          const share = made("span", { className: "soft", textContent: say("result.share", { percent }) });
          return made("li", {}, sample(item), made("span", { textContent: spoken(item) }), share);
        });
        const list = made("section", {}, made(page ? "h2" : "h3", { textContent: say("result.nearest") }));
        list.append(made("ol", {}, ...nearest), made("p", { className: "soft", textContent: say("result.chosen.text") }));
        const parts = [list];
        if (tree.map) {
          const text = made("figcaption", { className: "soft", textContent: say("result.caption") });
          parts.unshift(made("figure", {}, drawMap(tree.map, estimate, say), text));
        }
        const choices = [button("primary", restart, say("quiz.again"))];
        if (tree.undo) choices.push(button("quiet", (event) => takeBack(event.timeStamp), undoIcon(), say("run.last.undo")));
        const lead = say("quiz.found", { count: answers.length }) + (page ? ` ${say("quiz.private")}` : "");
        screen(
          "column broad",
          made("p", { className: "soft", textContent: tree.title }),
          heading(say("result.title")),
          made("p", { className: "lead", textContent: lead }),
          made("div", { className: "found" }, ...parts),
          made("div", { className: "prose", innerHTML: tree.debrief }),
          made("p", { className: "choices" }, ...choices),
        );
      } else {
        stage = null;
        body.replaceChildren();
      }
      onfinish?.({ answers, estimate: { point: estimate.point, radius: estimate.radius }, recommendations });
    }

    function press(event) {
      const act = { ArrowLeft: () => answer("left", event.timeStamp), ArrowRight: () => answer("right", event.timeStamp) };
      act.Backspace = () => takeBack(event.timeStamp);
      if (!stage || event.ctrlKey || event.metaKey || event.altKey || !(event.key in act || event.repeat)) return;
      if (event.key in act || event.key === "Enter") event.preventDefault();
      else return;
      if (!event.repeat) act[event.key](); // a held key answers once
    }

    keys.addEventListener("keydown", press);
    if (intro) welcome();
    else show();
    return {
      restart,
      remove() {
        keys.removeEventListener("keydown", press);
        root.replaceChildren();
      },
    };
  };

}
