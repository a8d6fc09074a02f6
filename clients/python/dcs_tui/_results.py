"""What becomes of commands and calls."""
import concurrent.futures
import glob
import json
import mmap
import os
import subprocess
import time
from typing import Any, Dict, List, Optional, Tuple

from . import _worker

_FETCH_SECONDS = 60  # how long an output that only its host has is looked for


class Result:
    """What became of a command: the fields of a result in docs/reference/formats.md.

    >>> r = Result({"job": 7, "state": "failed", "exit": 3})
    >>> r, r.exit
    (<Result of job 7: failed>, 3)
    """

    job: int
    state: str
    exit: Optional[int]
    signal: Optional[str]
    host: Optional[str]
    attempt: Optional[str]
    name: str
    stdout: Optional[str]
    stderr: Optional[str]
    reason: Optional[str]
    elapsed_seconds: Optional[float]

    def __init__(self, fields: Dict[str, Any], program: str = "dcs-tui", run_dir: str = "") -> None:
        self.__dict__.update(fields)
        self._program, self._run_dir = program, run_dir

    @property
    def output(self) -> str:
        """What the job printed. A large output is read from its file each time."""
        text: Optional[str] = vars(self).get("output")
        return str(self.buffer(), "utf-8", "replace") if text is None else text

    def buffer(self) -> Any:
        """Return what the job printed, as bytes. A large output is a map of its file."""
        return open_output(self)

    def __getattr__(self, name: str) -> Any:  # a field that this version of dcs-tui does not have
        raise AttributeError("a result of dcs-tui has no field %s" % name)

    def __repr__(self) -> str:
        return "<Result of job %s: %s>" % (getattr(self, "job", "?"), self.state)


class JobError(Exception):
    """A job did not succeed. result says how it ended; None: dcs-tui did not take it."""

    def __init__(self, text: str, result: Optional[Result] = None) -> None:
        super().__init__(text)
        self.result = result


class StoppedError(Exception):
    """dcs-tui ended before the jobs were over: it was stopped, or no host could be used."""


class RemoteError(Exception):
    """An exception of a function, of a class that does not exist here: name and text describe it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__("%s: %s" % (name, text))
        self.name, self.text = name, text


class RemoteTraceback(Exception):
    """The cause of an exception that a function raised on a host."""

    def __str__(self) -> str:
        return '\n"""\n%s"""' % self.args[0]


def describe(result: Result) -> str:
    """Say how a job ended that did not succeed."""
    fields = vars(result)
    cause = fields.get("reason") or fields.get("signal")
    if not cause:
        cause = "exit %s" % result.exit if result.exit else fields.get("output_error") or "exit %s" % result.exit
    text = "job %d %s: %s" % (result.job, _STATES.get(result.state, result.state), cause)
    if result.stderr:
        said = _last_line(result.stderr)
        text += (" (%s)" % said if said else "") + "; see " + result.stderr
    return text


_STATES = {"timed_out": "timed out", "canceled": "was canceled", "skipped": "was skipped"}


def _last_line(path: str) -> str:
    """Return the last line of a file, or "" if there is none here."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as f:  # a job may have put a pipe there
            f.seek(max(0, os.fstat(f.fileno()).st_size - 1024))
            lines = f.read(1024).decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:200] if lines else ""


def open_output(result: Result) -> Any:
    """Return what an attempt printed: a text in the result, or a map of its file."""
    text = vars(result).get("output")
    if text is not None and " raw" not in text and "\ufffd" not in text:
        return text.encode()
    attempt, run_dir = vars(result).get("attempt"), result._run_dir
    if not attempt:
        return b""  # it never ran
    paths = [result.stdout or "", os.path.join(run_dir, "attempts", "%03d" % (result.job // 1000), attempt + ".out")]
    if not any(os.path.exists(p) for p in paths) and glob.glob(glob.escape(os.path.dirname(paths[1])) + ".*.zip"):
        done = subprocess.run([result._program, "logs", run_dir, attempt], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)  # it reads packs
        if done.returncode == 0:
            return done.stdout
    end, is_known = time.monotonic() + _FETCH_SECONDS, False
    while not is_known and not any(os.path.exists(p) for p in paths) and time.monotonic() < end:  # only the host has it
        done = subprocess.run([result._program, "fetch", "--json", run_dir, str(result.job)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise JobError("the result of job %d was not fetched: %s"
                           % (result.job, done.stderr.decode(errors="replace").strip()), result)
        did = json.loads(done.stdout)
        is_known = did["fetched"] + did["here"] + sum(host["removed"] for host in did["hosts"]) > 0
        time.sleep(0 if is_known else 0.1)  # fetch sees the end of a job up to a second later
    for path in paths:
        if os.path.exists(path):
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as f:  # see _last_line
                if os.fstat(f.fileno()).st_size == 0:
                    return b""
                return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
    if result.state == "succeeded":
        raise JobError("the output of job %d is not on its host any more" % result.job, result)
    return b""


Outcome = Tuple[Any, Optional[BaseException]]


def outcome(kind: str, blocks: List[Any]) -> Outcome:
    """Return what a call returned, or raised."""
    if kind == "value":
        return _worker.loads(blocks), None
    if kind == "refused":
        return None, JobError(bytes(blocks[0]).decode())
    name, text, trace, pickled = _worker.loads(blocks)
    error: BaseException = RemoteError(name, text)
    if pickled is not None:
        try:
            made = _worker.loads(pickled)
            if isinstance(made, tuple):
                made = _worker.rebuild(*made)
            if isinstance(made, BaseException):
                error = made
        except Exception:
            pass  # its class cannot be imported here
    error.__cause__ = RemoteTraceback(trace)
    return None, error


def finish(future: "concurrent.futures.Future[Any]", value: Any, error: Optional[BaseException]) -> None:
    """Give a future its result, unless it was canceled."""
    try:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
    except concurrent.futures.InvalidStateError:
        pass
