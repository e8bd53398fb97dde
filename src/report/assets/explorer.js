// Sliders over predictions: `data` holds them by card, by value of the dimension and by batch, in microseconds.
const slide = id => document.getElementById(id), at = id => Number(slide(id)?.value ?? 0);
const choices = [...document.querySelectorAll('#cards input')], picked = () => Math.max(0, choices.findIndex(choice => choice.checked));
const plot = document.querySelector('#explorer svg.plot'), edge = {left: 92, right: 600, top: 14, foot: 340};
const every = data.cards.flatMap(card => card.curves).flatMap(curve => [...curve.low, ...curve.high, ...curve.host, ...curve.device]);
const range = {y: [Math.max(1, Math.min(...every)), Math.max(...every)], x: [data.batches[0], data.batches.at(-1)]};
const place = (value, [low, high], from, to) => low === high ? (from + to) / 2 : from + (to - from) * Math.log(value / low) / Math.log(high / low);
const x = batch => place(batch, range.x, edge.left, edge.right), y = us => place(Math.max(us, range.y[0]), range.y, edge.foot, edge.top);
const time = us => us < 1e3 ? `${us} µs` : us < 1e6 ? `${Number((us / 1e3).toPrecision(3))} ms` : `${Number((us / 1e6).toPrecision(3))} s`;
const path = (values, batches = data.batches) => batches.map((batch, i) => `${i ? 'L' : 'M'}${x(batch).toFixed(1)} ${y(values[i]).toFixed(1)}`).join('');
const text = (at_x, at_y, anchor, words) => `<text class="label" x="${at_x}" y="${at_y}" text-anchor="${anchor}">${words}</text>`;

let grid = '', end = 0;
for (const batch of data.batches) {
  const middle = x(batch), half = 6 * String(batch).length + 4;
  if (middle - half < end) continue;
  end = middle + half;
  grid += `<path class="grid" d="M${middle} ${edge.top}V${edge.foot}"/>` + text(middle, edge.foot + 22, 'middle', batch);
}
for (let power = Math.ceil(Math.log10(range.y[0])); 10 ** power <= range.y[1]; ++power)
  grid += `<path class="grid" d="M${edge.left} ${y(10 ** power)}H${edge.right}"/>` + text(edge.left - 8, y(10 ** power) + 4, 'end', time(10 ** power));
grid += text((edge.left + edge.right) / 2, 388, 'middle', 'batch');

const draw = () => {
  const card = data.cards[picked()], curve = card.curves[at('dimension')], i = at('batch'), batch = data.batches[i];
  slide('batch-value').textContent = batch;
  const latencies = data.cards.map(({curves}) => curves[at('dimension')].latency[i]), longest = Math.max(...latencies);
  choices.forEach((choice, k) => {
    choice.parentElement.style.setProperty('--share', `${100 * latencies[k] / longest}%`);
    choice.parentElement.lastElementChild.textContent = time(latencies[k]);
  });
  if (data.dimension) slide('dimension-value').textContent = data.values[at('dimension')];
  const [megabytes, fits] = curve.memory[i], waits = Math.max(0, 1 - curve.device[i] / curve.latency[i]);
  const inside = curve.crossovers.filter(({batch}) => batch >= range.x[0] && batch <= range.x[1]);
  slide('answer').textContent = `${time(curve.latency[i])} (90 %: ${time(curve.low[i])} to ${time(curve.high[i])}), bound by ` +
    `${curve.bound[i]}; the device waits ${Math.round(100 * waits)} % of it; ${Number((batch / curve.latency[i] * 1e6).toPrecision(3))} items/s; ` +
    `${Number((megabytes / 1e3).toPrecision(3))} GB${fits ? '' : ', which do not fit'}. ` +
    (curve.crossovers.length ? curve.crossovers.map(({batch, above}) =>
      `The framework ${above ? 'becomes' : 'stops being'} the bottleneck at batch ${Number(batch.toPrecision(3))}.`).join(' ')
                     : `No crossover: ${curve.bound[0] === 'host' ? 'the framework' : 'the device'} is the bottleneck throughout.`);
  const back = [...data.batches].reverse();
  plot.innerHTML = grid +
    `<path class="band prediction" d="${path(curve.high)}${path([...curve.low].reverse(), back).replace('M', 'L')}Z"/>` +
    ['host', 'device', 'latency'].map(of => `<path class="line ${of === 'latency' ? 'prediction' : of}" d="${path(curve[of])}"/>`).join('') +
    inside.map(({batch}, i) => `<path class="mark"${i ? '' : ' id="mark"'} d="M${x(batch)} ${edge.top}V${edge.foot}"/>`).join('') +
    `<circle class="dot prediction" cx="${x(batch)}" cy="${y(curve.latency[i])}" r="6"/>`;
};
// What is chosen stands in the address, as #batch=8&seq=128&card=NVIDIA+L4, and is taken from there.
const fields = [['batch', data.batches, at, (id, i) => { slide(id).value = i; }], [data.dimension, data.values, () => at('dimension'), (_, i) => { slide('dimension').value = i; }],
  ['card', data.cards.map(({name}) => name), picked, (_, i) => { choices[i].checked = true; }]].filter(([name]) => name);
const read = () => {
  const state = new URLSearchParams(location.hash.slice(1));
  for (const [name, values, , put] of fields) put(name, Math.max(0, values.map(String).indexOf(state.get(name))));
  draw();
};
for (const input of document.querySelectorAll('#explorer input')) input.addEventListener('input', () => {
  draw();
  history.replaceState(null, '', '#' + new URLSearchParams(fields.map(([name, values, get]) => [name, values[get(name)]])));
});
addEventListener('hashchange', read);
read();
