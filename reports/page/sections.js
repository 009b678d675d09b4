// The page from top to bottom.

const PHASES = ["forward", "backward", "update"];

function drawHeader() {
  const facts = DATA.facts, gap = facts.lower_bound_bytes ? facts.cost_bytes / facts.lower_bound_bytes - 1 : null;
  const figure = (title, number, note) =>
    el("div", {}, el("dt", {}, title), el("dd", {}, el("div", {class: "number"}, number), el("div", {class: "quiet small"}, note)));
  document.getElementById("top").append(
    el("h1", {}, facts.model),
    el("p", {class: "quiet"}, `${formatCount(facts.operators)} operators and ${formatCount(facts.tensors)} tensors over ` +
      `${facts.workers} workers, split ${DATA.factors.join(" × ") || "in no step"} by the method ${facts.method}` +
      (facts.constraints ? ` within ${facts.constraints.join("; ")}` : "")),
    el("dl", {class: "figures"},
      figure("Moved in one iteration", bytes(facts.cost_bytes, {id: "cost"}), `${formatCount(facts.cost_bytes)} bytes`),
      figure("Proven least", bytes(facts.lower_bound_bytes, {id: "bound"}),
        gap === null ? "no bound above 0 is proven" : gap >= 1 ? `the plan moves ${(gap + 1).toFixed(1)} times as much`
          : gap ? `the plan moves ${(100 * gap).toFixed(2)}% more` : "no plan moves less"),
      figure("Peak memory of a worker", bytes(facts.peak_bytes_per_worker, {id: "peak"}),
        ["of ", bytes(facts.single_device_peak_bytes), ` on one device: ${formatShare(facts.peak_bytes_per_worker, facts.single_device_peak_bytes)}`,
          "fits" in facts ? `; a device's ${formatBytes(facts.device_memory_bytes)} are ${facts.fits ? "enough" : "too little"}` : ""]),
      figure("Weights and their state", bytes(facts.weight_state_bytes), "on all workers together")));
  document.getElementById("legend").append(
    DATA.drawn_workers < facts.workers ? `group of ${facts.workers / DATA.drawn_workers} workers ` : "worker ",
    ...DATA.colours.map((colour, worker) => el("span", {class: "swatch", role: "listitem",
      style: `background:${colour};color:${DATA.inks[worker]}`}, `${worker}`)));
}

function drawLayers() {
  const section = document.getElementById("layers");
  const most = Math.max(...DATA.layers.flatMap(block => block.layers.map(layer => layer.weight_bytes + layer.activation_bytes)), 1);
  section.append(
    el("p", {class: "quiet"}, "Every weight of two dimensions or more in the order of its use, with the data that it meets. A tile has the colour ",
      "of the worker that holds it; blocks that repeat are told once. Bytes are those of one layer."),
    el("p", {class: "small"}, el("span", {class: "key", style: "background:var(--bar);margin-left:0"}), "moved for the weight, its gradient and state",
      el("span", {class: "key", style: "background:var(--bar-second)"}), "moved for all else"));
  if (!DATA.layers.length) {
    section.append(el("p", {}, "The model has no weight of two dimensions or more."));
    return;
  }
  const table = el("table", {}, el("thead", {}, el("tr", {},
    ["", "weight and its operator", "weight", "data", "split along", "bytes moved"].map(title => el("th", {scope: "col"}, title)))));
  for (const block of DATA.layers) {
    const body = el("tbody", {class: block.times > 1 ? "block" : "block once"});
    block.layers.forEach((layer, number) => body.append(opening(layerRow(layer, block, number, most), () => openNamed("operator", layer.operation))));
    table.append(body);
    walkable(body);
  }
  section.append(el("div", {class: "scroll"}, table));
}

function layerRow(layer, block, number, most) {
  const drawn = name => {
    const layout = DATA.layouts[tensorNamed(name).group.layout];
    return [tiles(layout.picture[0], `${name}: ${formatCuts(layout.shape, layout.choice)}, ${layout.picture[2]}`),
      el("span", {class: "small quiet"}, formatCuts(layout.shape, layout.choice))];
  };
  return el("tr", {},
    number ? null : el("td", {class: "times", rowspan: block.layers.length}, block.times > 1 ? `×${block.times}` : ""),
    el("td", {}, nameButton(layer.weight, 1), el("div", {class: "small quiet"}, layer.operator + (layer.uses > 1 ? `, used ${layer.uses} times` : ""))),
    el("td", {}, drawn(layer.weight)),
    el("td", {}, drawn(layer.data)),
    el("td", {}, layer.variables.map(([name, parts]) => `${name}/${parts}`).join("  ") || "–"),
    el("td", {class: "bar"}, el("span", {class: "first"}, bytes(layer.weight_bytes)), " + ", el("span", {class: "second"}, bytes(layer.activation_bytes)),
      bar([layer.weight_bytes, most], [layer.activation_bytes, most, "second"])));
}

function drawBytes() {
  const total = DATA.facts.cost_bytes, unproven = new Set(DATA.facts.unproven_steps.map(entry => entry.step));
  const moved = OPERATORS.flatMap(row => row.group.moved.map(([kind, count]) => ({kind, phase: row.group.phase, count: count * row.names.length})));
  const by = key => Object.entries(moved.reduce((sums, entry) => {
    sums[entry[key]] = (sums[entry[key]] || 0) + entry.count;
    return sums;
  }, {}));
  const bars = (id, title, entries) => {
    const most = Math.max(...entries.map(([, count]) => count), 1);
    return el("div", {id}, el("h3", {}, title), el("table", {}, el("tbody", {}, entries.map(([name, count]) => el("tr", {},
      el("th", {scope: "row"}, name), el("td", {class: "bar"}, bar([count, most])),
      el("td", {class: "number"}, bytes(count)), el("td", {class: "number quiet"}, formatShare(count, total)))))));
  };
  const words = {fetch: "fetch inputs", concat: "collect outputs", reduce: "reduce outputs"};
  document.getElementById("bytes").append(el("div", {class: "halves"},
    bars("by-step", "By step of the recursion", DATA.facts.step_cost_bytes.map((count, step) =>
      [`step ${step + 1}, ${DATA.factors[step]}-way${unproven.has(step) ? ", not proven the best" : ""}`, count])),
    bars("by-phase", "By phase", by("phase").sort((a, b) => PHASES.indexOf(a[0]) - PHASES.indexOf(b[0]))),
    bars("by-kind", "By movement", by("kind").map(([kind, count]) => [words[kind], count])),
    DATA.facts.levels ? bars("by-level", `By level of ${DATA.facts.machine}`, DATA.facts.levels.map(level => [level.level, level.crossing_bytes])) : null));
}

function drawOperators() {
  const most = Math.max(...OPERATORS.map(row => row.bytes), 1);
  const section = document.getElementById("operators");
  section.append(el("p", {class: "quiet"}, "Operators that differ in their names only share a line. Open one for its description, strategies, regions and what else it could do."));
  searchable(section, {label: "operators", rows: OPERATORS, about: row => row.kind.name, sortedBy: 4, open: row => openNamed("operator", shownName(row)), columns: [
    {title: "operator", cell: named, key: row => row.names[0]},
    {title: "computes", cell: row => row.kind.name, key: row => row.kind.name},
    {title: "phase", cell: row => row.group.phase, key: row => row.first},
    {title: "split along", cell: row => formatChoice(row.split.choice), key: row => formatChoice(row.split.choice)},
    {title: "bytes moved", class: "bar", number: true, cell: row => [bytes(row.bytes), bar([row.bytes, most])], key: row => row.bytes},
    {title: "share", number: true, cell: row => formatShare(row.bytes, DATA.facts.cost_bytes), key: row => row.bytes},
  ]});
}

function drawTensors() {
  const most = Math.max(...TENSORS.map(row => row.bytes), 1);
  const section = document.getElementById("tensors");
  section.append(el("p", {class: "quiet"}, "Every tensor with the parts that its workers hold. Tensors alike share a line."));
  searchable(section, {label: "tensors", rows: TENSORS, about: row => row.group.role, sortedBy: 4, open: row => openNamed("tensor", shownName(row)), columns: [
    {title: "parts", cell: row => tiles(row.layout.picture[0], `${row.names[0]}: ${row.layout.picture[2]}`)},
    {title: "tensor", cell: named, key: row => row.names[0]},
    {title: "role", cell: row => row.group.role, key: row => row.group.role},
    {title: "shape and cuts", class: "cuts", number: true, cell: row => formatCuts(row.layout.shape, row.layout.choice), key: row => product(row.layout.shape)},
    {title: "bytes moved", class: "bar", number: true, cell: row => [bytes(row.bytes), bar([row.bytes, most])], key: row => row.bytes},
  ]});
}

// The first name that matches the search stands for the others.
function named(row, wanted) {
  row.shown = row.names.find(name => name.toLowerCase().includes(wanted)) || row.names[0];
  return nameButton(row.shown, row.names.length);
}

function shownName(row) {
  return row.shown || row.names[0];
}

function drawMemory() {
  const {memory, facts} = DATA, most = Math.max(...memory.arena_bytes, 1);
  const table = (title, heads, rows) => el("div", {}, el("h3", {}, title), el("table", {},
    el("thead", {}, el("tr", {}, heads.map(([head, number]) => el("th", {scope: "col", class: number ? "number" : ""}, head)))), el("tbody", {}, rows)));
  document.getElementById("memory").append(
    el("p", {class: "quiet"}, `Live bytes of worker ${memory.fullest} over one iteration, operator by operator, without the workspaces of kernels.`),
    svg("svg", {class: "curve", viewBox: "0 0 900 220", role: "img", "aria-label": `Live bytes of worker ${memory.fullest}, at most ${formatBytes(memory.live_bytes[memory.fullest])}`},
      svg("use", {href: "#memory-curve", width: 900, height: 220})),
    el("div", {class: "halves"},
      table("By worker", [["worker"], ["arena"], ["bytes", 1], ["of one device", 1]], memory.arena_bytes.map((count, worker) => el("tr", {},
        el("td", {}, `${worker}`), el("td", {class: "bar"}, bar([count, most])), el("td", {class: "number"}, bytes(count)),
        el("td", {class: "number"}, formatShare(count, facts.single_device_peak_bytes))))),
      table(`Largest at the peak of worker ${memory.fullest}`, [["tensor"], ["as"], ["bytes", 1]], memory.largest.map(([name, kind, count]) => el("tr", {},
        el("td", {}, name), el("td", {}, kind), el("td", {class: "number"}, bytes(count)))))));
}

function drawMethods() {
  const entries = [DATA.facts, ...DATA.methods].sort((a, b) => a.cost_bytes - b.cost_bytes);
  const most = Math.max(...entries.map(entry => entry.cost_bytes), 1), least = entries[0].cost_bytes;
  const section = document.getElementById("methods");
  section.append(
    el("p", {class: "quiet"}, `The plan of this page beside those that other methods found for the same graph and workers.`),
    el("div", {class: "scroll"}, el("table", {}, el("thead", {}, el("tr", {},
      ["method", "bytes moved", "of the least", "by step", "peak of a worker", ...("fits" in DATA.facts ? ["fits"] : []), "searched in"].map(title => el("th", {scope: "col"}, title)))),
      el("tbody", {}, entries.map(entry => el("tr", entry === DATA.facts ? {class: "chosen"} : {},
        el("td", {}, entry.method),
        el("td", {class: "bar"}, bytes(entry.cost_bytes), bar([entry.cost_bytes, most])),
        el("td", {}, least ? `${(entry.cost_bytes / least).toFixed(2)} ×` : "–"),
        el("td", {class: "small"}, entry.step_cost_bytes.map(formatBytes).join(", ")),
        el("td", {}, bytes(entry.peak_bytes_per_worker)),
        "fits" in DATA.facts ? el("td", {}, entry.fits ? "yes" : "out of memory") : null,
        el("td", {}, entry.search_seconds === null ? "–" : `${entry.search_seconds.toFixed(2)} s`)))))));
  const left = Object.entries(DATA.left_out);
  if (left.length) {
    section.append(el("h3", {}, "Not compared"), el("ul", {}, left.map(([method, reason]) => el("li", {}, el("b", {}, method), `: ${reason}`))));
  }
}
