// The figures at the top, and the sums by step, phase and movement.

const PHASES = ["forward", "backward", "update"];
const MOVEMENTS = {copy: "make copies", fetch: "fetch inputs", concat: "collect outputs", reduce: "reduce outputs"};

function drawHeader() {
  const facts = DATA.facts;
  const within = facts.constraints ? ` within ${facts.constraints.join("; ")}` : "";
  const parts = facts.accumulate > 1 ? ` in ${formatCount(facts.accumulate)} micro-batches` : "";
  const stored = facts.dtype === "float32" ? "" : `, ${facts.dtype}`;
  byId("top").append(
    el("h1", {}, facts.model),
    el("p", {class: "quiet"},
      `batch ${formatCount(facts.batch)}${parts}${stored}: ${formatCount(facts.operators)} operators and ${formatCount(facts.tensors)} tensors `,
      `over ${facts.workers} ${facts.workers === 1 ? "worker" : "workers"}, ${DATA.in_steps ? `split ${DATA.factors.join(" × ") || "in no step"}` : "not in steps,"} `,
      `by the method ${facts.method}${within}`),
    el("dl", {class: "figures"},
      figure(`Moved in ${parts ? "the last micro-batch" : "one iteration"}`, bytes(facts.cost_bytes, {id: "cost"}), `${formatCount(facts.cost_bytes)} bytes`),
      figure("Proven least", bytes(facts.lower_bound_bytes, {id: "bound"}), nearness(facts)),
      figure("Peak memory of a worker", bytes(facts.peak_bytes_per_worker, {id: "peak"}), peakNote(facts)),
      figure("Weights and their state", bytes(facts.weight_state_bytes), "on all workers together")));
  const group = facts.workers / DATA.drawn_workers;
  byId("legend").append(
    group > 1 ? `group of ${group} workers ` : "worker ",
    ...DATA.colours.map((colour, worker) => el("span",
      {class: "swatch", role: "listitem", style: `background:${colour};color:${DATA.inks[worker]}`}, `${worker}`)));
}

function figure(title, number, note) {
  return el("div", {}, el("dt", {}, title),
    el("dd", {}, el("div", {class: "number"}, number), el("div", {class: "quiet small"}, note)));
}

function nearness({cost_bytes: cost, lower_bound_bytes: bound, space}) {
  const plans = `plans in steps that ${space}`;
  if (!bound) return `no bound above 0 is proven of ${plans}`;
  if (cost === bound) return `no plan moves less, of ${plans}`;
  return cost < 2 * bound ? `the plan moves ${(100 * (cost / bound - 1)).toFixed(2)}% more than this bound on ${plans}`
    : `of ${plans}: too far below the plan to judge it`;
}

function peakNote(facts) {
  const single = facts.single_device_peak_bytes;
  const device = "fits" in facts
    ? `; a device's ${formatBytes(facts.device_memory_bytes)} are ${facts.fits ? "enough" : "too little"}` : "";
  return ["of ", bytes(single), ` on one device: ${formatShare(facts.peak_bytes_per_worker, single)}${device}`];
}

function drawBytes() {
  const unproven = new Set(DATA.facts.unproven_steps.map(entry => entry.step));
  const steps = DATA.facts.step_cost_bytes.map((count, step) =>
    [!DATA.in_steps ? "the plan is not in steps"
      : `step ${step + 1}, ${DATA.factors[step]}-way${unproven.has(step) ? ", not proven the least" : ""}`, count]);
  const sums = {phase: {}, kind: {}};
  for (const {group, names} of OPERATORS) {
    for (const [kind, count] of group.moved) {
      sums.phase[group.phase] = (sums.phase[group.phase] || 0) + count * names.length;
      sums.kind[kind] = (sums.kind[kind] || 0) + count * names.length;
    }
  }
  const phases = PHASES.filter(phase => phase in sums.phase).map(phase => [phase, sums.phase[phase]]);
  const kinds = Object.entries(sums.kind).map(([kind, count]) => [MOVEMENTS[kind], count]);
  const levels = (DATA.facts.levels || []).map(level => [level.level, level.crossing_bytes]);
  byId("bytes").append(el("div", {class: "halves"},
    bars("by-step", "By step of the recursion", steps, unproven.has(null) ? "All steps together are not proven the least of their space." : null),
    bars("by-phase", "By phase", phases),
    bars("by-kind", "By movement", kinds),
    levels.length ? bars("by-level", `By level of ${DATA.facts.machine}`, levels) : null));
}

function bars(id, title, entries, note = null) {
  const most = Math.max(...entries.map(([, count]) => count), 1);
  return el("div", {id}, el("h3", {}, title), table([], entries.map(([name, count]) => row([
    {label: name},
    {bar: bar([count, most])},
    {number: bytes(count)},
    {"number quiet": formatShare(count, DATA.facts.cost_bytes)},
  ]))), note && el("p", {class: "quiet small"}, note));
}
