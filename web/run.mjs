// run.mjs PROGRAM WORDS...: runs a program of the web build with the files of this machine, as the build needs it.
import fs from 'node:fs';
import {WASI} from 'node:wasi';

const wasi = new WASI({version: 'preview1', args: process.argv.slice(2), env: process.env, preopens: {'/': '/'}});
const program = await WebAssembly.compile(fs.readFileSync(process.argv[2]));
process.exitCode = wasi.start(await WebAssembly.instantiate(program, wasi.getImportObject()));
