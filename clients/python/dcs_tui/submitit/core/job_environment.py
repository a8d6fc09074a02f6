"""What a function sees of its job: submitit.core.job_environment."""
import os
import signal
import socket
import sys
import traceback
from typing import Any, List, Optional, Tuple

from .utils import DelayedSubmission, JobPaths


class JobEnvironment:
    """The job in which a function runs. It is one process on one host."""

    cluster = "dcs-tui"
    num_tasks = num_nodes = 1
    node = global_rank = local_rank = 0

    def __init__(self) -> None:
        if not self.activated():
            raise RuntimeError("this is not a job: only a function that was submitted has a JobEnvironment")

    @staticmethod
    def activated() -> bool:
        """Report whether this process is a job."""
        return os.environ.get("SUBMITIT_EXECUTOR") == "dcs-tui"

    @property
    def hostname(self) -> str:
        return socket.gethostname()

    @property
    def hostnames(self) -> List[str]:
        return [self.hostname]

    @property
    def job_id(self) -> str:
        return os.environ["SUBMITIT_JOB_ID"]

    @property
    def raw_job_id(self) -> str:
        """The number of the job in its run."""
        return os.environ["DCS_JOB_ID"]

    @property
    def array_job_id(self) -> Optional[str]:
        return self.job_id.partition("_")[0] if "_" in self.job_id else None

    @property
    def array_task_id(self) -> Optional[str]:
        return self.job_id.partition("_")[2] or None

    @property
    def paths(self) -> JobPaths:
        return JobPaths(os.environ["SUBMITIT_FOLDER"], self.job_id, 0)

    def __repr__(self) -> str:
        return "JobEnvironment(job_id=%s, hostname=%s, local_rank=0(1), node=0(1), global_rank=0(1))" % (
            self.job_id, self.hostname)


class _Again(BaseException):
    """Ends a call at its timeout. BaseException: the function does not catch it by mistake."""


def checkpoint_of(function: Any) -> Any:
    return getattr(function, "__submitit_checkpoint__", getattr(function, "checkpoint", None))


def run(call: DelayedSubmission, seconds: float, folder: str, job_id: str, merge: bool) -> Tuple[bool, Any]:
    """Run on a host: call a function. Return True and what continues it if its time has passed."""
    os.environ.update(SUBMITIT_EXECUTOR="dcs-tui", SUBMITIT_JOB_ID=job_id, SUBMITIT_FOLDER=folder)
    paths = JobPaths(folder, job_id, 0)
    paths.folder.mkdir(parents=True, exist_ok=True)
    for number, path in (1, paths.stdout), (2, paths.stdout if merge else paths.stderr):
        with open(path, "ab") as f:
            os.dup2(f.fileno(), number)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    checkpoint, left = checkpoint_of(call.function), []

    def stop(*_: Any) -> None:
        left.append(checkpoint(*call.args, **call.kwargs))
        raise _Again

    try:
        if seconds and checkpoint is not None:
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, seconds)
        value = call.function(*call.args, **call.kwargs)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return False, value
    except _Again:
        return True, left[0]
    except BaseException:
        traceback.print_exc()
        raise
