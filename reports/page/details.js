// One operator or tensor: what it is, what every worker reads and holds, what moves, and what else there is.

function openNamed(what, name) {
  const opener = document.activeElement;
  const dialog = byId("details");
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
  const found = operatorNamed(name);
  if (!found) return null;
  const {group, split, kind, names} = found.entry;
  const regions = split.tensors.map(([verb, label, ...picture]) => [`${verb} ${label}`, picture]);
  const moved = found.tensors.map((tensor, number) =>
    [linkTo("tensor", DATA.tensors[tensor][0]), ...group.moved[number]]);
  const work = kind.flops === null ? "" : `; ${formatCount(kind.flops)} floating-point operations`;
  return [
    el("h2", {id: "details-title"}, name, times(names.length)),
    el("p", {class: "quiet"}, `${kind.name}, ${group.phase}; `, chosen(split, "split along"), "; moves ",
      bytes(group.bytes), work, placeOf(name)),
    el("h3", {}, "Description"), el("pre", {tabindex: "0"}, kind.text),
    el("h3", {}, "Strategies"), strategies(kind, split),
    el("h3", {}, "What each worker reads and makes"), pictures(regions, 1.7), regionTable(regions),
    ...copiesOf(copy => copy.readers.some(reader => DATA.operators[reader][0] === name)),
    el("h3", {}, "What moves"), movedTable(moved),
    ...alternatives(group.alternatives, "tensors"),
    ...alike(names, name, "operator"),
  ];
}

function tensorDetails(name) {
  const entry = tensorNamed(name);
  if (!entry) return null;
  const {layout, group, names} = entry;
  const regions = [["holds", layout.picture]];
  return [
    el("h2", {id: "details-title"}, name, times(names.length)),
    el("p", {class: "quiet"}, `${group.role} of ${group.dtype}, ${formatCuts(layout)}; `,
      chosen(layout, "split on dimensions"), "; ", bytes(group.bytes), " move for it",
      layout.terms > 1 ? `; held as ${layout.terms} partial results` : "",
      layout.via === null ? "" : `; partial results are reduced as ${layout.via}`),
    el("h3", {}, "What each worker holds"), pictures(regions, 2.5), regionTable(regions),
    ...copiesOf(copy => DATA.tensors[copy.tensor][0] === name),
    el("h3", {}, "What moves"), movedTable(touching(name)),
    ...alternatives(group.alternatives, "operators"),
    ...alike(names, name, "tensor"),
  ];
}

// The operators that read or make a tensor, with what they move for it, most first.
function touching(name) {
  const found = [];
  for (const [operator, group, tensors] of DATA.operators) {
    tensors.forEach((tensor, number) => {
      if (DATA.tensors[tensor][0] !== name) return;
      found.push([linkTo("operator", operator), ...OPERATORS[group].group.moved[number]]);
    });
  }
  return found.sort((a, b) => b[2] - a[2]);
}

function linkTo(what, name) {
  return el("button", {class: "name", type: "button", click: () => openNamed(what, name)}, name);
}

function strategies(kind, split) {
  const ways = {
    concat: () => "concatenate the outputs",
    reduce: reducer => `reduce the outputs by ${reducer}`,
    no: reason => `not split: ${reason}`,
  };
  return table(["variable", "extent", "how", "chosen"], kind.variables.map(([name, extent, [how, detail]]) => {
    const parts = split.chosen[name] || "";
    return row([name, formatCount(extent), ways[how](detail), parts], parts ? {class: "chosen"} : {});
  }));
}

function pictures(entries, scale) {
  const beyond = halo => Object.entries(halo).map(([axis, width]) => `${width} along ${axis}`).join(", ");
  return el("div", {class: "pictures"}, entries.map(([title, [drawing, , caption, halo]]) => el("figure", {},
    el("figcaption", {}, title), tiles(drawing, `${title}: ${caption}`, scale),
    el("div", {class: "small quiet"}, caption, halo ? el("div", {}, `halo: ${beyond(halo)}`) : null))));
}

function regionTable(entries) {
  const lists = entries.map(([, picture]) => DATA.regions[picture[1]]);
  const rows = DATA.colours.map((_, worker) => row([`${worker}`, ...lists.map(list => ({small: list[worker]}))]));
  const title = DATA.drawn_workers < DATA.facts.workers ? "Regions by group of workers" : "Regions by worker";
  return el("details", {}, el("summary", {}, title),
    el("div", {class: "scroll"}, table(["worker", ...entries.map(([name]) => name)], rows)));
}

function movedTable(moved) {
  const most = Math.max(...moved.map(([, , count]) => count), 1);
  return table([], moved.map(([link, kind, count]) =>
    row([link, {quiet: kind}, {bar: bar([count, most])}, {number: bytes(count)}])));
}

function alike(names, name, what) {
  if (names.length < 2) return [];
  const others = names.filter(other => other !== name).map(other => el("li", {}, linkTo(what, other)));
  return [el("details", {}, el("summary", {}, `${others.length} more alike`), el("ul", {}, others))];
}
