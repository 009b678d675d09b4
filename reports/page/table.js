// A table that is searched, sorted, shown a part at a time, and walked with the arrow keys.

const SHOWN_AT_FIRST = 30;

// `columns` are {title, cell(row), key(row), number}. The search looks at the `names` of a row and at `about(row)`;
// `open(row)` shows one.
function searchable(section, {label, columns, rows, about, sortedBy, open}) {
  let order = sortedBy, descending = true, wanted = "", shown = SHOWN_AT_FIRST;
  const kind = column => column.class || (column.number ? "number" : null);
  const found = el("span", {role: "status", class: "quiet"});
  const asked = `Search ${label}`;
  const input = el("input", {type: "search", placeholder: asked, "aria-label": asked, input: search});
  const heads = columns.map((column, number) => el("th", {scope: "col", class: kind(column)}, column.key
    ? el("button", {class: "sort", type: "button", click: () => sortBy(number)}, column.title) : column.title));
  const body = el("tbody");
  const more = el("button", {class: "plain", type: "button", click: showMore});
  const drawn = el("table", {}, el("thead", {}, el("tr", {}, heads)), body);
  section.append(el("div", {class: "find"}, input, found), el("div", {class: "scroll"}, drawn), more);
  walkable(body);
  draw();

  function search() {
    wanted = input.value.trim().toLowerCase();
    shown = SHOWN_AT_FIRST;
    draw();
  }

  function sortBy(number) {
    descending = number === order ? !descending : Boolean(columns[number].number);
    order = number;
    draw();
  }

  function showMore() {
    shown *= 4;
    draw();
  }

  function draw() {
    const matches = text => text.toLowerCase().includes(wanted);
    const matching = rows.filter(entry => [...entry.names, about(entry)].some(matches));
    const key = columns[order].key;
    matching.sort((a, b) => compare(key(a), key(b)) * (descending ? -1 : 1));
    heads.forEach(head => head.removeAttribute("aria-sort"));
    heads[order].setAttribute("aria-sort", descending ? "descending" : "ascending");
    body.replaceChildren(...matching.slice(0, shown).map(entry => {
      const cells = columns.map(column => el("td", {class: kind(column)}, column.cell(entry, wanted)));
      return opening(el("tr", {}, cells), () => open(entry));
    }));
    const kinds = formatCount(rows.length);
    found.textContent = wanted ? `${formatCount(matching.length)} of ${kinds} kinds match`
      : `${formatCount(sum(rows.map(entry => entry.names.length)))} ${label} of ${kinds} kinds`;
    more.hidden = matching.length <= shown;
    more.textContent = `Show more of ${formatCount(matching.length)}`;
  }
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// A row that opens something wherever it is clicked; its button does the same for the keyboard.
function opening(line, open) {
  line.classList.add("opens");
  line.addEventListener("click", open);
  return line;
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
