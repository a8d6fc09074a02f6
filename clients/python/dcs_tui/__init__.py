"""Run shell commands and Python functions on the hosts of a dcs-tui run.

    from dcs_tui import Executor, as_completed

    with Executor("--hosts", "hosts.toml") as executor:
        futures = [executor.submit("./sim --seed %d" % seed) for seed in range(100)]
        for future in as_completed(futures):
            print(future.result().output)
        print(list(executor.map(pow, range(10), range(10))))

docs/clients.md of dcs-tui explains it. If the process of dcs-tui is killed, the run is resumed,
and every job still has one result.
"""
from ._executor import Executor, Future, Job, as_completed, find_program
from ._notebook import Table, progress
from ._results import JobError, RemoteError, RemoteTraceback, Result, StoppedError

__all__ = ["Executor", "Future", "Job", "JobError", "RemoteError", "RemoteTraceback", "Result", "StoppedError",
           "Table", "as_completed", "find_program", "progress"]
