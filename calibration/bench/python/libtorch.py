"""LibTorch's own dispatch, without Python around each operator: a library that calibration/campaign.sh builds
(calibration/bench/libtorch/build.sh)."""

import ctypes


class LibtorchTimer:
    """A timer of host_dispatch samples; what it times is the network prepared last."""
    clock_mhz = 0

    def __init__(self, path, device):
        import torch  # noqa: F401  its libraries must be loaded first
        self.library = ctypes.CDLL(path)
        for name in ("ftax_open", "ftax_prepare", "ftax_sample"):
            getattr(self.library, name).restype = ctypes.c_char_p
        self.device = device
        self.precision = None

    def _do(self, name, *arguments):
        problem = getattr(self.library, name)(*arguments)
        if problem:
            raise RuntimeError("LibTorch: " + problem.decode().split("\n")[0])

    def prepare(self, text, precision):
        if precision != self.precision:
            self._do("ftax_open", self.device.encode(), precision.encode())
            self.precision = precision
        self.text = text
        self.calls = None

    def run(self):
        pass  # warmed up by ftax_prepare

    def synchronize(self):
        pass

    def sample(self, run, mode, calls):
        if mode != "host_dispatch":
            raise ValueError(f"LibTorch: {mode}")
        if calls != self.calls:
            self._do("ftax_prepare", self.text.encode(), calls)
            self.calls = calls
        seconds = ctypes.c_double()
        self._do("ftax_sample", ctypes.byref(seconds))
        return seconds.value
