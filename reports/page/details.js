// One operator or tensor: what it is, what every worker reads and holds, what moves, and what else there is.

const ALTERNATIVES_AT_FIRST = 10;

function openNamed(what, name) {
  const opener = document.activeElement;
  const dialog = document.getElementById("details");
  const contents = what === "operator" ? operatorDetails(name) : tensorDetails(name);
  if (!contents) return;
  dialog.replaceChildren(
    el("button", {class: "plain close", type: "button", click: () => dialog.close()}, "Close"), ...contents);
  if (!dialog.open) {
    dialog.showModal();
    dialog.addEventListener("close", () => {
      history.replaceState(null, "", location.pathname + location.search);
      if (opener && opener.focus) opener.focus();
    }, {once: true});
  }
  dialog.scrollTop = 0;
  history.replaceState(null, "", `#${what}=${encodeURIComponent(name)}`);
}

function operatorDetails(name) {
  const entry = operatorNamed(name);
  if (!entry) return null;
  const {group, split, kind, names} = entry.row;
  return [
    el("h2", {id: "details-title"}, name, times(names.length)),
    el("p", {class: "quiet"}, `${kind.name}, ${group.phase}; split along `, el("b", {}, formatChoice(split.choice)), ", one per step; moves ", bytes(group.bytes),
      kind.flops === null ? "" : `; ${formatCount(kind.flops)} floating-point operations`),
    el("h3", {}, "Description"), el("pre", {tabindex: "0"}, kind.text),
    el("h3", {}, "Strategies"), strategies(kind, split),
    el("h3", {}, "What each worker reads and makes"), pictures(split.tensors.map(([verb, label, ...picture]) => [`${verb} ${label}`, picture])),
    regionTable(split.tensors.map(([verb, label, ...picture]) => [`${verb} ${label}`, picture])),
    el("h3", {}, "What moves"), movedTable(entry.tensors.map((tensor, number) =>
      [linkTo("tensor", DATA.tensors[tensor][0]), group.moved[number][0], group.moved[number][1]])),
    ...alternatives(group.alternatives, "tensors"),
    ...alike(names, name, "operator"),
  ];
}

function tensorDetails(name) {
  const row = tensorNamed(name);
  if (!row) return null;
  const {layout, group, names} = row;
  const touching = [];
  for (const [operator, groupNumber, tensors] of DATA.operators) {
    tensors.forEach((tensor, number) => {
      if (DATA.tensors[tensor][0] === name) {
        const [kind, count] = OPERATOR_GROUPS[groupNumber].moved[number];
        touching.push([linkTo("operator", operator), kind, count]);
      }
    });
  }
  return [
    el("h2", {id: "details-title"}, name, times(names.length)),
    el("p", {class: "quiet"}, `${group.role} of ${group.dtype}, ${formatCuts(layout.shape, layout.choice)}; split on dimensions `,
      el("b", {}, formatChoice(layout.choice)), ", one per step; ", bytes(group.bytes), " move for it"),
    el("h3", {}, "What each worker holds"), pictures([["holds", layout.picture]], 2.5), regionTable([["holds", layout.picture]]),
    el("h3", {}, "What moves"), movedTable(touching.sort((a, b) => b[2] - a[2])),
    ...alternatives(group.alternatives, "operators"),
    ...alike(names, name, "tensor"),
  ];
}

function linkTo(what, name) {
  return el("button", {class: "name", type: "button", click: () => openNamed(what, name)}, name);
}

function strategies(kind, split) {
  return el("table", {}, el("thead", {}, el("tr", {}, ["variable", "extent", "how", "chosen"].map(title => el("th", {scope: "col"}, title)))),
    el("tbody", {}, kind.variables.map(([name, extent, [how, detail]]) => {
      const steps = split.choice.flatMap((variable, step) => variable === name ? [step + 1] : []);
      return el("tr", steps.length ? {class: "chosen"} : {}, el("td", {}, name), el("td", {}, formatCount(extent)),
        el("td", {}, how === "concat" ? "concatenate the outputs" : how === "reduce" ? `reduce the outputs by ${detail}` : `not split: ${detail}`),
        el("td", {}, steps.length ? `step ${steps.join(", ")}` : ""));
    })));
}

function pictures(entries, scale = 1.7) {
  return el("div", {class: "pictures"}, entries.map(([title, [drawing, , caption, halo]]) => el("figure", {},
    el("figcaption", {}, title), tiles(drawing, `${title}: ${caption}`, scale),
    el("div", {class: "small quiet"}, caption,
      halo ? el("div", {}, "halo: ", Object.entries(halo).map(([axis, width]) => `${width} along ${axis}`).join(", ")) : null))));
}

function regionTable(entries) {
  const lists = entries.map(([, picture]) => DATA.regions[picture[1]]);
  return el("details", {}, el("summary", {}, DATA.drawn_workers < DATA.facts.workers ? "Regions by group of workers" : "Regions by worker"),
    el("div", {class: "scroll"}, el("table", {},
      el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "worker"), entries.map(([title]) => el("th", {scope: "col"}, title)))),
      el("tbody", {}, DATA.colours.map((_, worker) => el("tr", {}, el("td", {}, `${worker}`), lists.map(list => el("td", {class: "small"}, list[worker]))))))));
}

function movedTable(rows) {
  const most = Math.max(...rows.map(([, , count]) => count), 1);
  return el("table", {}, el("tbody", {}, rows.map(([link, kind, count]) => el("tr", {},
    el("td", {}, link), el("td", {class: "quiet"}, kind), el("td", {class: "bar"}, bar([count, most])), el("td", {class: "number"}, bytes(count))))));
}

function alternatives(number, neighbours) {
  if (number === null) {
    return [el("h3", {}, "Alternatives"), el("p", {}, "The page prices alternatives for up to 64 workers; ", el("code", {}, "tofu explain"), " prices those of one name.")];
  }
  const [choices, chosen, held, following, together, complete] = DATA.alternatives[number];
  const rows = DATA.choices[choices].map((choice, index) => ({choice, held: held[index], following: following[index]}));
  rows.sort((a, b) => a.following - b.following || a.held - b.held || compare(b.choice === chosen, a.choice === chosen));
  const most = Math.max(...rows.map(row => Math.max(row.held, row.following)), 1);
  const body = el("tbody");
  const draw = count => body.replaceChildren(...rows.filter((row, index) => index < count || row.choice === chosen).map(row =>
    el("tr", row.choice === chosen ? {class: "chosen"} : {},
      el("td", {}, row.choice.split(",").join(", "), row.choice === chosen ? " (this plan)" : ""),
      el("td", {class: "bar"}, el("span", {"data-change": row.held}, formatChange(row.held)), bar([Math.max(row.held, 0), most])),
      el("td", {class: "bar"}, el("span", {"data-change": row.following}, formatChange(row.following)), bar([Math.max(row.following, 0), most])))));
  const more = el("button", {class: "plain", type: "button", click: () => { draw(rows.length); more.hidden = true; }}, `Show all ${rows.length}`);
  more.hidden = rows.length <= ALTERNATIVES_AT_FIRST;
  draw(ALTERNATIVES_AT_FIRST);
  return [
    el("h3", {}, "Alternatives"),
    el("p", {class: "quiet small"}, "What the whole plan would move more or less with another choice per step, exactly",
      together > 1 ? `; ${together} names are one decision and change together` : "", complete ? "." : "; only choices near the plan's are priced."),
    el("table", {id: "alternatives"}, el("thead", {}, el("tr", {},
      ["split", "all else held", `its ${neighbours} choosing again`].map(title => el("th", {scope: "col"}, title)))), body), more];
}

function alike(names, name, what) {
  if (names.length < 2) return [];
  return [el("details", {}, el("summary", {}, `${names.length - 1} more alike`),
    el("ul", {}, names.filter(other => other !== name).map(other => el("li", {}, linkTo(what, other)))))];
}
