"""What is in submitit.helpers."""
import concurrent.futures
import contextlib
import os
import random
import subprocess
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from .auto import Job
from .core.job_environment import JobEnvironment
from .core.utils import (CommandFunction, DelayedSubmission, FailedJobError, UncompletedJobError,
                         environment_variables)

__all__ = ["Checkpointable", "CommandFunction", "DelayedSubmission", "FailedJobError", "FunctionSequence",
           "RsyncSnapshot", "TorchDistributedEnvironment", "UncompletedJobError", "as_completed", "clean_env",
           "environment_variables", "monitor_jobs", "run_cmd"]


class Checkpointable:
    """A function object that continues in a new job when its timeout_min has passed."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if not callable(cls.__dict__.get("__call__", getattr(cls, "__call__", None))):
            raise AssertionError("Class %s is Checkpointable and has no method __call__" % cls.__name__)
        return super().__new__(cls)

    def checkpoint(self, *args: Any, **kwargs: Any) -> DelayedSubmission:
        return DelayedSubmission(self, *args, **kwargs)  # type: ignore[arg-type]


class FunctionSequence(Checkpointable):
    """Calls of functions, one after the other, in one job. A checkpoint keeps the results so far.

    >>> functions = FunctionSequence()
    >>> functions.add(pow, 2, 5)
    >>> functions.add(len, "ab")
    >>> functions()
    [32, 2]
    """

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.delayed_functions: List[DelayedSubmission] = []

    def add(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.delayed_functions.append(DelayedSubmission(func, *args, **kwargs))

    def __len__(self) -> int:
        return len(self.delayed_functions)

    def __iter__(self) -> Iterator[DelayedSubmission]:
        return iter(self.delayed_functions)

    def __call__(self) -> List[Any]:
        if self.verbose:
            print("Starting from %d/%d" % (sum(f.done() for f in self), len(self)), flush=True)
        return [f.result() for f in self]


def as_completed(jobs: Sequence[Job[Any]], timeout: Optional[float] = None,
                 poll_frequency: float = 10) -> Iterator[Job[Any]]:
    """Yield jobs as they are done."""
    owners = {job._call.final: job for job in jobs}
    for final in concurrent.futures.as_completed(owners, timeout):
        yield owners[final]


def monitor_jobs(jobs: Sequence[Job[Any]], poll_frequency: float = 30, test_mode: bool = False,
                 custom_logging: Optional[Callable[..., Any]] = None) -> None:
    """Print how many jobs are over, each poll_frequency seconds, until all are."""
    began = time.time()
    while True:
        states: Dict[str, Any] = {name: set() for name in ("RUNNING", "FAILED", "DONE")}
        for i, job in enumerate(jobs):
            states.setdefault(job.state, set()).add(i)
            if job.done():
                states["DONE"].add(i)
        if len(states["DONE"]) == len(jobs):
            return print("All jobs finished, jobs with indices %s failed" % sorted(states["FAILED"]), flush=True)
        if custom_logging is not None:
            custom_logging(began, len(jobs), states)
        else:
            print("%d of %d jobs are over, %d of them failed" % (len(states["DONE"]), len(jobs), len(states["FAILED"])),
                  flush=True)
        concurrent.futures.wait([job._call.final for job in jobs], timeout=poll_frequency)


def run_cmd(str_args: Any, **kwargs: Any) -> str:
    """Run a command, and return what it prints."""
    return str(subprocess.check_output(str_args, **kwargs).decode().strip())


@contextlib.contextmanager
def clean_env(extra_names: Sequence[str] = ()) -> Iterator[None]:
    """Hide the variables of this job, so that another can be started from it."""
    distributed = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    hidden = {name: value for name, value in os.environ.items()
              if name.startswith(("DCS_", "SUBMITIT_")) or name in (*distributed, *extra_names)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


class RsyncSnapshot:
    """Not available: dcs-tui sends the code of the project as it is when a job is submitted."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("dcs_tui.submitit has no RsyncSnapshot, because a job has the code of the project "
                                  "as it was in memory when it was submitted")


class TorchDistributedEnvironment:
    """The variables for torch.distributed: a job is the only process of its group."""

    def __init__(self) -> None:
        job = JobEnvironment()
        self.master_addr = job.hostname
        self.master_port = int(os.environ.get("MASTER_PORT") or random.Random(job.job_id).randint(20000, 60000))
        self.rank, self.world_size, self.local_rank, self.local_world_size = 0, 1, 0, 1

    def export(self, set_cuda_visible_devices: bool = True, overwrite: bool = False) -> "TorchDistributedEnvironment":
        """Set the variables. CUDA_VISIBLE_DEVICES stays as dcs-tui has set it."""
        values = {"MASTER_ADDR": self.master_addr, "MASTER_PORT": str(self.master_port), "RANK": "0",
                  "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        for name in values:
            if name in os.environ and not overwrite:
                raise RuntimeError("Cannot export environment variables as %s is already in environment" % name)
        os.environ.update(values)
        return self
