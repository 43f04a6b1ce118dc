// Form for a new study: errors are shown without reloading the page, so that the chosen files stay chosen.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.enctype !== "multipart/form-data" || form.dataset.plain) return;
  event.preventDefault();
  const button = form.querySelector("button:not([type=button])");
  button.disabled = true;
  if (button.dataset.busy) button.textContent = button.dataset.busy;
  let reply;
  try {
    reply = await fetch(form.action, { method: "POST", body: new FormData(form) });
  } catch {
    // Without a connection, let the browser report the error itself.
    form.dataset.plain = "true";
    form.submit();
    return;
  }
  if (reply.redirected) {
    location.assign(reply.url);
    return;
  }
  const main = document.getElementById("main");
  const received = new DOMParser().parseFromString(await reply.text(), "text/html").getElementById("main");
  for (const old of main.querySelectorAll("input[type=file]")) {
    const fresh = received.querySelector(`#${CSS.escape(old.id)}`);
    if (!fresh) continue;
    for (const name of ["aria-invalid", "aria-describedby"]) {
      if (fresh.hasAttribute(name)) old.setAttribute(name, fresh.getAttribute(name));
      else old.removeAttribute(name);
    }
    fresh.replaceWith(old);
  }
  for (const kept of main.querySelectorAll("#columns, .plan")) {
    received.querySelector(kept.id ? "#columns" : ".plan")?.replaceWith(kept);
  }
  const folds = received.querySelectorAll("details");
  main.querySelectorAll("details").forEach((old, place) => {
    if (old.open) folds[place]?.setAttribute("open", "");
  });
  main.replaceChildren(...received.childNodes);
  offerAttentionPairs();
  const alert = main.querySelector("[role=alert]");
  if (alert) {
    alert.tabIndex = -1;
    alert.focus();
    scrollTo(0, 0);
  }
});

// Show which columns of a chosen item list are coordinates.
document.addEventListener("change", async (event) => {
  const input = event.target;
  const columns = document.getElementById("columns");
  if (!input.dataset.columns || !columns) return;
  columns.replaceChildren();
  if (!input.files.length) return countPictures();
  const sent = new FormData();
  sent.set("csrf", input.form.elements.csrf.value);
  sent.set(input.name, input.files[0]);
  try {
    const reply = await fetch(input.dataset.columns, { method: "POST", body: sent });
    if (!reply.ok) throw new Error(reply.statusText);
    const part = new DOMParser().parseFromString(await reply.text(), "text/html").body;
    columns.replaceChildren(...part.childNodes);
    offerAttentionPairs();
    planItems(columns.querySelector("[data-count]")?.dataset.count);
  } catch {
    const line = document.createElement("p");
    line.className = "hint";
    line.textContent = columns.dataset.failed;
    columns.replaceChildren(line);
  }
});

// Choosing a colour means to use it.
document.addEventListener("input", (event) => {
  const name = event.target.dataset.ticks;
  if (name) event.target.form.elements[name].checked = true;
});

// A link to a field in a folded section unfolds it.
addEventListener("click", (event) => {
  const target = event.target.closest("a[href^='#f-']");
  const field = target && document.getElementById(decodeURIComponent(target.hash.slice(1)));
  if (field) field.closest("details")?.setAttribute("open", "");
});

// Show the usual texts of participants in the language of the study.
document.addEventListener("change", async (event) => {
  const { name, value } = event.target;
  if (name !== "language") return;
  const reply = await fetch(`/studies/new/texts.json?language=${encodeURIComponent(value)}`);
  if (!reply.ok) return;
  const usual = await reply.json();
  for (const label of document.querySelectorAll("[data-usual]")) {
    label.textContent = usual[label.dataset.usual] ?? label.textContent;
    label.lang = value;
  }
});

// Pick attention pairs by label, once the items are known.
function offerAttentionPairs() {
  const offered = document.getElementById("attention-picker");
  const field = document.getElementById("f-attention");
  if (!offered || !field) return;
  document.querySelector("[data-picker]")?.remove();
  const labels = [...(document.getElementById("attention-labels")?.options ?? [])].map(({ value }) => value);
  const items = labels.length ? labels : pictures();
  if (items.length < 2) return;
  const picker = document.createElement("div");
  picker.dataset.picker = "";
  picker.append(offered.content.cloneNode(true));
  const selects = [...picker.querySelectorAll("select")];
  selects.forEach((select, place) => {
    for (const item of items) select.add(new Option(item));
    select.selectedIndex = place;
  });
  field.closest(".field").after(picker);
  picker.querySelector("button").addEventListener("click", () => {
    const [right, other] = selects.map((select) => select.value);
    if (right === other) return;
    const before = field.value.trim();
    field.value = `${before}${before ? "\n" : ""}${right}; ${other}; ${right}`;
  });
}

// Without a list, each file is a thing, and its name without the ending is the thing's id.
function pictures() {
  if (document.getElementById("f-items")?.files.length) return [];
  const names = [...(document.getElementById("f-images")?.files ?? [])].map(({ name }) => name);
  const stems = names.map((name) => name.replace(/\.[^.]*$/, ""));
  return new Set(stems).size === stems.length ? stems : names;
}

function countPictures() {
  const { length } = pictures();
  offerAttentionPairs();
  if (length > 1) planItems(length);
}

// Say what a study of this size will tell, a moment after the last change.
let planning;
let pause;

function planItems(count) {
  const field = document.getElementById("plan-items");
  if (!field || !count) return;
  field.value = count;
  plan();
}

function plan() {
  clearTimeout(pause);
  pause = setTimeout(async () => {
    const shown = document.getElementById("plan");
    const fields = ["plan-items", "plan-people", "f-answers"].map((id) => document.getElementById(id));
    if (!shown || fields.some((field) => !field?.value || !field.checkValidity())) return;
    planning?.abort();
    planning = new AbortController();
    const [items, people, answers] = fields.map((field) => field.value);
    try {
      const reply = await fetch(`${shown.dataset.address}?${new URLSearchParams({ items, people, answers })}`, { signal: planning.signal });
      if (!reply.ok) return;
      const { text, warning } = await reply.json();
      shown.replaceChildren(...[[text, "small"], [warning, "told"]].filter(([said]) => said).map(([said, kind]) =>
        Object.assign(document.createElement("p"), { textContent: said, className: kind })));
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }, 350);
}

document.addEventListener("input", (event) => {
  if (["plan-items", "plan-people", "f-answers"].includes(event.target.id)) plan();
});

document.addEventListener("change", (event) => {
  if (event.target.id === "f-images") countPictures();
});
