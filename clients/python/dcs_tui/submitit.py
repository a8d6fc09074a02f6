"""The interface of submitit on the hosts of a dcs-tui run.

    from dcs_tui import submitit

    executor = submitit.AutoExecutor(folder="log_test", flags=["--hosts", "hosts.toml"])
    executor.update_parameters(timeout_min=1, cpus_per_task=2)
    job = executor.submit(pow, 5, 7)
    print(job.result())
"""
import concurrent.futures
import contextlib
import os
import signal
import time
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence

from . import _executor
from ._results import RemoteTraceback

_OPTIONS: Dict[str, Callable[[Any], Dict[str, Any]]] = {
    "name": lambda v: {"name": str(v)}, "timeout_min": lambda v: {"timeout": "%ds" % (60 * v + 60)},
    "cpus_per_task": lambda v: {"slots": int(v)}, "mem_gb": lambda v: {"mem": "%dM" % (1024 * v)},
    "gpus_per_node": lambda v: {"gpus": int(v)},
}
_ONE = ("nodes", "tasks_per_node")  # a job is one process on one host
_IGNORED = ("slurm_", "local_", "debug_", "stderr_to_stdout")


class UncompletedJobError(RuntimeError):
    """The job ended without a result."""


class FailedJobError(UncompletedJobError):
    """The function raised an exception, whose traceback is the text."""


class DelayedSubmission:
    """A call for later: what checkpoint returns is submitted again."""

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs


class Checkpointable:
    """A function object that continues in a new job when its timeout_min has passed."""

    def checkpoint(self, *args: Any, **kwargs: Any) -> DelayedSubmission:
        return DelayedSubmission(self, *args, **kwargs)  # type: ignore[arg-type]


class _Again(BaseException):
    """Ends a call at its timeout. BaseException: the function does not catch it by mistake."""


def _call(function: Any, args: Any, kwargs: Any, seconds: float) -> Any:
    """Run on a host: call a function, or return what continues it when its time has passed."""
    left: List[Any] = []

    def stop(*_: Any) -> None:
        left.append(function.checkpoint(*args, **kwargs))
        raise _Again

    try:
        if seconds and hasattr(function, "checkpoint"):
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, seconds)
        value = function(*args, **kwargs)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return False, value
    except _Again:
        return True, left[0]


class Job:
    """A call that was submitted."""

    def __init__(self, executor: "AutoExecutor", call: DelayedSubmission) -> None:
        self._owner, self._left = executor, executor.max_num_timeout
        self._final: "concurrent.futures.Future[Any]" = concurrent.futures.Future()
        self._start(call)
        self.job_id = self._future.key

    def _start(self, call: DelayedSubmission) -> None:
        job = _executor.Job(_call, **{"name": getattr(call.function, "__name__", type(call.function).__name__),
                                      **self._owner._options})
        self._future = self._owner._pool().submit(job, call.function, call.args, call.kwargs, self._owner._seconds)
        self._future.add_done_callback(self._end)

    def _end(self, future: "concurrent.futures.Future[Any]") -> None:
        error: UncompletedJobError
        try:
            again, value = future.result()
            if not again:
                return self._final.set_result(value)
            if self._left > 0:
                self._left -= 1
                return self._start(value)
            error = UncompletedJobError("Job timed out more than %d times (max_num_timeout)"
                                        % self._owner.max_num_timeout)
        except concurrent.futures.CancelledError:
            error = UncompletedJobError("Job was canceled")
        except BaseException as e:
            if isinstance(e.__cause__, RemoteTraceback):
                error = FailedJobError("Job failed during processing with trace:\n%s" % e.__cause__.args[0])
            else:
                error = UncompletedJobError(str(e))
        self._final.set_exception(error)

    def done(self, force_check: bool = False) -> bool:
        return self._final.done()

    def wait(self) -> None:
        concurrent.futures.wait([self._final])

    def exception(self) -> Optional[BaseException]:
        return self._final.exception()

    def result(self) -> Any:
        return self._final.result()

    def results(self) -> List[Any]:
        return [self.result()]

    def cancel(self, check: bool = True) -> None:
        self._left = 0
        self._future.cancel()

    @property
    def state(self) -> str:
        if not self.done():
            return "RUNNING"
        return "FINISHED" if self._final.exception() is None else "FAILED"

    def __repr__(self) -> str:
        return "Job<job_id=%s, state=%s>" % (self.job_id, self.state)


class AutoExecutor:
    """Submits functions. folder holds the run; flags are those of dcs-tui run."""

    def __init__(self, folder: Any, cluster: Optional[str] = None, max_num_timeout: int = 3,
                 flags: Sequence[str] = (), program: str = "dcs-tui", python: str = "python3", **_: Any) -> None:
        self.folder, self.max_num_timeout, self.cluster = str(folder), max_num_timeout, "dcs-tui"
        self._executor: Optional[_executor.Executor] = None
        self._flags, self._program, self._python = list(flags), program, python
        self.parameters: Dict[str, Any] = {}
        self._options: Dict[str, Any] = {}
        self._seconds = 0.0

    def update_parameters(self, **parameters: Any) -> None:
        """Set options of the jobs that are submitted from now on."""
        for name, value in parameters.items():
            if name in _ONE and value != 1:
                raise ValueError("%s=%r: a job is one process on one host" % (name, value))
            if name not in _OPTIONS and name not in _ONE and not name.startswith(_IGNORED):
                raise NameError("unknown parameter %s (known: %s)" % (name, ", ".join(sorted([*_OPTIONS, *_ONE]))))
            self._options.update(_OPTIONS[name](value) if name in _OPTIONS else {})
            self.parameters[name] = value
        self._seconds = 60.0 * self.parameters.get("timeout_min", 0)

    def _pool(self) -> _executor.Executor:
        if self._executor is None:
            name = "%s-%s" % (time.strftime("%Y%m%d-%H%M%S"), uuid.uuid4().hex[:6])
            self._executor = _executor.Executor(*self._flags, dir=os.path.join(self.folder, name),
                                                program=self._program, python=self._python)
        return self._executor

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Job:
        return Job(self, DelayedSubmission(fn, *args, **kwargs))

    def map_array(self, fn: Callable[..., Any], *iterable: Iterable[Any]) -> List[Job]:
        return [self.submit(fn, *args) for args in zip(*iterable)]

    @contextlib.contextmanager
    def batch(self, allow_implicit_submissions: bool = False) -> Iterator[None]:
        """Submit several jobs. Here they start at once."""
        yield


class helpers:
    """What is in submitit.helpers."""

    Checkpointable, DelayedSubmission = Checkpointable, DelayedSubmission

    @staticmethod
    def as_completed(jobs: Sequence[Job], timeout: Optional[float] = None) -> Iterator[Job]:
        """Yield jobs as they are done."""
        owners = {job._final: job for job in jobs}
        for final in concurrent.futures.as_completed(owners, timeout):
            yield owners[final]
