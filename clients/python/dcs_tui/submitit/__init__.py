"""The interface of submitit on the hosts of a dcs-tui run.

    from dcs_tui import submitit

    executor = submitit.AutoExecutor(folder="log_test", flags=["--hosts", "hosts.toml"])
    executor.update_parameters(timeout_min=1, cpus_per_task=2)
    job = executor.submit(pow, 5, 7)
    print(job.result())
"""
from typing import Any

from . import helpers
from .auto import AutoExecutor, Job
from .core.job_environment import JobEnvironment

__all__ = ["AutoExecutor", "Job", "JobEnvironment", "helpers"]


def __getattr__(name: str) -> Any:
    if name in ("Executor", "DebugExecutor", "LocalExecutor", "SlurmExecutor", "DebugJob", "LocalJob", "SlurmJob"):
        raise NotImplementedError("dcs_tui.submitit has no %s: jobs run on the hosts of a run; use AutoExecutor and Job"
                                  % name)
    raise AttributeError("module %s has no attribute %s" % (__name__, name))
