"""Optuna looks for the encoder with most parameters that answers within a latency."""

import argparse

import ftax
import optuna


def parameters(width, depth, heads, ffn):
    return depth * (4 * 64 * heads * width + 2 * width * ffn) + 30522 * width


def search(device, limit_s, trials, seed=0):
    cost = ftax.nas.CostFunction("transformer", device, host="reference", batches=1)

    def objective(trial):
        width = trial.suggest_int("width", 64, 1024, step=64)
        depth = trial.suggest_int("depth", 1, 24)
        heads = trial.suggest_int("heads", 1, 16)
        ffn = trial.suggest_int("ffn", 256, 4096, step=256)
        latency_s = cost([f"{width}-{depth}-{heads}-{ffn}"])[0, 0]
        trial.set_user_attr("latency_s", float(latency_s))
        trial.set_user_attr("over", float(latency_s - limit_s))  # above zero: not allowed
        return parameters(width, depth, heads, ffn)

    sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=lambda trial: (trial.user_attrs["over"],))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=trials)
    return max((t for t in study.trials if t.user_attrs["over"] <= 0), key=lambda t: t.value)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="t4")
    parser.add_argument("--limit-ms", type=float, default=8)
    parser.add_argument("--trials", type=int, default=200)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    best = search(arguments.device, arguments.limit_ms * 1e-3, arguments.trials)
    print(f"{best.value / 1e6:.1f} M parameters in {best.user_attrs['latency_s'] * 1e3:.2f} ms: {best.params}")


if __name__ == "__main__":
    main()
