"""Calls of map: small ones share a job, and each has its own result."""
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Deque, Dict, Iterator, List, Optional, Tuple

from . import _results, _ship, _worker

if TYPE_CHECKING:
    from ._executor import Executor, Job

_SECONDS = 1.0  # length of a job of small calls, if Python starts quickly
_PER_START = 20  # a job takes at least so many times as long as its Python takes to start
_MAX_SECONDS = 10.0  # but not longer than this
_MANY = 20  # so many calls take about as long as their mean says
_MAX_JOBS = 1024  # jobs of small calls that dcs-tui has at a time
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Call(concurrent.futures.Future):  # type: ignore[type-arg]
    """A call of map. cancel ends its job once all calls of that job are canceled."""

    def __init__(self, owner: "Map", index: int, record: _worker.Record) -> None:
        super().__init__()
        self.owner, self.index, self.record = owner, index, record
        self.group: Optional["Group"] = None

    def cancel(self) -> bool:
        if self.cancelled():
            return True
        if not super().cancel():
            return False
        self.set_running_or_notify_cancel()
        group = self.group
        if group is not None and all(c.done() for c in group.calls):
            group.owner.executor._send({"cancel": group.key})
        return True


class Group:
    """A job of several calls."""

    def __init__(self, owner: "Map", key: str, calls: List[Call], line: Dict[str, Any], alone: bool) -> None:
        self.owner, self.key, self.calls, self.line, self.alone = owner, key, calls, line, alone

    def cancelled(self) -> bool:
        return all(c.cancelled() for c in self.calls)

    def cancel(self) -> None:
        self.owner.cancel()
        for call in self.calls:
            call.cancel()

    def take(self, fields: Dict[str, Any]) -> None:
        """Give the calls what became of them; what has not run goes back to the queue."""
        if "error" in fields:
            return self.stop(_results.JobError(fields["error"]))
        result = self.owner.executor._result(fields)
        calls = {call.index: call for call in self.calls}
        seconds, longest, count, refusal = 0.0, 0.0, 0, None
        try:
            for index, took, kind, blocks in _worker.records(result.buffer()):
                if kind == "refused":
                    refusal = bytes(blocks[0]).decode()
                elif index in calls:
                    seconds, longest, count = seconds + took, max(longest, took), count + 1
                    try:
                        value, error = _results.outcome(kind, blocks)
                    except BaseException as e:
                        value, error = None, e
                    _results.finish(calls.pop(index), value, error)
        except Exception as e:
            return self.stop(e)
        left = [call for call in calls.values() if not call.done()]
        if left and result.state != "succeeded":
            error = _results.JobError(refusal or self._describe(result), result)
            if self.alone or refusal or result.state in ("canceled", "skipped"):
                return self.stop(error)
            self.owner.retry(left.pop(0), error)  # this one was running
        if count:
            self.owner.times.add(seconds, longest, count, result.elapsed_seconds or seconds)
        self.owner.handle(left)

    def _describe(self, result: _results.Result) -> str:
        text = _results.describe(result)
        if self.owner.timeout and not self.alone and result.exit == 1:
            text += "; a call ends its job like this if it runs longer than timeout=%s" % self.owner.options["timeout"]
        return text

    def stop(self, error: BaseException) -> None:
        """Give all calls that are not done this error."""
        for call in self.calls:
            if not call.done():
                _results.finish(call, None, error)
        self.owner.handle([])


def seconds_of(duration: Any) -> float:
    """Return the seconds of an option such as timeout="1h30m"; 0: it is not understood.

    >>> seconds_of("1h30m"), seconds_of(2.5), seconds_of("soon")
    (5400.0, 2.5, 0.0)
    """
    text = str(duration).strip()
    if not re.fullmatch(r"([\d.]+(ms|s|m|h|d)?)+", text):
        return 0.0
    try:
        return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"([\d.]+)(ms|s|m|h|d|)", text))
    except ValueError:
        return 0.0


class Times:
    """What is known of the calls of a function, from all maps of an executor.

    >>> times = Times()
    >>> times.add(seconds=8.0, longest=1.0, count=8, elapsed=8.25)
    >>> times.size(waiting=1000, slots=16), times.size(waiting=40, slots=16)
    ((5, 16), (3, 16))
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.mean: Optional[float] = None  # seconds of a call; None: none has been measured
        self._longest, self._start = 0.0, 0.0  # of all calls; seconds of a job in which no call runs

    def add(self, seconds: float, longest: float, count: int, elapsed: float) -> None:
        """Note how long the calls of a job took together, the longest of them, and the job."""
        mean, start = seconds / count, max(0.0, elapsed - seconds)
        with self._lock:
            self._start = start if self.mean is None else 0.5 * self._start + 0.5 * start
            self.mean = mean if self.mean is None else 0.5 * self.mean + 0.5 * mean
            self._longest = max(self._longest, longest)

    def seconds(self) -> float:
        """Return how long a job should take."""
        return min(max(_SECONDS, _PER_START * self._start), _MAX_SECONDS)

    def size(self, waiting: int, slots: int) -> Tuple[int, int]:
        """Return how many calls a job should have, and how many jobs should have as many.

        All of few calls may be as long as the longest. Calls of equal length are divided among all slots at once.
        """
        assert self.mean is not None
        size = self.seconds() / max(self.mean, 1e-5)
        if size < _MANY:
            size = self.seconds() / max(self._longest, 1e-5)
        jobs = slots if self._longest <= 2 * self.mean else 2 * slots
        return max(1, min(int(size), -(-waiting // jobs))), jobs


class Map:
    """The calls of one map, and how many of them are in a job."""

    def __init__(self, executor: "Executor", job: "Job", key: str, chunksize: Optional[int]) -> None:
        assert callable(job.what)
        self.executor, self.key, self.chunksize = executor, key, chunksize
        self.function = executor._ship.function(job.what)
        self.options = {k: v for k, v in job.options.items() if k != "id"}
        self.options.setdefault("name", getattr(job.what, "__name__", "function")[:100])
        self.timeout = seconds_of(self.options["timeout"]) if "timeout" in self.options else 0.0
        if "timeout" in self.options and not self.timeout:
            self.chunksize = 1
        self._lock = threading.Lock()  # of what follows
        self._waiting: Deque[Call] = collections.deque()
        self._jobs, self._canceled = 0, False
        self.times = executor._times.setdefault(self.function, Times())
        self._size, self._same = 1, 0  # calls of the next job; how many further jobs have as many

    def run(self, arguments: Iterator[Any]) -> List[Call]:
        calls = []
        try:
            for index, args in enumerate(arguments):
                calls.append(Call(self, index, _ship.call(index, args, {}, apart=False)))
        except BaseException:
            self.feed()  # it has nothing to do
            raise
        with self._lock:
            self._waiting.extend(calls)
        self.feed()
        return calls

    def cancel(self) -> None:
        with self._lock:
            self._canceled = True
            calls, self._waiting = list(self._waiting), collections.deque()
        for call in calls:
            call.cancel()

    def stop(self, error: BaseException) -> None:
        """Give the calls that wait this error, and send nothing more."""
        with self._lock:
            self._canceled = True
            calls, self._waiting = list(self._waiting), collections.deque()
        for call in calls:
            _results.finish(call, None, error)
        self.feed()

    def feed(self) -> None:
        """Send jobs for the calls that wait."""
        while True:
            with self._lock:
                size, limit = self._plan()
                calls: List[Call] = []
                while self._waiting and len(calls) < size and self._jobs < limit:
                    call = self._waiting.popleft()
                    if not call.done():
                        calls.append(call)
                if not calls:
                    poll, over = bool(self._waiting) and self.times.mean is None, not self._waiting and not self._jobs
                    break
                self._jobs += 1
                self._same = max(0, self._same - 1)
            self._submit(calls, len(calls) == 1)
        if over:
            self.executor._map_sent(self)
        if poll:  # hosts may become usable
            timer = threading.Timer(1, self.feed)
            timer.daemon = True
            timer.start()

    def _plan(self) -> Any:
        """Return the number of calls of the next job, and how many jobs there may be."""
        if self.chunksize is not None:
            return self.chunksize, float("inf")
        if self.times.mean is None:  # the first calls are measured
            return 1, max(4, self.executor._slots())
        if self._same == 0:
            self._size, self._same = self.times.size(len(self._waiting), max(4, self.executor._slots()))
        return self._size, float("inf") if self._size == 1 else _MAX_JOBS

    def _submit(self, calls: List[Call], alone: bool, **options: Any) -> None:
        names = ",".join(str(c.index) for c in calls)
        key = "%s-%s" % (self.key, hashlib.sha256(names.encode()).hexdigest()[:16])
        line = dict(self.options, id=key, **options)
        more: List[str] = []
        if not alone:
            line["tries"] = 1  # the calls that did not run are sent again
            more = ["%g" % (2 * self.times.seconds() if self.chunksize is None else 1e9)]
            if self.timeout:
                more.append("%g" % self.timeout)
                line["timeout"] = "%ds" % (self.timeout * len(calls) + 60)
        try:
            line.update(self.executor._call(key, self.function, [c.record for c in calls], *more))
        except Exception as e:  # the disk is full, say
            with self._lock:
                self._jobs -= 1
            for call in calls:
                _results.finish(call, None, e)
            return
        group = Group(self, key, calls, line, alone)
        for call in calls:
            call.group = group
        self.executor._add(group)

    def retry(self, call: Call, error: BaseException) -> None:
        """Run a call again by itself, after its job ended while it ran."""
        tries = self.options.get("tries")
        if tries is not None and int(tries) <= 1:
            return _results.finish(call, None, error)
        with self._lock:
            self._jobs += 1
        self._submit([call], True, **({} if tries is None else {"tries": int(tries) - 1}))

    def handle(self, left: List[Call]) -> None:
        """Note that a job has ended, and calls that it did not run."""
        with self._lock:
            self._jobs -= 1
            if not self._canceled:
                self._waiting.extendleft(reversed(left))
                left = []
        for call in left:
            call.cancel()
        self.feed()


def slots_of(run_dir: str) -> int:
    """Return the number of slots of the hosts that are up."""
    try:
        with open(os.path.join(run_dir, "live.json"), encoding="utf-8") as f:
            hosts = json.load(f).get("hosts") or []
        return sum(h.get("slots", 0) for h in hosts if h.get("state") == "up")
    except (OSError, ValueError):
        return 0


def in_order(calls: List[Call], end: Optional[float]) -> Iterator[Any]:
    """Return the results of calls, in their order. If the reader stops, the rest is canceled."""
    calls.reverse()
    try:
        while calls:
            left = None if end is None else max(0.0, end - time.monotonic())
            yield calls.pop().result(left)
    finally:
        for call in calls:
            call.cancel()
