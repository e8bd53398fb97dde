"""LibTorch's own dispatch, without Python around each operator: ftax_libtorch.so. It needs no torch of this Python, except on a
machine that it was carried to without LibTorch."""

import ctypes
import time

from recording import Unsupported

UNSUPPORTED = "unsupported: "


class LibtorchTimer:
    """A timer of what it prepared last."""
    clock_mhz = 0

    def __init__(self, path, device, threads=1):
        try:
            self.library = ctypes.CDLL(path)
        except OSError:
            import torch  # noqa: F401  loads LibTorch's libraries
            self.library = ctypes.CDLL(path)
        self.clock = time.process_time if device == "cpu" and threads == 1 else time.monotonic
        for name in ("ftax_version", "ftax_open", "ftax_prepare", "ftax_sample"):
            getattr(self.library, name).restype = ctypes.c_char_p
        self._do("ftax_open", device.encode(), threads)

    def version(self):
        return self.library.ftax_version().decode()

    def _do(self, name, *arguments):
        problem = getattr(self.library, name)(*arguments)
        if problem:
            text = problem.decode().split("\n")[0]
            raise Unsupported(text.removeprefix(UNSUPPORTED)) if text.startswith(UNSUPPORTED) else RuntimeError("LibTorch: " + text)

    def prepare(self, text, precision, mode, bindings=None, weight_sets=1, is_network=False):
        names, values = list(bindings or {}), list((bindings or {}).values())
        self.mode = mode
        self._do("ftax_prepare", text.encode(), precision.encode(), mode.encode(), len(names),
                 (ctypes.c_char_p * len(names))(*(name.encode() for name in names)), (ctypes.c_int64 * len(names))(*values),
                 weight_sets, is_network)

    def run(self):
        self.sample(None, self.mode, 1)

    def synchronize(self):
        pass  # each sample ends synchronised

    def sample(self, run, mode, calls):
        if mode != self.mode:
            raise ValueError(f"LibTorch: prepared for {self.mode}, not {mode}")
        seconds = ctypes.c_double()
        self._do("ftax_sample", calls, ctypes.byref(seconds))
        return seconds.value
