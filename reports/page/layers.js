// The model as a column of layers: a weight, the data that it meets, and what moves for either.

function drawLayers() {
  const section = byId("layers");
  if (!DATA.layers.length) {
    section.append(el("p", {}, "The model has no weight of two dimensions or more."));
    return;
  }
  const moved = DATA.layers.flatMap(block => block.layers.map(layer => layer.weight_bytes + layer.activation_bytes));
  const most = Math.max(...moved, 1);
  const drawn = table(["", "weight and its operator", "weight", "data", "split along", "bytes moved"], []);
  drawn.tBodies[0].remove();
  for (const block of DATA.layers) {
    const body = el("tbody", {class: block.times > 1 ? "block" : "block once"});
    block.layers.forEach((layer, number) => {
      const line = opening(layerRow(layer, most), () => openNamed("operator", layer.operation));
      const often = block.times > 1 ? `×${block.times}` : "";
      if (!number) line.prepend(el("td", {class: "times", rowspan: block.layers.length}, often));
      body.append(line);
    });
    drawn.append(body);
    walkable(body);
  }
  section.append(el("div", {class: "scroll"}, drawn));
}

function layerRow(layer, most) {
  const used = layer.uses > 1 ? `, used ${layer.uses} times` : "";
  const parts = layer.variables.map(([name, count]) => `${name}/${count}`);
  return row([
    [nameButton(layer.weight, 1), el("div", {class: "small quiet"}, layer.operator + used)],
    held(layer.weight),
    held(layer.data),
    [parts.join(" ") || "–", ...computedBy(layer)],
    {bar: [
      el("span", {class: "first"}, bytes(layer.weight_bytes)), " + ",
      el("span", {class: "second"}, bytes(layer.activation_bytes)),
      bar([layer.weight_bytes, most], [layer.activation_bytes, most, "second"]),
    ]},
  ]);
}

// Who computes a layer, if not all workers do.
function computedBy({workers}) {
  return workers.length < DATA.facts.workers
    ? [el("div", {class: "small quiet"}, `on ${workers.length > 1 ? "workers" : "worker"} ${workers.join(", ")}`)] : [];
}

// The parts of a tensor by worker, and its shape with the cuts.
function held(name) {
  const {layout} = tensorNamed(name);
  const cuts = formatCuts(layout);
  return [tiles(layout.picture[0], `${name}: ${cuts}, ${layout.picture[2]}`), el("span", {class: "small quiet"}, cuts)];
}
