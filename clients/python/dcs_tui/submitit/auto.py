"""The executor and its jobs: submitit.auto."""
import asyncio
import concurrent.futures
import contextlib
import itertools
import os
import time
import uuid
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Generic, Iterable, Iterator, List, Optional, Sequence, TypeVar, Union

from .. import _executor
from .._results import RemoteTraceback
from .core import job_environment
from .core.utils import DelayedSubmission, FailedJobError, JobPaths, UncompletedJobError

R = TypeVar("R", covariant=True)

_OPTIONS: Dict[str, Callable[[Any], Dict[str, Any]]] = {
    "name": lambda v: {"name": str(v)}, "timeout_min": lambda v: {"timeout": "%ds" % (60 * v + 60)},
    "cpus_per_task": lambda v: {"slots": int(v)}, "mem_gb": lambda v: {"mem": "%dM" % (1024 * v)},
    "gpus_per_node": lambda v: {"gpus": int(v)}, "stderr_to_stdout": lambda v: {},
}
_ONE = ("nodes", "tasks_per_node")  # a job is one process on one host
_CLUSTERS = ("slurm", "local", "debug")
_BATCH = "attributes of a job are not accessible within 'with executor.batch()', because it is submitted at the end"


class _Call:
    """A call that was submitted. After a timeout, a further job continues it."""

    def __init__(self, owner: "AutoExecutor", call: DelayedSubmission, job_id: str) -> None:
        self.owner, self.job_id, self.number, self.canceled = owner, job_id, 0, False
        self.paths = JobPaths(owner.folder, job_id, 0)
        self.options, self.seconds = dict(owner._options), 60.0 * owner.parameters.get("timeout_min", 0)
        self.merge = bool(owner.parameters.get("stderr_to_stdout"))
        self.final: "concurrent.futures.Future[Any]" = concurrent.futures.Future()
        self.start(call)

    def start(self, call: DelayedSubmission) -> None:
        name = getattr(call.function, "__name__", type(call.function).__name__)
        key = self.job_id + ("-%d" % self.number if self.number else "")
        job = _executor.Job(job_environment.run, **dict({"name": name, "id": key}, **self.options))
        folder = str(self.owner.folder)
        self.future = self.owner._pool().submit(job, call, self.seconds, folder, self.job_id, self.merge)
        self.future.add_done_callback(self.end)

    def end(self, future: "concurrent.futures.Future[Any]") -> None:
        try:
            again, value = future.result()
            if not again:
                return self.final.set_result(value)
            reason = "timed-out too many times"
            if value is None:
                reason = "checkpoint function returned None"
            elif self.number < self.owner.max_num_timeout and not self.canceled:
                self.number += 1
                return self.start(value)
            error = UncompletedJobError("Job not requeued because: %s." % reason)
        except concurrent.futures.CancelledError:
            error = UncompletedJobError("Job %s was canceled" % self.job_id)
        except BaseException as e:
            if isinstance(e.__cause__, RemoteTraceback):
                error = FailedJobError(
                    "Job (task=0) failed during processing with trace:\n----------------------\n%s"
                    "----------------------\nWhat it printed is in\n  - %s\n  - %s"
                    % (e.__cause__.args[0], self.paths.stderr, self.paths.stdout))
            else:
                error = UncompletedJobError(str(e))
        self.final.set_exception(error)

    def cancel(self) -> None:
        self.canceled = True
        self.future.cancel()


class Job(Generic[R]):
    """A call that was submitted. It belongs to the program that submitted it, and is not pickled."""

    num_tasks, task_id = 1, 0
    _call: _Call

    def __init__(self, owner: "AutoExecutor", submission: DelayedSubmission) -> None:
        self._owner, self._submission, self._cancels = owner, submission, False

    def __getattr__(self, name: str) -> Any:
        if name != "_call":
            raise AttributeError("%s has no attribute %s" % (type(self).__name__, name))
        if not self._owner._implicit:
            raise AttributeError(_BATCH)
        self._owner._submit_batch()
        return self.__dict__["_call"]

    @property
    def job_id(self) -> str:
        return self._call.job_id

    @property
    def paths(self) -> JobPaths:
        return self._call.paths

    def submission(self) -> DelayedSubmission:
        """Return what was submitted."""
        return self._submission

    def task(self, task_id: int) -> "Job[R]":
        if task_id != 0:
            raise ValueError("task_id %d must be 0: a job of dcs-tui is one process on one host" % task_id)
        return self

    def done(self, force_check: bool = False) -> bool:
        return self._call.final.done()

    def wait(self) -> None:
        concurrent.futures.wait([self._call.final])

    def exception(self) -> Optional[BaseException]:
        return self._call.final.exception()

    def result(self) -> R:
        value: R = self._call.final.result()
        return value

    def results(self) -> List[R]:
        return [self.result()]

    def cancel(self, check: bool = True) -> None:
        self._call.cancel()
        if check:
            self.wait()

    def cancel_at_deletion(self, value: bool = True) -> "Job[R]":
        """Set whether the job is canceled when this object is deleted."""
        self._cancels = value
        return self

    def __del__(self) -> None:
        if self.__dict__.get("_cancels") and "_call" in self.__dict__:
            self.cancel(check=False)

    @property
    def state(self) -> str:
        if not self.done():
            return "RUNNING" if self.paths.stdout.exists() else "PENDING"
        if self._call.canceled:
            return "CANCELLED"
        return "FINISHED" if self._call.final.exception() is None else "FAILED"

    def get_info(self, mode: str = "force") -> Dict[str, str]:
        return {"jobState": self.state}

    def stdout(self) -> Optional[str]:
        """Return what the function printed; None: it has not begun."""
        return _text(self.paths.stdout)

    def stderr(self) -> Optional[str]:
        return _text(self.paths.stderr)

    def awaitable(self) -> "AsyncJobProxy[R]":
        return AsyncJobProxy(self)

    def _interrupt(self, timeout: bool = False) -> None:
        raise NotImplementedError("a job of dcs-tui cannot be interrupted for a trial: it checkpoints when its "
                                  "timeout_min has passed, so set a short one")

    def __reduce__(self) -> Any:
        raise TypeError("a job belongs to the program that submitted it: dcs-tui resume continues its run, and a "
                        "job cannot be pickled")

    def __repr__(self) -> str:
        if "_call" not in self.__dict__:
            return object.__repr__(self)
        return 'Job<job_id=%s, task_id=0, state="%s">' % (self.job_id, self.state)


def _text(path: Path) -> Optional[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


class AsyncJobProxy(Generic[R]):
    """Waits for a job in a coroutine."""

    def __init__(self, job: Job[R]) -> None:
        self.job = job

    async def wait(self, poll_interval: float = 1) -> None:
        await asyncio.wait([asyncio.wrap_future(self.job._call.final)])

    async def result(self, poll_interval: float = 1) -> R:
        value: R = await asyncio.wrap_future(self.job._call.final)
        return value

    async def results(self, poll_interval: float = 1) -> List[R]:
        return [await self.result()]

    def results_as_completed(self, poll_interval: float = 1) -> "Iterator[asyncio.Future[R]]":
        yield asyncio.ensure_future(self.result())


class AutoExecutor:
    """Submits functions. folder holds the run, and what the functions print; flags are those of dcs-tui run."""

    def __init__(self, folder: Union[str, Path], cluster: Optional[str] = None, flags: Sequence[str] = (),
                 program: str = "dcs-tui", python: str = "python3", **more: Any) -> None:
        if cluster == "debug":
            raise NotImplementedError("dcs_tui.submitit has no cluster='debug': call the function itself")
        self.folder, self.cluster, self.max_num_timeout = Path(folder).expanduser().absolute(), "dcs-tui", 3
        for name, value in more.items():
            prefix, _, rest = name.partition("_")
            if name == "max_num_timeout" or rest == "max_num_timeout" and prefix in _CLUSTERS:
                self.max_num_timeout = int(value)
            elif prefix not in _CLUSTERS:
                raise TypeError("unknown argument %s (known: folder, cluster, flags, program, python, and those that "
                                "begin with %s)" % (name, ", ".join(c + "_" for c in _CLUSTERS)))
        self._executor: Optional[_executor.Executor] = None
        self._flags, self._program, self._python = list(flags), program, python
        self._numbers = itertools.count(time.time_ns() // 1000)
        self.parameters: Dict[str, Any] = {}
        self._options: Dict[str, Any] = {}
        self._batch: Optional[List[Job[Any]]] = None
        self._implicit = False

    @staticmethod
    def which() -> str:
        return "dcs-tui"

    def update_parameters(self, **parameters: Any) -> None:
        """Set options of the jobs that are submitted from now on."""
        if self._batch is not None:
            raise RuntimeError('Changing parameters within batch context "with executor.batch():" is not allowed')
        for name, value in parameters.items():
            if name in _ONE and value not in (1, None):
                raise ValueError("%s=%r: a job of dcs-tui is one process on one host" % (name, value))
            known = name in _OPTIONS or name in _ONE
            if not known and name.partition("_")[0] not in _CLUSTERS:
                raise NameError("unknown parameter %s (known: %s)" % (name, ", ".join(sorted([*_OPTIONS, *_ONE]))))
            if value is not None:
                self._options.update(_OPTIONS[name](value) if name in _OPTIONS else {})
                self.parameters[name] = value

    def _pool(self) -> _executor.Executor:
        if self._executor is None:
            name = "%s-%s" % (time.strftime("%Y%m%d-%H%M%S"), uuid.uuid4().hex[:6])
            folder = JobPaths.get_first_id_independent_folder(self.folder)
            self._executor = _executor.Executor(*self._flags, dir=os.path.join(folder, name),
                                                program=self._program, python=self._python)
        return self._executor

    def submit(self, fn: Callable[..., R], *args: Any, **kwargs: Any) -> Job[R]:
        job: Job[R] = Job(self, DelayedSubmission(fn, *args, **kwargs))
        if self._batch is None:
            job._call = _Call(self, job._submission, str(next(self._numbers)))
        else:
            self._batch.append(job)
        return job

    def map_array(self, fn: Callable[..., R], *iterable: Iterable[Any]) -> List[Job[R]]:
        return self._array([Job(self, DelayedSubmission(fn, *args)) for args in zip(*iterable)])

    def submit_array(self, fns: Sequence[Callable[[], R]]) -> List[Job[R]]:
        """Submit functions without arguments."""
        return self._array([Job(self, DelayedSubmission(fn)) for fn in fns])

    def _array(self, jobs: List[Job[R]]) -> List[Job[R]]:
        if not jobs:
            warnings.warn("Received an empty job array")
        array = next(self._numbers)
        for k, job in enumerate(jobs):
            job._call = _Call(self, job._submission, "%d_%d" % (array, k))
        return jobs

    @contextlib.contextmanager
    def batch(self, allow_implicit_submissions: bool = False) -> Iterator[None]:
        """Submit several jobs at the end of the block, or none after an exception."""
        if self._batch is not None:
            raise RuntimeError('Nesting "with executor.batch()" contexts is not allowed.')
        self._batch, self._implicit = [], allow_implicit_submissions
        try:
            yield
            self._submit_batch()
        finally:
            self._batch = None

    def _submit_batch(self) -> None:
        jobs, self._batch = self._batch or [], []
        if jobs:
            self._array(jobs)
        elif not self._implicit:
            warnings.warn('No submission happened during "with executor.batch()" context.', category=RuntimeWarning)
