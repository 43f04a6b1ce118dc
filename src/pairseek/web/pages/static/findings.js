// Findings of a study: sorting of the ranking, zoom and download of the map, and a check for new findings.

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  for (const head of heads) {
    head.querySelector("button").addEventListener("click", () => {
      const key = head.dataset.key;
      const falling = ["share", "top1", "top3", "top5", "answers"].includes(key);
      const before = head.getAttribute("aria-sort");
      const up = before ? before === "descending" : !falling;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.dataset[key];
      const order = key === "name" ? (a, b) => value(a).localeCompare(value(b)) : (a, b) => value(a) - value(b);
      body.append(...[...body.rows].sort((a, b) => (up ? order(a, b) : order(b, a))));
    });
  }
}

function zoomable(svg, tools) {
  const width = Number(svg.dataset.width);
  const height = Number(svg.dataset.height);
  let box = { x: 0, y: 0, share: 1 };
  const show = () => {
    const limit = (value, most) => Math.min(Math.max(value, 0), most);
    box.x = limit(box.x, width * (1 - box.share));
    box.y = limit(box.y, height * (1 - box.share));
    // A finger pans a zoomed map, and otherwise scrolls the page.
    svg.classList.toggle("zoomed", box.share < 1);
    svg.setAttribute("viewBox", `${box.x} ${box.y} ${width * box.share} ${height * box.share}`);
  };
  const zoom = (factor, x = 0.5, y = 0.5) => {
    const share = Math.min(1, Math.max(0.1, box.share * factor));
    box = { x: box.x + x * width * (box.share - share), y: box.y + y * height * (box.share - share), share };
    show();
  };
  for (const button of tools.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => zoom({ in: 0.7, out: 1 / 0.7, all: 100 }[button.dataset.zoom]));
  }
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = svg.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, (event.clientX - frame.x) / frame.width, (event.clientY - frame.y) / frame.height);
  }, { passive: false });
  let held = null;
  svg.addEventListener("pointerdown", (event) => { if (box.share < 1) held = event; });
  addEventListener("pointermove", (event) => {
    if (!held) return;
    const scale = (width * box.share) / svg.clientWidth;
    box.x -= (event.clientX - held.clientX) * scale;
    box.y -= (event.clientY - held.clientY) * scale;
    held = event;
    show();
  });
  addEventListener("pointerup", () => { held = null; });
}

const asData = (blob) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.onerror = failed;
  reader.readAsDataURL(blob);
});

// The drawing as shown, with embedded pictures, so that the file is self-contained.
async function standalone(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("width", svg.dataset.width);
  copy.setAttribute("height", svg.dataset.height);
  for (const image of copy.querySelectorAll("image")) {
    image.setAttribute("href", await asData(await (await fetch(image.getAttribute("href"))).blob()));
  }
  return new XMLSerializer().serializeToString(copy);
}

function download(address, name) {
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

async function save(svg, kind, name) {
  const text = await standalone(svg);
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  if (kind === "svg") return download(address, `${name}-map.svg`);
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await picture.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * svg.dataset.width, height: 2 * svg.dataset.height });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  download(canvas.toDataURL("image/png"), `${name}-map.png`);
}

function wait(place) {
  setTimeout(async () => {
    try {
      const reply = await fetch(place.dataset.status, { cache: "no-store" });
      if (reply.ok && (await reply.json()).current) return location.reload();
    } catch {
      // The next check comes soon.
    }
    wait(place);
  }, 1500);
}

for (const table of document.querySelectorAll("[data-sortable]")) sortable(table);
const svg = document.querySelector(".group-map");
const tools = document.getElementById("map-tools");
if (svg && tools) {
  zoomable(svg, tools);
  for (const button of tools.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => save(svg, button.dataset.save, tools.dataset.name));
  }
}
const pending = document.getElementById("pending");
if (pending) wait(pending);
