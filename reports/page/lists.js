// All operators and all tensors.

function drawOperators() {
  const most = Math.max(...OPERATORS.map(entry => entry.bytes), 1);
  searchable(byId("operators"), {
    label: "operators",
    rows: OPERATORS,
    about: entry => entry.kind.name,
    sortedBy: 4,
    open: entry => openNamed("operator", entry.shown),
    columns: [
      {title: "operator", cell: named, key: entry => entry.names[0]},
      {title: "computes", cell: entry => entry.kind.name, key: entry => entry.kind.name},
      {title: "phase", cell: entry => entry.group.phase, key: entry => entry.first},
      {title: "split along", cell: splitAlong, key: splitAlong},
      movedColumn(most),
      {title: "share", number: true, cell: share, key: entry => entry.bytes},
    ],
  });
}

function drawTensors() {
  const most = Math.max(...TENSORS.map(entry => entry.bytes), 1);
  searchable(byId("tensors"), {
    label: "tensors",
    rows: TENSORS,
    about: entry => entry.group.role,
    sortedBy: 4,
    open: entry => openNamed("tensor", entry.shown),
    columns: [
      {title: "parts", cell: entry => tiles(entry.layout.picture[0], `${entry.names[0]}: ${entry.layout.picture[2]}`)},
      {title: "tensor", cell: named, key: entry => entry.names[0]},
      {title: "role", cell: entry => entry.group.role, key: entry => entry.group.role},
      {title: "shape and cuts", class: "cuts", number: true,
        cell: entry => formatCuts(entry.layout), key: entry => product(entry.layout.shape)},
      movedColumn(most),
    ],
  });
}

function splitAlong(entry) {
  return entry.split.words;
}

function share(entry) {
  return formatShare(entry.bytes, DATA.facts.cost_bytes);
}

function movedColumn(most) {
  return {title: "bytes moved", class: "bar", number: true, key: entry => entry.bytes,
    cell: entry => [bytes(entry.bytes), bar([entry.bytes, most])]};
}

// The first name that matches the search stands for the others.
function named(entry, wanted) {
  entry.shown = entry.names.find(name => name.toLowerCase().includes(wanted)) || entry.names[0];
  return nameButton(entry.shown, entry.names.length);
}
