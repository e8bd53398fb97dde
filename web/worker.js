// Runs ftax beside the page, one command at a time and each in an instance of its own, as a shell does: what one leaves behind, a full
// memory too, is gone with it.
import {run} from './wasi.js';

async function load() {
  const answer = await fetch('ftax.wasm.gz');
  if (!answer.ok) throw Error(`ftax.wasm.gz: ${answer.status}`);
  let program = await answer.arrayBuffer();
  const [first, second] = new Uint8Array(program);
  if (first === 0x1f && second === 0x8b)  // else the server has said what it is, and the browser has unpacked it
    program = await new Response(new Blob([program]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
  return WebAssembly.compile(program);
}
const loaded = load();
loaded.catch(error => postMessage({failed: error.message}));

let turn = Promise.resolve();
onmessage = ({data: {id, words, files, input}}) => {
  turn = turn.then(async () => {
    const program = await loaded, start = performance.now();
    let result;
    try {
      const {file, ...rest} = await run(program, ['ftax', ...words], Object.fromEntries(files.map(file => [file.name, file])), input);
      result = {...rest, page: file('page.html'), json: file('result.json')};
    } catch (error) {  // a trap: out of memory, most often
      result = {code: 1, problems: `ftax: ${error.message}\n`};
    }
    postMessage({...result, id, milliseconds: performance.now() - start});
  });
};
