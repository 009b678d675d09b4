// From the tables of the data to rows that know what they refer to; then everything is drawn.

const OPERATOR_GROUPS = DATA.operator_groups.map(([split, phase, alternatives, moved]) =>
  ({split, phase, alternatives, moved, bytes: sum(moved.map(([, count]) => count))}));
const TENSOR_GROUPS = DATA.tensor_groups.map(([layout, role, dtype, alternatives, bytes]) => ({layout, role, dtype, alternatives, bytes}));

const OPERATORS = OPERATOR_GROUPS.map(group => ({group, names: [], split: DATA.splits[group.split], kind: DATA.kinds[DATA.splits[group.split].kind]}));
const OPERATOR_OF = new Map();
DATA.operators.forEach(([name, group, tensors], index) => {
  const row = OPERATORS[group];
  if (!row.names.length) row.first = index;
  row.names.push(name);
  OPERATOR_OF.set(name, {row, tensors});
});
OPERATORS.forEach(row => { row.bytes = row.group.bytes * row.names.length; });

const TENSORS = TENSOR_GROUPS.map(group => ({group, names: [], layout: DATA.layouts[group.layout]}));
const TENSOR_OF = new Map();
DATA.tensors.forEach(([name, group]) => {
  TENSORS[group].names.push(name);
  TENSOR_OF.set(name, TENSORS[group]);
});
TENSORS.forEach(row => { row.bytes = row.group.bytes * row.names.length; });

function operatorNamed(name) {
  return OPERATOR_OF.get(name);
}

function tensorNamed(name) {
  return TENSOR_OF.get(name);
}

function openFromAddress() {
  const [what, name] = decodeURIComponent(location.hash.slice(1)).split(/=(.*)/s);
  if (name && (what === "operator" || what === "tensor")) openNamed(what, name);
}

drawHeader();
drawLayers();
drawBytes();
drawOperators();
drawTensors();
drawMemory();
drawMethods();
openFromAddress();
window.addEventListener("hashchange", openFromAddress);
