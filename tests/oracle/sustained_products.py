"""Runs large products for a second each and writes TFLOP/s, clock and power over time, of random data and of zeros: sustained_products.py OUT"""
import sys, time, csv
import torch
import pynvml
pynvml.nvmlInit(); h = pynvml.nvmlDeviceGetHandleByIndex(0)
torch.set_grad_enabled(False)
w = csv.writer(open(sys.argv[1], "w"), lineterminator="\n")
w.writerow(["what", "precision", "data", "m", "n", "k", "since_s", "tflops", "sm_mhz", "power_w"])
def loop(what, precision, data, m, n, k, run, flops, seconds):
    run(); torch.cuda.synchronize(); begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        e = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        e[0].record()
        reps = max(1, int(0.2 * 5e14 / flops))
        for _ in range(reps): run()
        e[1].record()
        time.sleep(0.1)
        mhz, watt = pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM), pynvml.nvmlDeviceGetPowerUsage(h) / 1e3
        torch.cuda.synchronize()
        w.writerow([what, precision, data, m, n, k, f"{time.perf_counter() - begin:.2f}", f"{flops * reps / e[0].elapsed_time(e[1]) / 1e9:.1f}", mhz, f"{watt:.0f}"])
for precision, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16), ("tf32", torch.float32), ("fp32", torch.float32)):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    for data, make in (("randn", torch.randn), ("uniform", lambda *s, **o: torch.rand(*s, **o) * 2 - 1), ("sparse", lambda *s, **o: torch.randn(*s, **o).relu_()), ("zeros", torch.zeros)):
        if precision not in ("bf16",) and data in ("uniform", "sparse"): continue
        if precision == "fp32" and data == "zeros": continue
        for m, n, k in (((8192, 8192, 8192),) if data != "randn" else ((8192, 8192, 8192), (4096, 4096, 4096), (16384, 4096, 4096), (2048, 8192, 2048))):
            a, b = make(m, k, device="cuda").to(dtype), make(k, n, device="cuda").to(dtype)
            loop("matmul", precision, data, m, n, k, lambda: torch.mm(a, b), 2 * m * n * k, 1.4 if (m, precision) == (8192, "bf16") else 0.6)
            time.sleep(0.1)
q = torch.randn(4, 32, 8192, 128, device="cuda", dtype=torch.bfloat16)
for causal in (False, True):
    loop("attention" + ("_causal" if causal else ""), "bf16", "randn", 8192, 128, 8192, lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=causal), 4 * 4 * 32 * 8192 * 8192 * 128 / (2 if causal else 1), 0.8)
