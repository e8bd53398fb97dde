// `ran` holds texts, and of each launch [host from, to, device from, to, operator, source, module, host cost, kernels,
// host, device, bound]: times in ns, texts by their places.
const bars = ran.launches.map(([h, hEnd, d, dEnd, operator, source, module, , , host, device]) => ({host: [h, hEnd], device: [d, dEnd], times: [host, device],
  name: ran.texts[source] || ran.texts[operator], module: ran.texts[module]}));
const timeline = document.querySelector('#timeline svg'), whole = Math.max(...bars.map(bar => Math.max(bar.host[1], bar.device[1])));
const spell = ns => ns < 1e6 ? `${+(ns / 1e3).toPrecision(3)} µs` : `${+(ns / 1e6).toPrecision(3)} ms`;
const body = document.getElementById('launches').tBodies[0];
for (const launch of ran.launches.slice(body.rows.length)) launch.slice(4).forEach((value, i) => {
  const row = i ? body.lastElementChild : body.insertRow(), cell = row.insertCell(), isText = i < 4 || i === 7;
  cell.textContent = isText ? ran.texts[value] : i === 4 ? value : spell(value);
  if (isText) cell.className = `text${cell.textContent.length > 40 ? ' long' : ''}`;
  else cell.dataset.v = i === 4 ? value : value / 1e9;
});
let from = 0, to = whole;
function draw() {
  const width = timeline.clientWidth, x = time => (time - from) / (to - from) * width;
  const part = (name, attributes, text = '') => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.textContent = text;
    return made;
  };
  const parts = [0, .25, .5, .75, 1].map(at => part('text', {x: at * width, y: 12, class: 'label', 'text-anchor': at ? at === 1 ? 'end' : 'middle' : 'start'},
    spell(from + at * (to - from))));
  for (const row of ['host', 'device']) {
    let drawn = -1;  // what is narrower than half a pixel stands for its neighbours too
    for (const {name, module, [row]: [first, last]} of bars) {
      const [begin, end] = [Math.max(first, from), Math.min(last, to)];
      if (end <= begin || x(end) < drawn + .5) continue;
      drawn = x(end);
      const bar = part('rect', {x: x(begin), y: row === 'host' ? 20 : 52, width: Math.max(.5, x(end) - x(begin)), height: 26, class: row});
      bar.append(part('title', {}, `${name}, ${module}: ${row} ${spell(last - first)}`));
      parts.push(bar);
      if (x(end) - x(begin) > 7 * name.length) parts.push(part('text', {x: x(begin) + 3, y: row === 'host' ? 37 : 69, class: 'name'}, name));
    }
  }
  timeline.replaceChildren(...parts);
}
function show(begin, end) {
  const length = Math.min(Math.max(end - begin, whole / 1e5), whole);
  from = Math.min(Math.max(begin, 0), whole - length);
  to = from + length;
  draw();
}
const zoom = (factor, at = .5) => show(from + at * (to - from) * (1 - factor), from + at * (to - from) * (1 - factor) + factor * (to - from));
const move = share => show(from + share * (to - from), to + share * (to - from));
const ways = {'+': () => zoom(.5), '-': () => zoom(2), '0': () => show(0, whole), ArrowLeft: () => move(-.2), ArrowRight: () => move(.2)};
timeline.addEventListener('keydown', event => { if (ways[event.key]) { event.preventDefault(); ways[event.key](); } });
for (const button of document.querySelectorAll('#timeline button')) button.addEventListener('click', ways[button.value]);
timeline.addEventListener('wheel', event => {
  if (!event.ctrlKey) return;  // a page must scroll
  event.preventDefault();
  zoom(event.deltaY < 0 ? .8 : 1.25, event.offsetX / timeline.clientWidth);
}, {passive: false});
timeline.addEventListener('pointermove', event => { if (event.buttons) move(-event.movementX / timeline.clientWidth); });
addEventListener('resize', draw);
draw();

// Modules as a tree: the bar behind each is its share of the time, the redder the longer; a click shows when its launches ran and lists them.
const root = {times: [0, 0], parts: {}, begin: 0, end: whole};
for (const {host, device, times, module} of bars) {
  let node = root;
  for (const name of [null, ...module.split('.').filter(Boolean)]) {
    if (name !== null) node = node.parts[name] ??= {times: [0, 0], parts: {}, begin: host[0], end: 0};
    times.forEach((time, side) => { node.times[side] += time; });
    node.end = Math.max(node.end, host[1], device[1]);
  }
}
function branch(name, node, path = '') {
  const children = Object.entries(node.parts), made = document.createElement(children.length ? 'details' : 'div');
  const line = document.createElement(children.length ? 'summary' : 'span'), [host, device] = node.times;
  line.textContent = `${name}  host ${spell(host)}, device ${spell(device)}`;
  const share = Math.max(...node.times) / Math.max(...root.times);
  line.style.setProperty('--share', `${100 * share}%`);
  line.style.setProperty('--heat', `rgb(215 60 30 / ${.15 + .35 * Math.sqrt(share)})`);
  line.tabIndex = 0;
  line.addEventListener('keydown', event => { if (event.key === 'Enter' && !children.length) line.click(); });
  line.addEventListener('click', () => {
    show(node.begin, node.end);
    document.getElementById('launches').closest('details').open = true;
    document.getElementById('launches').filter?.(path);
  });
  made.append(line, ...children.map(([key, child]) => branch(key, child, path ? `${path}.${key}` : key)));
  return made;
}
document.getElementById('tree').append(Object.assign(branch('model', root), {open: true}));
