"""Clock, what slows it down and other processes of the first GPU, from the driver's own library: no Python package is needed."""

import ctypes
import sys

_SM = 1  # NVML_CLOCK_SM
_SUCCESS, _INSUFFICIENT_SIZE = 0, 7

# Bits of nvmlClocksEventReasons of nvml.h. NVML's power is a mean over a second, longer than a case takes: the first of
# these says whether it was the limit. Rows under the others say nothing about the card.
_SLOWDOWNS = ((0x4, "power cap"), (0x60, "thermal"), (0x88, "hardware"))
FAULTS = ("thermal", "hardware")


class Nvml:
    """Each value is "" where the driver does not tell it."""

    def __init__(self, device, library="libnvidia-ml.so.1"):
        self.library, self.handle, self.usual_processes = None, ctypes.c_void_p(), ""
        if device == "cpu":
            return
        try:
            self.library = ctypes.CDLL(library)
            self._do("nvmlInit_v2")
            self._do("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(0), ctypes.byref(self.handle))
        except (OSError, AttributeError, RuntimeError) as error:
            self.library = None
            print(f"warning: no clocks or power: {error}", file=sys.stderr)
        self.usual_processes = self.read("processes")

    def _do(self, name, *arguments, accepted=(_SUCCESS,)):
        code = getattr(self.library, name)(*arguments)
        if code not in accepted:
            raise RuntimeError(f"{name} returned {code}")

    def disturbed(self):
        """Whether somebody came to the GPU since this process began; the campaign's own processes were there."""
        now = self.read("processes")
        return now != "" and self.usual_processes != "" and now > self.usual_processes

    def read(self, what):
        if not self.library:
            return ""
        number, bits, text = ctypes.c_uint(0), ctypes.c_ulonglong(0), ctypes.create_string_buffer(96)
        found, buffer = ctypes.byref(number), (text, ctypes.c_uint(len(text)))
        name, *arguments = {
            "clock_mhz": ("nvmlDeviceGetClockInfo", self.handle, ctypes.c_int(_SM), found),
            "largest_clock_mhz": ("nvmlDeviceGetMaxClockInfo", self.handle, ctypes.c_int(_SM), found),
            "slowdown": ("nvmlDeviceGetCurrentClocksThrottleReasons", self.handle, ctypes.byref(bits)),
            "driver": ("nvmlSystemGetDriverVersion", *buffer),
            "name": ("nvmlDeviceGetName", self.handle, *buffer),
            "mig": ("nvmlDeviceGetMigMode", self.handle, found, ctypes.byref(ctypes.c_uint(0))),
            # Asked for none of them, it answers how many there are. Their numbers are those of another container.
            "processes": ("nvmlDeviceGetComputeRunningProcesses_v3", self.handle, found, None)}[what]
        try:
            self._do(name, *arguments, accepted=(_SUCCESS, _INSUFFICIENT_SIZE) if what == "processes" else (_SUCCESS,))
        except (AttributeError, RuntimeError):
            return ""
        if what == "slowdown":
            return " and ".join(name for bit, name in _SLOWDOWNS if bits.value & bit)
        return text.value.decode() if what in ("driver", "name") else number.value
