#!/usr/bin/python3
"""Lets Optuna choose the parameters of a run: dcs-tui grid --ask examples/optuna/optimizer.py ...

Needs Optuna: apt-get install --no-install-recommends python3-optuna. docs/reference/protocol.md has the protocol.
"""

import json
import sys
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.WARNING)
study, space, trials = None, {}, {}  # Optuna's trials by our numbers


def start(m):
    global study
    for p in m["space"]:
        if "values" in p:
            space[p["name"]] = CategoricalDistribution(p["values"])
        else:
            space[p["name"]] = FloatDistribution(p["low"], p["high"], log=p.get("log", False))
    # The seed differs after a resume, so that no random trial comes again.
    sampler = optuna.samplers.TPESampler(seed=m.get("seed", 1) + m.get("known", 0), constant_liar=True)
    study = optuna.create_study(direction="minimize" if m["minimize"] else "maximize", sampler=sampler)


def tell(m):
    number, state = m["trial"], m["state"]
    if number in trials:
        if state == "done":
            study.tell(trials[number], m["value"])
        elif state == "failed":
            study.tell(trials[number], state=TrialState.FAIL)
    elif state == "done":  # of an earlier process
        study.add_trial(create_trial(params=m["params"], distributions=space, value=m["value"]))
    elif state == "open":
        study.enqueue_trial(m["params"])
        trials[number] = study.ask(space)


for line in sys.stdin:
    m = json.loads(line)
    if m["do"] == "start":
        start(m)
    elif m["do"] == "tell":
        tell(m)
    elif m["do"] == "ask":
        trials[m["trial"]] = study.ask(space)
        print(json.dumps({"params": trials[m["trial"]].params}), flush=True)
    elif m["do"] == "stop":
        break
