// Everything is drawn once; then an address may name what to open.

function openFromAddress() {
  const [what, name] = decodeURIComponent(location.hash.slice(1)).split(/=(.*)/s);
  if (name && (what === "operator" || what === "tensor")) openNamed(what, name);
}

drawHeader();
drawLayers();
drawBytes();
drawOperators();
drawTensors();
drawCopies();
drawOrder();
drawMemory();
drawTime();
drawMethods();
openFromAddress();
window.addEventListener("hashchange", openFromAddress);
