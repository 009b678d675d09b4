// What workers hold and do over an iteration, and what other methods would have found.

function drawMemory() {
  const {arena_bytes: arenas, live_bytes: live, fullest, largest} = DATA.memory;
  const most = Math.max(...arenas, 1);
  const label = `Live bytes of worker ${fullest}, at most ${formatBytes(live[fullest])}`;
  const byWorker = arenas.map((count, worker) => row([
    `${worker}`,
    {bar: bar([count, most])},
    {number: bytes(count)},
    {number: formatShare(count, DATA.facts.single_device_peak_bytes)},
  ]));
  const atPeak = largest.map(([name, kind, count]) => row([name, kind, {number: bytes(count)}]));
  byId("memory").append(
    svg("svg", {class: "curve", viewBox: "0 0 900 220", role: "img", "aria-label": label},
      svg("use", {href: "#memory-curve", width: 900, height: 220})),
    el("div", {class: "halves"},
      el("div", {}, el("h3", {}, "By worker"),
        table(["worker", "arena", ["bytes", "number"], ["of one device", "number"]], byWorker)),
      el("div", {}, el("h3", {}, `Largest at the peak of worker ${fullest}`),
        table(["tensor", "as", ["bytes", "number"]], atPeak))));
}

function drawTime() {
  if (DATA.time === null) return leaveOut("time");
  const {title, width, height, shares, machine, source} = DATA.time;
  const byWorker = shares.map((parts, worker) =>
    row([`${worker}`, ...parts.map(part => ({number: formatShare(part, 1)}))]));
  byId("time").append(
    el("p", {}, `${title} on ${machine}; times of computations are ${source}`),
    svg("svg", {class: "curve", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title},
      svg("use", {href: "#lanes", width, height})),
    table(["worker", ["computing", "number"], ["moving", "number"], ["waiting", "number"]], byWorker));
}

function drawMethods() {
  const entries = [DATA.facts, ...DATA.methods].sort((a, b) => a.cost_bytes - b.cost_bytes);
  const least = entries[0].cost_bytes, most = Math.max(...entries.map(entry => entry.cost_bytes), 1);
  const limited = "fits" in DATA.facts;
  const titles = ["method", "bytes moved", "of the least", "by step", "peak of a worker", "searched in"];
  const rows = entries.map(entry => row([
    entry.method,
    {bar: [bytes(entry.cost_bytes), bar([entry.cost_bytes, most])]},
    least ? `${(entry.cost_bytes / least).toFixed(2)} ×` : "–",
    {small: entry.step_cost_bytes.map(formatBytes).join(", ")},
    [bytes(entry.peak_bytes_per_worker), limited && !entry.fits ? ", out of memory" : ""],
    entry.search_seconds === null ? "–" : `${entry.search_seconds.toFixed(2)} s`,
  ], entry === DATA.facts ? {class: "chosen"} : {}));
  byId("methods").append(el("div", {class: "scroll"}, table(titles, rows)));
  const left = Object.entries(DATA.left_out);
  if (left.length) {
    byId("methods").append(el("h3", {}, "Not compared"),
      el("ul", {}, left.map(([method, reason]) => el("li", {}, el("b", {}, method), `: ${reason}`))));
  }
}
