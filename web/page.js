const form = document.getElementById('choice'), worker = new Worker('worker.js', {type: 'module'}), waiting = new Map();
const show = (id, text) => { const part = document.getElementById(id); part.textContent = text; part.hidden = !text; };
let files = [], last = 0;

// Runs a command line; the tests call it too.
function ftax(words, input) {
  return new Promise(done => { waiting.set(++last, done); worker.postMessage({id: last, words, files, input}); });
}
worker.onmessage = ({data}) => {
  if (data.failed) return show('state', `ftax does not start: ${data.failed}`);
  waiting.get(data.id)(data);
  waiting.delete(data.id);
};

const chosen = name => [...form.querySelectorAll(`#${name} :checked`)].map(box => box.value);
const quoted = word => /^[\w./:=,@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

function command() {
  const words = form.other.value.match(/\S+/g) ?? [], lists = ['device', 'framework', 'precision'].map(name => [name, chosen(name)]);
  const several = lists.some(([, values]) => values.length > 1) || words.some(word => /^--(tp|price|slo|sort|top)\b/.test(word));
  const all = [form.verb.value === 'predict' && several ? 'compare' : form.verb.value, form.model.value];
  for (const [name, values] of lists) if (values.length) all.push(`--${name}`, values.join(','));
  if (form.batch.value && form.verb.value !== 'crossover') all.push('--batch', form.batch.value);
  for (const size of form.dim.value.match(/[^\s,]+/g) ?? []) all.push('--dim', size);
  return [...all, ...words];
}

let newest = 0;
async function predict() {
  const words = command(), turn = ++newest;
  for (const output of form.querySelectorAll('output')) output.textContent = chosen(output.htmlFor).join(', ') || 'as the command would';
  document.getElementById('command').textContent = ['ftax', ...words].map(quoted).join(' ');
  history.replaceState(null, '', '#' + new URLSearchParams([...new FormData(form)].filter(([, value]) => typeof value === 'string' && value)));
  const result = await ftax([...words, '--html', 'page.html', '--json', 'result.json']);
  if (turn !== newest) return;  // the form has changed since
  show('state', `${result.code ? 'No answer' : 'Predicted here'} in ${result.milliseconds.toFixed(0)} ms`);
  show('error', result.code ? result.problems : '');
  document.getElementById('page').srcdoc = result.page ?? '';
}

let pause;
form.addEventListener('input', event => {
  if (event.target.type === 'file') return;
  clearTimeout(pause);
  pause = setTimeout(predict, event.target.tagName === 'INPUT' && event.target.type !== 'checkbox' ? 250 : 0);
});
form.addEventListener('submit', event => event.preventDefault());

function take(list) {
  files = [...list];
  const model = files.find(file => /\.(onnx|pt2|json|txt)$/i.test(file.name)) ?? files[0];
  if (!model) return;
  form.model.value = model.name;
  predict();
}
document.getElementById('file').addEventListener('change', event => take(event.target.files));
for (const [event, on] of [['dragover', true], ['dragleave', false], ['drop', false]]) document.addEventListener(event, happened => {
  happened.preventDefault();
  document.body.classList.toggle('drop', on);
  if (event === 'drop') take(happened.dataTransfer.files);
});

addEventListener('hashchange', () => location.reload());  // another choice has been put into the address

// The lists are what the program says it takes; what the address says is chosen.
ftax(['mcp'], '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n').then(({output}) => {
  const given = new URLSearchParams(location.hash.slice(1)), tools = JSON.parse(output).result.tools;
  const known = name => tools.find(tool => tool.name === 'predict').inputSchema.properties[name].examples;
  for (const value of known('model')) document.getElementById('models').append(Object.assign(document.createElement('option'), {value}));
  for (const [name, usual] of [['device', 'l4'], ['framework', 'pytorch-eager'], ['precision', 'fp16']]) {
    const wanted = given.has(name) ? given.getAll(name) : [usual];
    for (const value of known(name)) {
      const line = document.createElement('label'), box = document.createElement('input');
      Object.assign(box, {type: 'checkbox', name, value, checked: wanted.includes(value)});
      line.append(box, ' ', value);
      document.getElementById(name).append(line);
    }
  }
  for (const name of ['model', 'verb', 'batch', 'dim', 'other']) if (given.has(name)) form[name].value = given.get(name);
  predict();
});
