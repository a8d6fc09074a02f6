"""Prints the median regret of Optuna's samplers over 20 seeds: 100 trials, 8 at a time."""

import math
import statistics

import optuna

TRIALS, SLOTS, SEEDS = 100, 8, 20
ALPHA = [1, 1.2, 3, 3.2]
A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
     [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]


def branin(trial):
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    a = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return a * a + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann6(trial):
    x = [trial.suggest_float("x%d" % d, 0, 1) for d in range(6)]
    return -sum(w * math.exp(-sum(a[d] * (x[d] - 1e-4 * p[d]) ** 2 for d in range(6)))
                for w, a, p in zip(ALPHA, A, P))


def where(f, name, ok):
    """Returns f, of which trials fail where ok is false."""
    def g(trial):
        value = f(trial)
        return value if ok(list(trial.params.values())) else None
    g.__name__ = name
    return g


def cliff(trial):
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return 1 - x + (y - 0.7) ** 2


def tell(study, trial, value):
    """Tells a trial. Optuna counts a pruned trial without a value as the worst, and ignores a failed one."""
    if value is None:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    else:
        study.tell(trial, value)


def regret(f, least, sampler):
    """Returns the regret, and how many of the trials after the first 20 failed."""
    study = optuna.create_study(sampler=sampler)
    pending = []  # a trial and its value, which nobody knows yet
    failed = 0
    for i in range(TRIALS):
        if len(pending) == SLOTS:
            tell(study, *pending.pop(0))
        trial = study.ask()
        value = f(trial)
        failed += value is None and i >= 20
        pending.append((trial, value))
    for trial, value in pending:
        tell(study, trial, value)
    return study.best_value - least, failed


optuna.logging.set_verbosity(optuna.logging.ERROR)
import warnings  # noqa: E402

warnings.simplefilter("ignore")
SAMPLERS = {
    "random": lambda s: optuna.samplers.RandomSampler(seed=s),
    "default": lambda s: optuna.samplers.TPESampler(seed=s),
    "liar": lambda s: optuna.samplers.TPESampler(seed=s, constant_liar=True),
    "multivariate": lambda s: optuna.samplers.TPESampler(seed=s, multivariate=True, constant_liar=True),
}
DISK = where(branin, "branin_disk", lambda x: (x[0] - 2.5) ** 2 + (x[1] - 7.5) ** 2 <= 50)
BALL = where(hartmann6, "hartmann6_ball", lambda x: sum(v * v for v in x) <= 1)
CLIFF = where(cliff, "cliff", lambda x: x[0] <= 0.5)
for f, least in (branin, 0.397887), (hartmann6, -3.32237), (DISK, 0.397887), (BALL, -3.32237), (CLIFF, 0.5):
    for name, make in SAMPLERS.items():
        all = [regret(f, least, make(s)) for s in range(SEEDS)]
        print(f.__name__, name, "%.4g" % statistics.median(r for r, _ in all), "%g" % statistics.median(n for _, n in all), flush=True)
