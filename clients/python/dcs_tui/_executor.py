"""The executor: it starts dcs-tui as a child process and speaks the protocol of docs/reference/protocol.md."""
import atexit
import asyncio
import collections
import concurrent.futures
import html
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from typing import (IO, Any, AsyncIterator, Callable, Deque, Dict, Generator, Iterable, Iterator, List, Optional,
                    Sequence, Set, Union)

from . import _map, _notebook, _results, _ship, _worker
from ._results import JobError, Result, StoppedError

_MAX_OUTPUT = "2M"  # larger outputs are read from their files
_INLINE = 8192  # longer calls travel in files: dcs-tui keeps the commands in memory
_LAG = 10.0  # seconds at most by which the run directory lags behind the results
_PATIENCE = 10.0  # seconds without a host until a program hears why


class Job:
    """A command, or a function, with options of docs/reference/protocol.md.

    >>> Job("./sim", slots=4, timeout="2h").options
    {'slots': 4, 'timeout': '2h'}
    """

    def __init__(self, what: Union[str, Callable[..., Any]], **options: Any) -> None:
        self.what, self.options = what, options


class Future(concurrent.futures.Future):  # type: ignore[type-arg]
    """The future of a job. A coroutine can await it."""

    def __init__(self, executor: "Executor", key: str, line: Dict[str, Any], function: bool) -> None:
        super().__init__()
        self._executor, self.key, self.line, self._function = executor, key, line, function

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        """Cancel the job, also when it runs. False: it is over."""
        if self.cancelled():
            return True
        if not super().cancel():
            return False
        self.set_running_or_notify_cancel()
        self._executor._send({"cancel": self.key})
        return True

    def take(self, fields: Dict[str, Any]) -> None:
        """Set the result to what became of the job."""
        if "error" in fields:
            return self.stop(JobError(fields["error"]))
        try:
            value, error = self._outcome(self._executor._result(fields))
        except BaseException as e:
            value, error = None, e
        _results.finish(self, value, error)

    def stop(self, error: BaseException) -> None:
        _results.finish(self, None, error)

    def _outcome(self, result: Result) -> _results.Outcome:
        if not self._function:
            lacks = "output_error" in vars(result) and "output_bytes" not in vars(result)
            ok = result.state == "succeeded" and not lacks
            return (result, None) if ok else (None, JobError(_results.describe(result), result))
        for _, _, kind, blocks in _worker.records(result.buffer()):
            value, error = _results.outcome(kind, blocks)
            if kind == "refused":
                error = JobError(str(error), result)
            if result.state == "succeeded" or kind == "refused":
                return value, error
        return None, JobError(_results.describe(result), result)


def find_program(program: str = "dcs-tui") -> str:
    """Return the path of dcs-tui."""
    found = shutil.which(program)
    if found is None:
        raise FileNotFoundError(
            "%s is not in PATH: put the binary of a release there (it needs nothing else), or build it with "
            "`make build`, or name it with Executor(program=...)" % program)
    return os.path.abspath(found)


class Executor(concurrent.futures.Executor):
    """A concurrent.futures.Executor whose workers are the hosts of a dcs-tui run.

    flags are flags of dcs-tui run. dir is the run directory (dcs-runs/python-TIME). python is
    the interpreter on the hosts. send names files and directories that hosts lack: jobs then run
    in directories of their own. log is a file object for what dcs-tui says to people.
    """

    def __init__(self, *flags: object, dir: Optional[str] = None, program: str = "dcs-tui", python: str = "python3",
                 send: Sequence[str] = (), log: Optional[IO[str]] = None) -> None:
        name = "python-%s-%d" % (time.strftime("%Y%m%d-%H%M%S"), os.getpid())
        self.dir = dir or os.path.join("dcs-runs", name + "-%x" % (time.time_ns() & 0xFFFFFF))
        self._cwd, self._path = os.getcwd(), os.path.abspath(self.dir)
        self._ship = _ship.Shipping(os.path.abspath(".dcs-" + os.path.basename(self.dir)))
        self._program, self._python, self._log, self._travels = find_program(program), python, log, bool(send)
        if flags and not str(flags[0]).startswith("-"):
            raise ValueError("the arguments of Executor are flags of dcs-tui run, such as Executor('--max-slots', 4), "
                             "not %r" % (flags[0],))
        self._flags = [str(flag) for flag in flags] + [word for path in send for word in ("--send", path)]
        self._drains = "drain" in "=".join(self._flags).partition("on-interrupt=")[2][:5]
        if "--on-interrupt" not in "=".join(self._flags):
            self._flags += ["--on-interrupt", "cancel"]
        self._lock = threading.Lock()  # of what follows
        self._write = threading.Lock()  # of the pipe; taken before _lock
        self._pending: Dict[str, Union[Future, _map.Group]] = {}
        self._over = 0  # results that have come
        self._ids: Set[str] = set()  # ids of jobs that the program has chosen
        self._maps: Set[_map.Map] = set()  # those that may send further jobs
        self._times: Dict[str, _map.Times] = {}  # of functions, by the files of their code
        self._closed, self._canceled, self._left, self._numbers = False, False, False, itertools.count(1)
        self._ended: Optional[StoppedError] = None
        self._refusal: Exception = RuntimeError("cannot schedule new futures after shutdown")
        self._said: Deque[str] = collections.deque(maxlen=40)  # the last messages of dcs-tui
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._process = self._start()
        self._thread = threading.Thread(target=self._serve, name="dcs-tui", daemon=True)
        self._doubt = threading.Timer(_PATIENCE, self._tell_of_silence)
        self._doubt.daemon = True
        self._doubt.start()
        self._thread.start()
        atexit.register(self._at_exit)

    def submit(self, what: Any, /, *args: Any, **kwargs: Any) -> Future:
        """Run a shell command, or a function with arguments.

        The future of a command has a Result. That of a function has what it returns, or the
        exception that it raises, whose __cause__ holds the traceback of the host.
        """
        job = what if isinstance(what, Job) else Job(what)
        key = self._key(job)
        line = dict(job.options, id=key)
        if callable(job.what):
            line.update(self._call(key, self._ship.function(job.what), [_ship.call(0, args, kwargs)]))
            line.setdefault("name", getattr(job.what, "__name__", "function")[:100])
        elif args or kwargs:
            raise TypeError("a command takes no arguments")
        else:
            line["command"] = job.what
        future = Future(self, key, line, callable(job.what))
        with self._lock:
            if self._closed:
                raise self._refusal
            self._ids.update([key] if "id" in job.options else [])
            self._pending[key] = future
        self._send(line)
        return future

    def map(self, fn: Any, *iterables: Iterable[Any], timeout: Optional[float] = None,
            chunksize: Optional[int] = None, reuse: bool = False) -> Iterator[Any]:
        """Call a function, or a Job of one, with each of the arguments; return the results in order.

        Small calls share a job. chunksize sets the number of calls of a job.
        """
        if reuse:
            raise NotImplementedError("map has no reuse=True: it already runs many calls in each Python process, and "
                                      "with chunksize=N it runs N; docs/clients.md has the measurements")
        job = fn if isinstance(fn, Job) else Job(fn)
        if not callable(job.what):
            raise TypeError("map calls a function; submit runs a command")
        if chunksize is not None and chunksize < 1:
            raise ValueError("chunksize must be at least 1")
        end = None if timeout is None else time.monotonic() + timeout
        key = self._key(job)
        calls = _map.Map(self, job, key, chunksize)
        with self._lock:
            if self._closed:
                raise self._refusal
            self._ids.update([key] if "id" in job.options else [])
            self._maps.add(calls)
        return _map.in_order(calls.run(zip(*iterables)), end)

    def results(self) -> _notebook.Table:
        """Return the results of the jobs that are over. A notebook shows them as a table."""
        end = time.monotonic() + _LAG
        while True:
            with self._lock:
                over = self._over
            table = self._read_results()
            if len(table) >= over or time.monotonic() > end:
                return table
            time.sleep(0.1)  # the run directory does not show yet what this program has got

    def _read_results(self) -> _notebook.Table:
        done = subprocess.run([self._program, "results", "--json", self._path], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise RuntimeError("the results of %s cannot be read: %s"
                               % (self.dir, done.stderr.decode(errors="replace").strip()))
        return _notebook.Table(self._result(json.loads(line)) for line in done.stdout.splitlines())

    def _repr_html_(self) -> str:
        try:
            return self.results()._repr_html_()
        except RuntimeError as e:
            return "<p>%s</p>" % html.escape(str(e))

    def _key(self, job: Job) -> str:
        """Return the id of a job. A run has each id once: a second job of that id would get no result."""
        given = job.options.get("id")
        if given is None or given == "":
            return "py-%d" % next(self._numbers)
        with self._lock:
            if str(given) in self._ids or str(given) in self._pending:
                raise ValueError("the id %s is that of an earlier job" % given)
        return str(given)

    def _tell_of_silence(self) -> None:
        """Say what dcs-tui has said if jobs wait and no host is up: the program may wait for long."""
        with self._lock:
            waiting = bool(self._pending)
        if waiting and self._log is None and self._slots() == 0:
            _say("no host of %s is up. dcs-tui says:\n%s" % (self.dir, "\n".join(list(self._said)[-5:])))

    def _add(self, group: _map.Group) -> None:
        """Send the job of a map."""
        with self._lock:
            ended = self._ended
            if ended is None:
                self._pending[group.key] = group
        if ended is None:
            self._send(group.line)
        else:
            group.stop(ended)

    def _map_sent(self, calls: _map.Map) -> None:
        """Note that a map sends no further jobs."""
        with self._lock:
            self._maps.discard(calls)
        self._close_if_last()

    def _close_if_last(self) -> None:
        with self._write:
            with self._lock:
                last = self._closed and not self._maps
            if last:
                self._close_input()

    def _slots(self) -> int:
        return _map.slots_of(self._path)

    def _call(self, key: str, function: str, calls: List[_worker.Record], *more: str) -> Dict[str, Any]:
        """Return the keys of a job that calls a function."""
        files = [self._ship.archive(), function]
        size = sum(len(block) for call in calls for block in call[3])
        words = []
        if size <= _INLINE:
            out = _Text()
            for call in calls:
                _worker.write(out, 0, call)  # type: ignore[arg-type]
            words = ["".join(out.parts)]
        if not words or len(words[0]) > _INLINE:
            path = os.path.join(self._ship.folder, "call-" + key.replace(os.sep, "_"))

            def fill(f: Any) -> None:
                at = 0
                for call in calls:
                    at = _worker.write(f, at, call, _INLINE)
            self._ship.write(path, fill)
            files.append(path)
            words = ["@" + self._name(path)]
        keys: Dict[str, Any] = {"send": [self._name(f) for f in files]} if self._travels else {}
        names = [self._name(f) for f in files[:2]]
        keys["command"] = "exec %s %s" % (self._python, " ".join(shlex.quote(w) for w in names + words + list(more)))
        return keys

    def _name(self, path: str) -> str:
        """Return the name of a file on the hosts."""
        return os.path.relpath(path, self._cwd) if self._travels else path

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the run after its last job; with cancel_futures cancel what is not over."""
        with self._lock:
            self._closed = True
            pending: List[Any] = [*self._maps, *self._pending.values()]
        for one in pending if cancel_futures else ():
            one.cancel()
        self._close_if_last()
        if wait and not self._left:
            try:
                self._thread.join()
            except KeyboardInterrupt:
                self._interrupt()
                raise
            shutil.rmtree(self._ship.folder, ignore_errors=True)
        atexit.unregister(self._at_exit)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._interrupt()
        else:
            self.shutdown()

    def _at_exit(self) -> None:
        if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
            self._interrupt()
        else:
            self.shutdown()

    def _interrupt(self) -> None:
        """End the run after Ctrl-C, which dcs-tui usually has received, too. The next one leaves."""
        with self._lock:
            running, self._closed = len(self._pending), True
        if self._left or not self._thread.is_alive():
            return self.shutdown()
        run = shlex.quote(self.dir)
        try:
            ends = "waiting for the running jobs"
            if not self._drains:
                ends = "canceling %d job%s" % (running, "" if running == 1 else "s")
            _say("%s of %s; Ctrl-C again leaves" % (ends, run))
            with self._lock:
                maps = list(self._maps)
            for calls in maps:
                calls.cancel()
            if not self._drains:
                self._canceled = True
                self._send({"cancel": True})
            self.shutdown()
        except KeyboardInterrupt:
            self._left = True
            self._process.terminate()  # it stops to dispatch, and running jobs go on
            _say("left %s: jobs that run there go on. `dcs-tui cancel %s --yes` ends them, and `dcs-tui resume %s` "
                 "continues the run" % (run, run, run))
            atexit.unregister(self._at_exit)

    def _close_input(self) -> None:
        try:
            assert self._process.stdin
            self._process.stdin.close()
        except OSError:
            pass  # it was killed

    def _send(self, line: Dict[str, Any]) -> None:
        with self._write:
            self._put(line)

    def _put(self, line: Dict[str, Any]) -> None:
        try:
            assert self._process.stdin
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # it was killed: _start sends what has no result again; or it has ended

    def _start(self) -> "subprocess.Popen[bytes]":
        """Start dcs-tui. Jobs that the run has already are not run again."""
        words = ["run", "--run-dir", self._path] + self._flags
        if os.path.exists(os.path.join(self._path, "run.toml")):
            words = ["resume", self._path]
        with self._write:
            self._process = subprocess.Popen(
                [self._program, words[0], "--no-tui", "--json", "--output", "--output-max", _MAX_OUTPUT] + words[1:] +
                ["-"], cwd=self._cwd,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
            listener.start()
            self._listener = listener
            with self._lock:
                pending, closed = list(self._pending.values()), self._closed and not self._maps
            for future in pending:
                self._put(future.line)
                if future.cancelled():
                    self._put({"cancel": future.key})
            if self._canceled:  # Ctrl-C has also killed a dcs-tui that had not begun
                self._put({"cancel": True})
            if closed:
                self._close_input()
        return self._process

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stderr
        for line in process.stderr:
            text = line.decode(errors="replace")
            self._said.append(text.strip())
            if self._log is not None:
                try:
                    self._log.write(text)
                    self._log.flush()
                except ValueError:
                    pass  # it was closed
        process.stderr.close()

    def _serve(self) -> None:
        deaths = 0
        while True:
            assert self._process.stdout
            for line in self._process.stdout:
                if line.endswith(b"\n"):  # half a line comes again
                    deaths = 0
                    self._take(json.loads(line))
            code = self._process.wait()
            self._listener.join()
            if code >= 0 or deaths == 10 or self._left:
                break
            deaths += 1
            time.sleep(1 if deaths > 1 else 0)
            self._start()
        text = "dcs-tui ended with code %d" % code
        said = "\n".join(self._said).strip()
        said = said.partition("\n\n")[2] or said  # the summary follows an empty line, and may have more
        if said:
            text += ": " + said
        if os.path.exists(os.path.join(self._path, "run.toml")):
            text += "\n`dcs-tui resume %s` continues the run" % shlex.quote(self.dir)
        self._doubt.cancel()
        with self._lock:
            if not self._closed:
                self._refusal = StoppedError(text)
            self._closed, self._ended = True, StoppedError(text)
            left: List[Any] = [*self._maps, *self._pending.values()]  # maps first: they send nothing more
            self._pending = {}
        for one in left:
            one.stop(StoppedError(text))

    def _take(self, fields: Dict[str, Any]) -> None:
        if "state" not in fields and "error" not in fields:
            return  # the answer to a cancel
        with self._lock:
            taken = self._pending.pop(fields.get("id", ""), None)
            if "error" in fields:
                self._ids.discard(fields.get("id", ""))  # the run does not have it
            elif taken is not None:
                self._over += 1
        if taken is None:
            return  # another's, or a repeat
        try:
            os.remove(os.path.join(self._ship.folder, "call-" + taken.key.replace(os.sep, "_")))
        except OSError:
            pass
        taken.take(fields)

    def _result(self, fields: Dict[str, Any]) -> Result:
        return Result(fields, self._program, self._path)


class _Text:
    """A file of text that collects what is written."""

    def __init__(self) -> None:
        self.parts: List[str] = []

    def write(self, data: bytes) -> None:
        self.parts.append(bytes(data).decode())


def _say(text: str) -> None:
    sys.stderr.write("dcs-tui: %s\n" % text)
    sys.stderr.flush()


class as_completed:
    """Yield futures as they are done, in a for loop or in an async for loop."""

    def __init__(self, futures: "Iterable[concurrent.futures.Future[Any]]", timeout: Optional[float] = None) -> None:
        self._futures, self._timeout = list(dict.fromkeys(futures)), timeout

    def __iter__(self) -> "Iterator[Any]":
        return concurrent.futures.as_completed(self._futures, self._timeout)

    async def __aiter__(self) -> "AsyncIterator[Any]":
        loop, done = asyncio.get_running_loop(), asyncio.Queue()  # type: ignore[var-annotated]
        end = None if self._timeout is None else time.monotonic() + self._timeout

        def note(future: "concurrent.futures.Future[Any]") -> None:
            try:
                loop.call_soon_threadsafe(done.put_nowait, future)
            except RuntimeError:
                pass  # the loop is closed
        for future in self._futures:
            future.add_done_callback(note)
        for _ in self._futures:
            yield await asyncio.wait_for(done.get(), None if end is None else end - time.monotonic())
