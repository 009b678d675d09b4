// Making elements, and figures as people read them. Names and texts only ever become text nodes.

const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return element;
}

function byId(name) {
  return document.getElementById(name);
}

// A table of rows under titles; a title of [text, "number"] stands over figures.
function table(titles, rows, attributes = {}) {
  const heads = titles.map(title => {
    const [text, kind] = [title].flat();
    return el("th", {scope: "col", class: kind}, text);
  });
  const thead = titles.length ? el("thead", {}, el("tr", {}, heads)) : null;
  return el("table", attributes, thead, rows instanceof Element ? rows : el("tbody", {}, rows));
}

// A row of cells; a cell of {class: content} has that class.
function row(cells, attributes = {}) {
  return el("tr", attributes, cells.map(cell => {
    const plain = cell === null || typeof cell !== "object" || cell instanceof Node || Array.isArray(cell);
    const [kind, content] = plain ? [null, cell] : Object.entries(cell)[0];
    return el("td", {class: kind}, content);
  }));
}

function formatBytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(count) >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${unit ? count.toFixed(2) : count} ${units[unit]}`;
}

function formatChange(count) {
  return count === 0 ? "±0" : (count < 0 ? "−" : "+") + formatBytes(Math.abs(count));
}

function formatCount(count) {
  return count.toLocaleString("en");
}

function formatShare(part, whole) {
  return whole ? `${(100 * part / whole).toFixed(1)}%` : "–";
}

// A choice in words; one that is a list has an entry for each step.
function chosen({choice, words}, splits) {
  const steps = Array.isArray(choice);
  return [steps ? `${splits} ` : "in the form ", el("b", {}, words), steps ? ", one per step" : ""];
}

// 640 x 320 with two cuts of the first dimension: 640/2 × 320.
function formatCuts({shape, cuts}) {
  return shape.map((extent, axis) => cuts[axis] > 1 ? `${extent}/${cuts[axis]}` : `${extent}`).join(" × ")
    || "one number";
}

// Exact on the element, rounded on the page.
function bytes(count, attributes = {}) {
  return el("span", {"data-bytes": count, title: `${formatCount(count)} bytes`, ...attributes}, formatBytes(count));
}

function bar(...parts) {
  const fills = parts.map(([part, whole, kind]) => el("div", {
    class: `fill ${kind || ""} ${part > 0 ? "" : "none"}`,
    style: `width:${100 * Math.max(part, 0) / whole}%`,
  }));
  return el("div", {class: "track", "aria-hidden": "true"}, fills);
}

function tiles(drawing, label, scale = 1) {
  const shown = {width: 96 * scale, height: 64 * scale, viewBox: "0 0 96 64", role: "img", "aria-label": label};
  return svg("svg", {class: "tiles", ...shown}, svg("use", {href: `#d${drawing}`, width: 96, height: 64}));
}

function times(count) {
  return count > 1 ? el("span", {class: "times-badge", title: `${count} alike`}, `×${count}`) : null;
}

function product(values) {
  return values.reduce((total, value) => total * value, 1);
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
