// From the tables of the data to what a name stands for. Names that share all else share one entry.

const OPERATORS = DATA.operator_groups.map(([split, phase, alternatives, moved]) => ({
  group: {phase, alternatives, moved, bytes: sum(moved.map(([, count]) => count))},
  split: DATA.splits[split],
  kind: DATA.kinds[DATA.splits[split].kind],
  names: [],
}));
const OPERATOR_OF = new Map();
DATA.operators.forEach(([name, group, tensors], index) => {
  const entry = OPERATORS[group];
  if (!entry.names.length) entry.first = index;
  entry.names.push(name);
  OPERATOR_OF.set(name, {entry, tensors});
});

const TENSORS = DATA.tensor_groups.map(([layout, role, dtype, alternatives, bytes]) => ({
  group: {role, dtype, alternatives, bytes},
  layout: DATA.layouts[layout],
  names: [],
}));
const TENSOR_OF = new Map();
DATA.tensors.forEach(([name, group]) => {
  TENSORS[group].names.push(name);
  TENSOR_OF.set(name, TENSORS[group]);
});

for (const entry of [...OPERATORS, ...TENSORS]) entry.bytes = entry.group.bytes * entry.names.length;

function operatorNamed(name) {
  return OPERATOR_OF.get(name);
}

function tensorNamed(name) {
  return TENSOR_OF.get(name);
}
