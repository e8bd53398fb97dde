// Runs a program compiled for WASI (preview 1) once, with files that are in memory or that a person has dropped on the page.
// It reaches no network and no disk. A dropped file is read where it lies, a part at a time, which only a worker may do.

const FINE = 0, BAD_FILE = 8, EXISTS = 20, IS_FOLDER = 31, NO_FILE = 44, NO_SUCH_CALL = 52, NOT_A_FOLDER = 54;
const CHARACTERS = 2, FOLDER = 3, REGULAR = 4;  // kinds of files

class Exit extends Error {
  constructor(code) { super(`exit ${code}`); this.code = code; }
}

/// What has been written so far, in a block that doubles as it fills up.
class Memory {
  constructor(bytes = new Uint8Array(0)) { this.block = bytes; this.size = bytes.length; }
  read(at, count) { return this.block.subarray(Math.min(at, this.size), Math.min(at + count, this.size)); }
  write(at, bytes) {
    const end = at + bytes.length;
    if (end > this.block.length) {
      const larger = new Uint8Array(Math.max(end, 2 * this.block.length, 4096));
      larger.set(this.block.subarray(0, this.size));
      this.block = larger;
    }
    this.block.set(bytes, at);
    this.size = Math.max(this.size, end);
  }
  text() { return new TextDecoder().decode(this.read(0, this.size)); }
}

class Dropped {
  constructor(blob) { this.blob = blob; this.size = blob.size; }
  read(at, count) { return new Uint8Array(new FileReaderSync().readAsArrayBuffer(this.blob.slice(at, at + count))); }
  write() { throw Error('a dropped file is not written to'); }
}

/// Runs `module` with the command line `words`. `files` has a Blob or a Uint8Array for each name in the root folder, `input` is what
/// standard input reads. Answers with the exit code, what was printed, and `file(name)`: the text of a file, undefined where none is.
export async function run(module, words, files = {}, input = '') {
  const encode = text => new TextEncoder().encode(text);
  const root = new Map(Object.entries(files).map(([name, file]) => [name, file instanceof Uint8Array ? new Memory(file) : new Dropped(file)]));
  const streams = [new Memory(encode(input)), new Memory(), new Memory()];
  const open = new Map([...streams, {folder: true, size: 0}].map((file, number) => [number, {file, at: 0, kind: number < 3 ? CHARACTERS : FOLDER}]));
  let memory, next = 4;
  const view = () => new DataView(memory.buffer);
  const bytes = (at, count) => new Uint8Array(memory.buffer, at, count);
  const name = (at, count) => new TextDecoder().decode(bytes(at, count).slice()).split('/').filter(part => part && part !== '.').join('/');

  const strings = list => ({
    sizes(count, size) {
      view().setUint32(count, list.length, true);
      view().setUint32(size, list.reduce((sum, text) => sum + encode(text).length + 1, 0), true);
      return FINE;
    },
    get(pointers, at) {
      list.forEach((text, i) => {
        const coded = encode(text + '\0');
        view().setUint32(pointers + 4 * i, at, true);
        bytes(at, coded.length).set(coded);
        at += coded.length;
      });
      return FINE;
    },
  });
  const [argument, variable] = [strings(words), strings([])];

  // Calls `move(file, at, block)`, which says how many bytes it moved, for each of the blocks of a vector until one is moved in part.
  function transfer(number, vector, count, done, move, from) {
    const file = open.get(number);
    if (!file || file.kind === FOLDER) return file ? IS_FOLDER : BAD_FILE;
    let sum = 0;
    for (let i = 0; i < count; ++i) {
      const length = view().getUint32(vector + 8 * i + 4, true);
      const moved = move(file.file, (from ?? file.at) + sum, bytes(view().getUint32(vector + 8 * i, true), length));
      sum += moved;
      if (moved < length) break;
    }
    if (from === undefined) file.at += sum;
    view().setUint32(done, sum, true);
    return FINE;
  }
  const read = (file, at, block) => {
    const got = file.read(at, block.length);
    block.set(got);
    return got.length;
  };
  const write = (file, at, block) => { file.write(at, block); return block.length; };

  function describe(at, kind, size) {
    bytes(at, 64).fill(0);
    view().setUint8(at + 16, kind);
    view().setBigUint64(at + 24, 1n, true);
    view().setBigUint64(at + 32, BigInt(size), true);
    return FINE;
  }

  const calls = {
    args_sizes_get: argument.sizes, args_get: argument.get, environ_sizes_get: variable.sizes, environ_get: variable.get,
    clock_time_get(clock, _, at) {
      const now = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(at, BigInt(Math.round(now * 1e6)), true);
      return FINE;
    },
    clock_res_get(_, at) { view().setBigUint64(at, 1000n, true); return FINE; },
    random_get(at, count) { crypto.getRandomValues(bytes(at, count)); return FINE; },
    sched_yield: () => FINE,
    proc_exit(code) { throw new Exit(code); },
    fd_read: (number, vector, count, done) => transfer(number, vector, count, done, read),
    fd_pread: (number, vector, count, from, done) => transfer(number, vector, count, done, read, Number(from)),
    fd_write: (number, vector, count, done) => transfer(number, vector, count, done, write),
    fd_close: number => open.delete(number) ? FINE : BAD_FILE,
    fd_sync: () => FINE,
    fd_datasync: () => FINE,
    fd_fdstat_set_flags: () => FINE,
    fd_seek(number, offset, from, at) {
      const file = open.get(number);
      if (!file) return BAD_FILE;
      file.at = Number(offset) + [0, file.at, file.file.size][from];
      view().setBigUint64(at, BigInt(file.at), true);
      return FINE;
    },
    fd_fdstat_get(number, at) {
      if (!open.has(number)) return BAD_FILE;
      bytes(at, 24).fill(0xff, 8).fill(0, 0, 8);  // all rights
      view().setUint8(at, open.get(number).kind);
      return FINE;
    },
    fd_filestat_get(number, at) {
      const file = open.get(number);
      return file ? describe(at, file.kind, file.file.size) : BAD_FILE;
    },
    fd_prestat_get(number, at) {
      if (number !== 3) return BAD_FILE;
      view().setUint32(at, 0, true);
      view().setUint32(at + 4, 1, true);
      return FINE;
    },
    fd_prestat_dir_name(_, at) { bytes(at, 1)[0] = 47; return FINE; },  // "/"
    fd_readdir(_, at, size, cookie, used) {
      let end = 0;
      [...root.keys()].slice(Number(cookie)).every((file, i) => {
        const coded = encode(file), entry = new Uint8Array(24 + coded.length), header = new DataView(entry.buffer);
        header.setBigUint64(0, cookie + BigInt(i + 1), true);
        header.setUint32(16, coded.length, true);
        header.setUint8(20, REGULAR);
        entry.set(coded, 24);
        const part = entry.subarray(0, size - end);
        bytes(at + end, part.length).set(part);
        return (end += part.length) < size;
      });
      view().setUint32(used, end, true);
      return FINE;
    },
    path_filestat_get(_, flags, path, length, at) {
      const wanted = name(path, length);
      if (!wanted) return describe(at, FOLDER, 0);
      return root.has(wanted) ? describe(at, REGULAR, root.get(wanted).size) : NO_FILE;
    },
    path_open(_, flags, path, length, how, rights, inherited, modes, at) {
      const [create, folder, fresh, truncate] = [1, 2, 4, 8].map(bit => how & bit), wanted = name(path, length);
      if (wanted && folder) return root.has(wanted) ? NOT_A_FOLDER : NO_FILE;
      if (root.has(wanted) && fresh) return EXISTS;
      if (wanted && !root.has(wanted) && !create) return NO_FILE;
      if (wanted && (!root.has(wanted) || truncate)) root.set(wanted, new Memory());
      const file = wanted ? root.get(wanted) : {folder: true, size: 0};
      open.set(next, {file, at: modes & 1 ? file.size : 0, kind: wanted ? REGULAR : FOLDER});
      view().setUint32(at, next++, true);
      return FINE;
    },
    path_rename(_, from, length, folder, to, lengthTo) {
      const old = name(from, length);
      if (!root.has(old)) return NO_FILE;
      root.set(name(to, lengthTo), root.get(old));
      root.delete(old);
      return FINE;
    },
    path_unlink_file: (_, path, length) => root.delete(name(path, length)) ? FINE : NO_FILE,
  };
  const imports = Object.fromEntries(WebAssembly.Module.imports(module).map(({name}) => [name, calls[name] ?? (() => NO_SUCH_CALL)]));
  const instance = await WebAssembly.instantiate(module, {wasi_snapshot_preview1: imports});
  memory = instance.exports.memory;
  let code = 0;
  try {
    instance.exports._start();
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    code = error.code;
  }
  return {code, output: streams[1].text(), problems: streams[2].text(), file: name => root.get(name)?.text?.()};
}
