// What else an operator or tensor could do, cheapest first, and by how much the whole plan would change.

const ALTERNATIVES_AT_FIRST = 10;

function alternatives(number, neighbours) {
  if (number === null) {
    return [el("h3", {}, "Alternatives"), el("p", {}, `Not priced: ${DATA.unpriced}.`)];
  }
  const [choices, chosen, held, following, together, complete] = DATA.alternatives[number];
  const priced = DATA.choices[choices].map((choice, index) =>
    ({choice, held: held[index], following: following[index], last: Number(choice !== chosen)}));
  priced.sort((a, b) => a.following - b.following || a.held - b.held || a.last - b.last);
  const most = Math.max(...priced.map(entry => Math.max(entry.held, entry.following)), 1);
  const change = count => ({bar: [el("span", {"data-change": count}, formatChange(count)), bar([count, most])]});
  const line = ({choice, held, following}) => row(
    [choice.split(",").join(", ") + (choice === chosen ? " (this plan)" : ""), change(held), change(following)],
    choice === chosen ? {class: "chosen"} : {});
  const body = el("tbody");
  const draw = count => body.replaceChildren(
    ...priced.filter((entry, index) => index < count || entry.choice === chosen).map(line));
  const more = el("button", {class: "plain", type: "button", click: () => {
    draw(priced.length);
    more.hidden = true;
  }}, `Show all ${priced.length}`);
  more.hidden = priced.length <= ALTERNATIVES_AT_FIRST;
  draw(ALTERNATIVES_AT_FIRST);
  return [
    el("h3", {}, "Alternatives"),
    el("p", {class: "quiet small"}, "What the whole plan would move more or less with another choice per step, exactly",
      together > 1 ? `; ${together} names are one decision and change together` : "",
      complete ? "." : "; only choices near the plan's are priced."),
    table(["split", "all else held", `its ${neighbours} choosing again`], body, {id: "alternatives"}),
    more,
  ];
}
