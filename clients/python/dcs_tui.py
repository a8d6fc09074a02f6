"""Run shell commands and Python functions on the hosts of a dcs-tui run.

    from concurrent.futures import as_completed
    from dcs_tui import Executor

    with Executor("--hosts", "hosts.toml") as executor:
        futures = [executor.submit("./sim --seed %d" % seed) for seed in range(100)]
        for future in as_completed(futures):
            print(future.result().output)
        print(list(executor.map(pow, range(10), range(10))))

This file needs Python 3.8 and nothing else, so it can be copied; docs/clients.md of dcs-tui
explains it. It starts dcs-tui as a child process and speaks the protocol of docs/protocol.md.
If that process is killed, the run is resumed, and every job still has one result.
"""
import atexit
import base64
import concurrent.futures
import itertools
import json
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import threading
import time
import zlib

try:
    import cloudpickle
except ImportError:  # then functions must be importable, or stand in the main script
    cloudpickle = None

__all__ = ["Executor", "Job", "JobError", "Result", "StoppedError"]


class Result(object):
    """What became of a command: the fields of a result in docs/protocol.md."""

    def __init__(self, fields):
        self.__dict__.update(fields)

    def __repr__(self):
        return "<Result of job %s: %s>" % (getattr(self, "job", "?"), self.state)


class JobError(Exception):
    """A job did not succeed. result says how it ended; None: dcs-tui did not take it."""

    def __init__(self, text, result=None):
        super().__init__(text)
        self.result = result


class StoppedError(Exception):
    """dcs-tui ended before the jobs were over: it was stopped, or no host could be used."""


class Job(object):
    """A command, or a function, with options of docs/protocol.md: Job("./sim", slots=4)."""

    def __init__(self, what, **options):
        self.what, self.options = what, options


class RemoteTraceback(Exception):
    """The cause of an exception that a function raised on a host."""

    def __str__(self):
        return "\n" + self.args[0]


class _Future(concurrent.futures.Future):
    def __init__(self, executor, key, line, function):
        super().__init__()
        self._executor, self._key, self._line, self._function = executor, key, line, function

    def cancel(self):
        """Cancel the job, also when it runs. False: it is over."""
        if self.cancelled():
            return True
        if not super().cancel():
            return False
        self.set_running_or_notify_cancel()
        self._executor._send({"cancel": self._key})
        return True


# What a host runs for a function. Its standard output is the result and nothing else; what the
# function prints goes to standard error.
_WORKER = """
import base64, os, pickle, sys, traceback, types, zlib
out = os.dup(1)
os.dup2(2, 1)
try:
    text = sys.argv[1]
    if text[0] == "@":
        text = open(text[1:]).read()
    main, path, call = pickle.loads(zlib.decompress(base64.b64decode(text)))
    sys.path[:0] = [p for p in path if p not in sys.path]
    if main:
        module = types.ModuleType("__mp_main__")
        module.__file__ = main[0]
        sys.modules["__main__"] = sys.modules["__mp_main__"] = module
        exec(compile(main[1], main[0], "exec"), module.__dict__)
    function, args, kwargs = pickle.loads(call)
    done = (function(*args, **kwargs), None, "")
except BaseException as e:
    done = (None, e, traceback.format_exc())
try:
    try:
        data = pickle.dumps(done)
    except Exception:
        import cloudpickle
        data = cloudpickle.dumps(done)
    if done[1] is not None:
        pickle.loads(data)
except Exception as e:
    text = done[2] or traceback.format_exc()
    data = pickle.dumps((None, RuntimeError("%s: %s" % (type(done[1] or e).__name__, done[1] or e)), text))
with os.fdopen(out, "wb") as f:
    f.write(base64.b64encode(zlib.compress(data, 1)))
"""
_BOOT = base64.b64encode(zlib.compress(_WORKER.encode(), 9)).decode()
_START = "import base64,sys,zlib;exec(zlib.decompress(base64.b64decode(sys.argv.pop(1))))"
_INLINE = 8192  # longer payloads travel in files: dcs-tui keeps the commands in memory


class Executor(concurrent.futures.Executor):
    """A concurrent.futures.Executor whose workers are the hosts of a dcs-tui run.

    flags are flags of dcs-tui run. dir is the run directory (dcs-runs/python-TIME). python is
    the interpreter on the hosts. send names files and directories that hosts lack: jobs then run
    in directories of their own. log is a file object for what dcs-tui says to people.
    """

    def __init__(self, *flags, dir=None, program="dcs-tui", python="python3", send=(), log=subprocess.DEVNULL):
        name = "python-%s-%d" % (time.strftime("%Y%m%d-%H%M%S"), os.getpid())
        self.dir = dir or os.path.join("dcs-runs", name + "-%x" % (time.time_ns() & 0xFFFFFF))
        self._files = ".dcs-" + os.path.basename(self.dir)  # payloads
        self._program, self._python, self._log, self._travels = program, python, log, bool(send)
        self._flags = list(flags) + [word for path in send for word in ("--send", path)]
        self._lock = threading.Lock()  # of what follows
        self._write = threading.Lock()  # of the pipe; taken before _lock
        self._pending, self._closed, self._numbers = {}, False, itertools.count(1)
        os.makedirs(os.path.dirname(self.dir) or ".", mode=0o700, exist_ok=True)
        self._start()
        self._thread = threading.Thread(target=self._serve, name="dcs-tui", daemon=True)
        self._thread.start()
        atexit.register(self.shutdown)

    def submit(self, what, *args, **kwargs):
        """Run a shell command, or a function with arguments.

        The future of a command has a Result. That of a function has what it returns, or the
        exception that it raises, whose __cause__ holds the traceback of the host.
        """
        job = what if isinstance(what, Job) else Job(what)
        key = str(job.options.get("id") or "py-%d" % next(self._numbers))
        line = dict(job.options, id=key)
        function = not isinstance(job.what, str)
        if function:
            line.update(self._call(key, job.what, args, kwargs))
            line.setdefault("name", getattr(job.what, "__name__", "function")[:100])
        elif args or kwargs:
            raise TypeError("a command takes no arguments")
        else:
            line["command"] = job.what
        future = _Future(self, key, line, function)
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._pending[key] = future
        self._send(line)
        return future

    def _call(self, key, function, args, kwargs):
        """Return the keys of a job that calls a function."""
        call = self._dumps((function, args, kwargs))
        main, script = None, getattr(sys.modules["__main__"], "__file__", None)
        if b"__main__" in call and script:  # its functions are found in a copy of the script
            with open(script, encoding="utf-8") as f:
                main = (os.path.abspath(script), f.read())
        path = [os.path.abspath(p) for p in sys.path if os.path.isdir(p or ".") and not p.startswith(sys.prefix)]
        data = zlib.compress(pickle.dumps((main, path, call)))
        payload, keys = base64.b64encode(data).decode(), {}
        if len(payload) > _INLINE:
            os.makedirs(self._files, mode=0o700, exist_ok=True)
            name = os.path.join(self._files, key.replace(os.sep, "_"))
            with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
                f.write(payload)
            payload = "@" + name
            if self._travels:
                keys["send"] = [name]
        keys["command"] = "exec %s -c %s %s %s" % (self._python, shlex.quote(_START), _BOOT, shlex.quote(payload))
        return keys

    @staticmethod
    def _dumps(call):
        try:
            return pickle.dumps(call)
        except Exception:  # a lambda, say
            if cloudpickle is None:
                raise
            return cloudpickle.dumps(call)

    def shutdown(self, wait=True, *, cancel_futures=False):
        """End the run after its last job; with cancel_futures cancel what is not over."""
        with self._lock:
            self._closed = True
            pending = list(self._pending.values())
        for future in pending if cancel_futures else ():
            future.cancel()
        with self._write:
            self._close_input()
        if wait:
            self._thread.join()
            shutil.rmtree(self._files, ignore_errors=True)
        atexit.unregister(self.shutdown)

    def _close_input(self):
        try:
            self._process.stdin.close()
        except OSError:
            pass  # it was killed

    def _send(self, line):
        with self._write:
            self._put(line)

    def _put(self, line):
        try:
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # it was killed: _start sends what has no result again; or it has ended

    def _start(self):
        """Start dcs-tui. Jobs that the run has already are not run again."""
        words = ["run", "--run-dir", self.dir] + self._flags
        if os.path.exists(os.path.join(self.dir, "run.toml")):
            words = ["resume", self.dir]
        with self._write:
            self._process = subprocess.Popen(
                [self._program, words[0], "--no-tui", "--json", "--output"] + words[1:] + ["-"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
            with self._lock:
                pending, closed = list(self._pending.values()), self._closed
            for future in pending:
                self._put(future._line)
                if future.cancelled():
                    self._put({"cancel": future._key})
            if closed:
                self._close_input()

    def _serve(self):
        deaths = 0
        while True:
            for line in self._process.stdout:
                if line.endswith(b"\n"):  # half a line comes again
                    deaths = 0
                    self._take(json.loads(line))
            code = self._process.wait()
            if code >= 0 or deaths == 10:
                break
            deaths += 1
            time.sleep(1 if deaths > 1 else 0)
            self._start()
        with self._lock:
            self._closed, left, self._pending = True, list(self._pending.values()), {}
        for future in left:
            self._finish(future, error=StoppedError(
                "dcs-tui ended with code %d; dcs-tui resume %s continues the run" % (code, shlex.quote(self.dir))))

    def _take(self, fields):
        if "state" not in fields and "error" not in fields:
            return  # the answer to a cancel
        with self._lock:
            future = self._pending.pop(fields.get("id"), None)
        if future is None:
            return  # another's, or a repeat
        if self._files in future._line.get("command", ""):
            try:
                os.remove(os.path.join(self._files, future._key.replace(os.sep, "_")))
            except OSError:
                pass
        if "error" in fields:
            self._finish(future, error=JobError(fields["error"]))
            return
        result = Result(fields)
        if result.state != "succeeded" or "output_error" in fields:
            cause = fields.get("reason") or result.signal or fields.get("output_error") or "exit %s" % result.exit
            text = "job %d is %s: %s" % (result.job, result.state, cause)
            if result.stderr:
                text += "; see " + result.stderr
            self._finish(future, error=JobError(text, result))
        elif not future._function:
            self._finish(future, result)
        else:
            try:
                sys.modules.setdefault("__mp_main__", sys.modules["__main__"])
                value, error, trace = pickle.loads(zlib.decompress(base64.b64decode(fields["output"])))
                if error is not None:
                    error.__cause__ = RemoteTraceback(trace)
            except Exception as e:
                value, error = None, e
            self._finish(future, value, error)

    @staticmethod
    def _finish(future, value=None, error=None):
        try:
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)
        except concurrent.futures.InvalidStateError:
            pass  # it was cancelled
