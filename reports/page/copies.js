// Copies with their readers, and the order of the plan. A plan without them has no such sections.

const ORDER_AT_FIRST = 30;
const PLACE_OF = new Map((DATA.order || []).map((operator, place) => [DATA.operators[operator][0], place + 1]));

function drawCopies() {
  if (!DATA.copies.length) return leaveOut("copies");
  byId("copies").append(el("div", {class: "scroll"}, copiesTable(DATA.copies)));
}

function drawOrder() {
  if (DATA.order === null) return leaveOut("order");
  const line = (operator, place) =>
    row([{number: formatCount(place + 1)}, linkTo("operator", DATA.operators[operator][0]), {number: formatCount(operator + 1)}]);
  const body = el("tbody", {}, DATA.order.slice(0, ORDER_AT_FIRST).map(line));
  const more = el("button", {class: "plain", type: "button", click: () => {
    body.replaceChildren(...DATA.order.map(line));
    more.hidden = true;
  }}, `Show all ${formatCount(DATA.order.length)}`);
  more.hidden = DATA.order.length <= ORDER_AT_FIRST;
  byId("order").append(
    el("div", {class: "scroll"}, table([["place", "number"], "operator", ["in the graph", "number"]], body)), more);
}

function leaveOut(section) {
  byId(section).remove();
  document.querySelector(`nav a[href="#${section}"]`).remove();
}

function placeOf(name) {
  return PLACE_OF.has(name) ? `; number ${formatCount(PLACE_OF.get(name))} in the order of the plan` : "";
}

function copiesOf(wanted) {
  const found = DATA.copies.filter(wanted);
  return found.length ? [el("h3", {}, "Copies"), copiesTable(found)] : [];
}

function copiesTable(copies) {
  const titles = ["parts", "tensor", ["version", "number"], "made from", "held", "made for", "kept until", ["readers", "number"]];
  return table(titles, copies.map(({tensor, version, source, layout, readers}) => {
    const name = DATA.tensors[tensor][0], {picture, words} = DATA.layouts[layout];
    const reader = operator => linkTo("operator", DATA.operators[operator][0]);
    return row([
      tiles(picture[0], `${name}, version ${version}: ${picture[2]}`),
      linkTo("tensor", name),
      {number: `${version}`},
      source ? `version ${source}` : "home",
      words,
      reader(readers[0]),
      reader(readers[readers.length - 1]),
      {number: formatCount(readers.length)},
    ]);
  }));
}
