"""Which kernels PyTorch's products run on this GPU, and for how long: product_kernels.py OUT [PRECISION...] (fp32 without TF32 by default).
mm: both operands as they lie; nt: a linear layer without bias; tn, tt: transposed left operands; addmm: a linear layer with bias."""
import csv, sys
import torch
import tracing
torch.set_grad_enabled(False)
out, precisions = sys.argv[1], sys.argv[2:] or ["fp32"]
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
SIZES = [128, 512, 1024, 2048, 4096, 8192]
shapes = [(op, 1, m, n, k) for op in ("mm", "nt", "addmm") for m in (1, 16, 64, 128, 256, 512, 1024, 2048, 4096) for n in SIZES[1:] for k in SIZES
          if m * n * k <= 2**36 and (op != "nt" or (n * k) % 3 or m in (64, 512, 2048))]
shapes += [(op, 1, m, n, k) for op in ("mm", "tn", "tt") for m, n, k in
           ((16, 16, 2**20), (256, 256, 131072), (1024, 1024, 65536), (32768, 32768, 32), (16384, 1024, 16), (8205, 5921, 2949), (2048, 4096, 8192), (4096, 4096, 4096))]
shapes += [("bmm", b, m, n, k) for b in (12, 128) for m in (64, 128, 512) for n in (64, 128, 512) for k in (64, 256, 1024)]
REPEATS, GROUP = 3, 60
mark = torch.zeros(1, device="cuda")

def prepared(op, b, m, n, k):
    x = {"bmm": lambda: new(b, m, k), "tn": lambda: new(k, m).t(), "tt": lambda: new(k, m).t()}.get(op, lambda: new(m, k))()
    y = {"bmm": lambda: new(b, k, n), "nt": lambda: new(n, k).t(), "addmm": lambda: new(n, k).t(), "tt": lambda: new(n, k).t()}.get(op, lambda: new(k, n))()
    bias = new(n)
    run = (lambda: torch.addmm(bias, x, y)) if op == "addmm" else (lambda: torch.matmul(x, y))
    run()
    return run

with open(out, "a", newline="") as f:
    w = csv.writer(f, lineterminator="\n")
    if f.tell() == 0: w.writerow(["precision", "op", "batch", "m", "n", "k", "index", "kernel", "grid", "block", "registers", "shared_bytes", "us"])
    for precision in precisions:
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        new = lambda *s: torch.randn(*s, device="cuda", dtype=DTYPES[precision])
        for first in range(0, len(shapes), GROUP):
            group = [(shape, prepared(*shape)) for shape in shapes[first:first + GROUP]]
            def all_of_them():
                for _, run in group:
                    mark.fill_(1)  # a kernel between one product's and the next one's
                    for _ in range(REPEATS): run()
            found = []
            for kernel in tracing.trace(all_of_them, torch.cuda.synchronize)["kernels"]:
                if "FillFunctor" in kernel["name"] and kernel["grid"] == [1, 1, 1]: found.append([])
                elif found: found[-1].append(kernel)
            for (shape, _), kernels in zip(group, found):
                per = len(kernels) // REPEATS
                for at in range(per):
                    same = kernels[at::per][:REPEATS]
                    w.writerow([precision, *shape, at, same[0]["name"][:200], "x".join(map(str, same[0]["grid"])), "x".join(map(str, same[0]["block"])),
                                same[0]["registers"], same[0]["shared_bytes"], f"{min(s['duration_us'] for s in same):.2f}"])
            f.flush()
