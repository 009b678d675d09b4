// A table that is searched, sorted, shown a part at a time, and walked with the arrow keys.

const SHOWN_AT_FIRST = 30;

// `columns` are {title, cell(row), key(row), number}. The search looks at the `names` of a row and at `about(row)`.
// `open(row)` shows one.
function searchable(section, {label, columns, rows, about, sortedBy, open}) {
  let order = sortedBy, descending = true, wanted = "", shown = SHOWN_AT_FIRST;
  const found = el("span", {role: "status", class: "quiet"});
  const input = el("input", {type: "search", placeholder: `Search ${label}`, "aria-label": `Search ${label}`,
    input: () => { wanted = input.value.trim().toLowerCase(); shown = SHOWN_AT_FIRST; draw(); }});
  const heads = columns.map((column, number) => column.key
    ? el("th", {scope: "col", class: column.class || (column.number ? "number" : "")},
        el("button", {class: "sort", type: "button", click: () => sortBy(number)}, column.title))
    : el("th", {scope: "col"}, column.title));
  const body = el("tbody");
  const more = el("button", {class: "plain", type: "button", click: () => { shown *= 4; draw(); }});
  section.append(
    el("div", {class: "find"}, input, found),
    el("div", {class: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, heads)), body)),
    more);
  walkable(body);

  function sortBy(number) {
    descending = number === order ? !descending : Boolean(columns[number].number);
    order = number;
    draw();
  }

  function draw() {
    const matching = wanted ? rows.filter(row => [...row.names, about(row)].some(text => text.toLowerCase().includes(wanted))) : [...rows];
    const key = columns[order].key;
    matching.sort((a, b) => compare(key(a), key(b)) * (descending ? -1 : 1));
    heads.forEach((head, number) => {
      if (number === order) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren(...matching.slice(0, shown).map(row => opening(el("tr", {},
      columns.map(column => el("td", {class: column.class || (column.number ? "number" : "")}, column.cell(row, wanted)))), () => open(row))));
    const count = sum(matching.map(row => row.names.length));
    found.textContent = wanted ? `${formatCount(matching.length)} of ${formatCount(rows.length)} kinds match`
      : `${formatCount(count)} ${label} of ${formatCount(rows.length)} kinds`;
    more.hidden = matching.length <= shown;
    more.textContent = `Show more of ${formatCount(matching.length)}`;
  }
  draw();
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// A row that opens something wherever it is clicked; its button does the same for the keyboard.
function opening(row, open) {
  row.classList.add("opens");
  row.addEventListener("click", open);
  return row;
}

function nameButton(name, count) {
  return [el("button", {class: "name", type: "button", "aria-haspopup": "dialog"}, name), times(count)];
}

// Up, Down, Home and End move between the buttons of a table's rows.
function walkable(body) {
  body.addEventListener("keydown", event => {
    const buttons = [...body.closest("table").querySelectorAll("tbody button.name")];
    const at = buttons.indexOf(document.activeElement);
    const next = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1}[event.key];
    if (at < 0 || next === undefined || !buttons[next]) return;
    event.preventDefault();
    buttons[next].focus();
  });
}
