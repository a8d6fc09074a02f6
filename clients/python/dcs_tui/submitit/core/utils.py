"""Errors, paths, calls for later, and commands as functions: submitit.core.utils."""
import contextlib
import importlib
import itertools
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator, List, Optional, Union


class UncompletedJobError(RuntimeError):
    """The job ended without a result."""


class FailedJobError(UncompletedJobError):
    """The function raised an exception, whose traceback is in the text."""


class FailedSubmissionError(RuntimeError):
    """Not raised here: there is no submission that a batch system could refuse."""


@contextlib.contextmanager
def environment_variables(**variables: Any) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update({name: str(value) for name, value in variables.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class JobPaths:
    """The files of a job: what its function prints. %j in the folder is the id of the job.

    >>> JobPaths("/logs/%j", "7").stdout.as_posix()
    '/logs/7/7_0_log.out'
    >>> JobPaths.get_first_id_independent_folder("/logs/%j/a").as_posix()
    '/logs'
    """

    def __init__(self, folder: Union[str, Path], job_id: Optional[str] = None, task_id: Optional[int] = None) -> None:
        self._folder, self.job_id, self.task_id = Path(folder).expanduser().absolute(), job_id, task_id or 0

    @property
    def folder(self) -> Path:
        return self._path("")

    @property
    def stdout(self) -> Path:
        return self._path("%j_%t_log.out")

    @property
    def stderr(self) -> Path:
        return self._path("%j_%t_log.err")

    def _path(self, name: str) -> Path:
        path = str(self._folder / name)
        return Path(path if self.job_id is None else path.replace("%j", self.job_id).replace("%t", str(self.task_id)))

    def __getattr__(self, name: str) -> Any:
        if name in ("submission_file", "submitted_pickle", "result_pickle"):
            raise NotImplementedError("a job of dcs-tui has no %s: the run directory holds calls and results, and "
                                      "job.submission() and job.result() return them" % name)
        raise AttributeError(name)

    @staticmethod
    def get_first_id_independent_folder(folder: Union[str, Path]) -> Path:
        """Return the part of a path before %j or %t."""
        parts = Path(folder).expanduser().absolute().parts
        return Path(*itertools.takewhile(lambda part: "%j" not in part and "%t" not in part, parts))

    def __repr__(self) -> str:
        return "JobPaths(%s)" % self.folder


class DelayedSubmission:
    """A call for later. What checkpoint returns is submitted again.

    >>> DelayedSubmission(pow, 2, 5).result()
    32
    """

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self._result, self._done = None, False  # type: Any, bool

    def result(self) -> Any:
        """Call the function, the first time, and return what it returned."""
        if not self._done:
            self._result, self._done = self.function(*self.args, **self.kwargs), True
        return self._result

    def done(self) -> bool:
        return self._done

    def dump(self, filepath: Union[str, Path]) -> None:
        with open(filepath, "wb") as f:
            importlib.import_module("cloudpickle").dump(self, f)

    @classmethod
    def load(cls, filepath: Union[str, Path]) -> "DelayedSubmission":
        with open(filepath, "rb") as f:
            loaded = pickle.load(f)
        assert isinstance(loaded, cls), loaded
        return loaded


class CommandFunction:
    """A function that runs a command, which is a list, and returns what it prints.

    Arguments of the call are added to the command, and keywords as --key=value. With verbose, the
    output is also printed while the command runs.

    >>> CommandFunction(["echo", "a"], verbose=False)("b", c=1)
    'a b --c=1'
    """

    def __init__(self, command: List[str], verbose: bool = True, cwd: Optional[Union[str, Path]] = None,
                 env: Optional[Dict[str, str]] = None) -> None:
        if not isinstance(command, list):
            raise TypeError("The command must be provided as a list")
        self.command, self.verbose, self.env = command, verbose, env
        self.cwd = None if cwd is None else str(cwd)

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        words = self.command + [str(a) for a in args] + ["--%s=%s" % pair for pair in kwargs.items()]
        if self.verbose:
            print('The following command is sent: "%s"' % " ".join(words))
        texts: List[List[str]] = [[], []]

        def read(stream: IO[str], to: Any, parts: List[str]) -> None:
            for line in stream:
                parts.append(line)
                if self.verbose:
                    to.write(line)
                    to.flush()

        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.cwd, env=self.env,
                              encoding="utf-8", errors="replace") as process:
            assert process.stdout and process.stderr
            reader = threading.Thread(target=read, args=(process.stderr, sys.stderr, texts[1]))
            reader.start()
            read(process.stdout, sys.stdout, texts[0])
            reader.join()
        out, err = ("".join(parts).strip() for parts in texts)
        if process.returncode:
            if err and not self.verbose:
                print(err, file=sys.stderr)
            raise FailedJobError(err) from subprocess.CalledProcessError(process.returncode, words, out, err)
        return out
