// Plotly plots in the style of the page.

function look() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return { ink: value("--ink"), soft: value("--soft"), line: value("--line"), accent: value("--accent"), paper: value("--paper"), font: value("--sans") };
}

const CONFIG = {
  responsive: true,
  displaylogo: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  toImageButtonOptions: { format: "svg", filename: "pairseek" },
};

function layout(page, more) {
  const axis = { gridcolor: page.line, zeroline: false, linecolor: page.line, tickfont: { color: page.soft } };
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: page.font, size: 13, color: page.ink },
    hoverlabel: { bgcolor: page.paper, bordercolor: page.line, font: { family: page.font, color: page.ink } },
    legend: { orientation: "h", y: -0.08, font: { color: page.soft } },
    margin: { l: 48, r: 24, t: 24, b: 52 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: page.soft, activecolor: page.accent },
    hovermode: "closest",
    ...more,
    xaxis: { ...axis, ...more.xaxis },
    yaxis: { ...axis, ...more.yaxis },
  };
}

const BARE = { showgrid: false, showticklabels: false, showline: false };
const MAP = { margin: { l: 16, r: 16, t: 24, b: 40 }, xaxis: BARE, yaxis: { ...BARE, scaleanchor: "x" } };

// Maximum number of SVG points. WebGL traces are blocked by the content security policy.
const MOST = 2500;
const some = (list) => {
  const step = Math.ceil(list.length / MOST);
  return step < 2 ? list : list.filter((_, index) => index % step === 0);
};

// Plotly interprets some tags, so labels are escaped.
const plain = (text) => String(text ?? "").replaceAll("&", "&amp;").replaceAll("<", "&lt;");

function itemTrace(all, page, say) {
  const items = some(all);
  const name = items.length < all.length ? "plot.some" : "plot.items";
  return {
    type: "scatter",
    mode: "markers",
    name: say(name, { shown: items.length, all: all.length }),
    x: items.map((dot) => dot[0]),
    y: items.map((dot) => dot[1]),
    text: items.map((dot) => plain(dot[3])),
    hovertemplate: "%{text}<extra></extra>",
    marker: { size: items.length > 1000 ? 4 : 6, opacity: 0.7, color: items.map((dot) => dot[2] ?? page.soft) },
  };
}

function peopleTrace(people, name, marker) {
  return {
    type: "scatter",
    mode: "markers",
    name,
    x: people.map((person) => person.point[0]),
    y: people.map((person) => person.point[1]),
    text: people.map((person) => plain(person.name ?? person.session.slice(0, 8))),
    customdata: people.map((person) => person.radius),
    hovertemplate: "%{text}<br>± %{customdata:.2f}<extra></extra>",
    marker,
  };
}

export function studyMap(element, { items, people }, say) {
  const page = look();
  const counted = people.filter((person) => !person.voided);
  const real = counted.filter((person) => !person.simulated);
  const simulated = counted.filter((person) => person.simulated);
  const rings = counted.map(({ point: [x, y], radius, simulated: made }) => ({
    type: "circle",
    x0: x - radius,
    x1: x + radius,
    y0: y - radius,
    y1: y + radius,
    line: { color: made ? page.soft : page.accent, width: 1, dash: made ? "dot" : "solid" },
    opacity: 0.35,
  }));
  const traces = [itemTrace(items, page, say)];
  if (real.length) traces.push(peopleTrace(real, say("plot.people"), { size: 10, color: page.accent, line: { color: page.paper, width: 2 } }));
  if (simulated.length) {
    traces.push(peopleTrace(simulated, say("plot.simulated"), { size: 9, symbol: "circle-open", color: page.soft, line: { width: 2 } }));
  }
  Plotly.react(element, traces, layout(page, { ...MAP, shapes: rings }), CONFIG);
  element.on("plotly_click", ({ points: [point] }) => {
    const list = point.curveNumber === 0 ? null : point.curveNumber === 1 && real.length ? real : simulated;
    if (list) location.href = `${location.pathname}/people/${encodeURIComponent(list[point.pointNumber].session)}`;
  });
}

export function personMap(element, { items, samples: drawn, track }, say) {
  const page = look();
  const samples = some(drawn);
  const xs = track.points.map((point) => point[0]);
  const ys = track.points.map((point) => point[1]);
  const traces = [
    itemTrace(items, page, say),
    {
      type: "scatter",
      mode: "markers",
      name: say("plot.samples"),
      x: samples.map((sample) => sample[0]),
      y: samples.map((sample) => sample[1]),
      hoverinfo: "skip",
      marker: { size: 3, opacity: 0.25, color: page.accent },
    },
    {
      type: "scatter",
      mode: "lines+markers",
      name: say("plot.track"),
      x: xs,
      y: ys,
      text: xs.map((_, index) => say("plot.after", { count: index + 1 })),
      hovertemplate: "%{text}<extra></extra>",
      line: { color: page.ink, width: 1, shape: "spline" },
      marker: { size: 4, color: page.ink },
    },
    {
      type: "scatter",
      mode: "markers",
      name: say("plot.estimate"),
      x: xs.slice(-1),
      y: ys.slice(-1),
      hovertemplate: `${say("plot.estimate")}<extra></extra>`,
      marker: { size: 14, color: page.paper, line: { color: page.ink, width: 3 } },
    },
  ];
  Plotly.react(element, traces, layout(page, MAP), CONFIG);
}

export function personRadius(element, { radii }, say) {
  const page = look();
  const trace = {
    type: "scatter",
    mode: "lines+markers",
    x: radii.map((_, index) => index + 1),
    y: radii,
    hovertemplate: "%{x}: %{y:.3f}<extra></extra>",
    line: { color: page.accent, width: 2 },
    marker: { size: 6, color: page.accent },
  };
  const axes = { xaxis: { title: { text: say("plot.answers"), standoff: 8 }, rangemode: "tozero" }, yaxis: { rangemode: "tozero" } };
  Plotly.react(element, [trace], layout(page, axes), CONFIG);
}
