"""Runs the jobs of Snakemake on the hosts of a dcs-tui run.

    snakemake --executor dcs-tui --jobs 100 --dcs-tui-hosts hosts.toml

docs/workflows.md of dcs-tui explains it. Each start of Snakemake is one run in dcs-runs of the
workflow's directory, and each job of Snakemake is one job of it.
"""
import fcntl
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, AsyncGenerator, Dict, List, Optional, cast

import dcs_tui
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase, SharedFSUsage

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_envvar_declarations_to_cmd=False,  # they are options of the job, not words of its command
    auto_deploy_default_storage_provider=False,
)


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    hosts: Optional[str] = field(default=None, metadata={
        "help": "Inventory file of the hosts (default: that of dcs-tui run, such as ./hosts.toml)"})
    flags: Optional[str] = field(default=None, metadata={
        "help": "Further flags of dcs-tui run, as one word: --dcs-tui-flags='--max-slots 50'"})
    program: str = field(default="dcs-tui", metadata={
        "help": "Name or path of the program dcs-tui"})

    def __post_init__(self) -> None:  # before Snakemake changes to its --directory
        if self.hosts:
            self.hosts = os.path.abspath(os.path.expanduser(self.hosts))
        if os.sep in self.program:
            self.program = os.path.abspath(os.path.expanduser(self.program))


class Executor(RemoteExecutor):
    """Submits jobs to a run of dcs-tui, which it starts with the first job."""

    def __post_init__(self) -> None:
        if self.workflow.remote_execution_settings.immediate_submit:
            raise WorkflowError("the executor dcs-tui does not support --immediate-submit")
        self._canceled = False
        self._log = _Log(self.logger)
        self._run: Optional[_Run] = None
        self._root = Path(self.workflow.persistence.path).absolute().parent
        self._marks = Path(self.workflow.persistence.aux_path) / "dcs-tui"
        self._marks.mkdir(parents=True, exist_ok=True)
        try:
            self._program = dcs_tui.find_program(self.workflow.executor_settings.program)
        except FileNotFoundError as e:
            raise WorkflowError(str(e).replace("Executor(program=...)", "--dcs-tui-program"))
        for mark in sorted(self._marks.iterdir()):
            self._end_earlier(mark)

    def _end_earlier(self, mark: Path) -> None:
        """End what a Snakemake that was killed has left, so that nothing runs twice at a time."""
        lock = _lock(mark)
        if lock is None:
            return  # it lives: both have --nolock
        run = self._root / "dcs-runs" / mark.name
        if not _is_over(self._program, run):
            self.logger.info("Ending the jobs of an earlier Snakemake in %s" % run)
            for words in ["cancel", str(run), "--yes"], ["wait", str(run)]:
                subprocess.run([self._program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               check=False)
            if not _is_over(self._program, run):
                run_text = shlex.quote(str(run))
                raise WorkflowError(
                    "jobs of an earlier Snakemake may still run: `dcs-tui status %s` shows them, and "
                    "`dcs-tui cancel %s` ends them as soon as their hosts answer" % (run_text, run_text))
        mark.unlink(missing_ok=True)
        lock.close()

    def _start(self) -> "_Run":
        if self._run is None:
            settings = self.workflow.executor_settings
            name = "snakemake-%s-%d" % (time.strftime("%Y%m%d-%H%M%S"), os.getpid())
            flags = shlex.split(settings.flags or "")
            given = {flag.partition("=")[0] for flag in flags}
            for flag, value in ("--name", name), ("--hosts", settings.hosts):
                if value and flag not in given:
                    flags += [flag, value]
            path = self._root / "dcs-runs" / name
            self._run = _Run(self._program, path, self._marks / name, flags, cast(IO[str], self._log))
            self.logger.info("The jobs run in %s: `dcs-tui attach %s` shows the screen" % (name, shlex.quote(str(path))))
        return self._run

    def run_job(self, job: JobExecutorInterface) -> None:
        try:
            future = self._start().executor.submit(dcs_tui.Job(self.format_job_exec(job), **self._options(job)))
        except (dcs_tui.StoppedError, OSError) as e:
            raise WorkflowError(str(e))
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=future.key, aux={"future": future}))

    def _options(self, job: JobExecutorInterface) -> Dict[str, Any]:
        """Return the options of a job of dcs-tui."""
        resources = job.resources
        name = [job.name]
        for key, value in (json.loads(job.properties()).get("wildcards") or {}).items():
            name.append("%s=%s" % (key, value))
        options: Dict[str, Any] = {
            "name": "".join(c if c.isascii() and c.isprintable() else "?" for c in " ".join(name))[:200],
            "slots": max(1, int(job.threads)),
            "tries": 1,  # Snakemake counts its --retries
            "env": self.envvars(),
        }
        if resources.get("mem_mb"):
            options["mem"] = "%dM" % int(resources["mem_mb"])
        if resources.get("runtime"):
            options["timeout"] = "%dm" % int(resources["runtime"])
        gpus = resources.get("gpus") or resources.get("gpu")
        if gpus:
            options["gpus"] = str(gpus)
        for key, value in resources.items():
            if key.startswith("dcs_"):
                options[key[len("dcs_"):]] = str(value)
        return options

    def get_python_executable(self) -> str:
        return shlex.quote(super().get_python_executable())

    def get_job_exec_prefix(self, job: JobExecutorInterface) -> str:
        storage = self.workflow.storage_settings
        if not storage.assume_common_workdir:
            return ""
        prefix = "cd " + shlex.quote(str(self.workflow.workdir_init))
        if SharedFSUsage.SOFTWARE_DEPLOYMENT in storage.shared_fs_usage:  # as in the environment of this process
            prefix += " && export PATH=%s:\"$PATH\"" % shlex.quote(os.path.dirname(sys.executable))
        return prefix

    async def sleep(self) -> None:
        """Wait before the next check. A check costs nothing, because dcs-tui sends the results."""
        self.next_seconds_between_status_checks = 0.2
        await super().sleep()

    async def check_active_jobs(self, active_jobs: List[SubmittedJobInfo]) -> AsyncGenerator[SubmittedJobInfo, None]:
        for info in active_jobs:
            future = cast(dcs_tui.Future, cast(Dict[str, Any], info.aux)["future"])
            if self._canceled or not future.done():
                yield info
                continue
            try:
                future.result()
            except dcs_tui.StoppedError as e:
                raise WorkflowError(str(e))
            except dcs_tui.JobError as e:
                logs = [path for path in (e.result.stderr, e.result.stdout) if path] if e.result else []
                self.report_job_error(info, msg="%s. " % e, aux_logs=logs)
            else:
                self.report_job_success(info)

    def cancel(self) -> None:
        self._canceled = True
        super().cancel()

    def cancel_jobs(self, active_jobs: List[SubmittedJobInfo]) -> None:
        if self._run is not None:
            self._run.executor.shutdown(wait=False, cancel_futures=True)

    def shutdown(self) -> None:
        super().shutdown()
        if self._run is not None:
            self._log.muted = not self._canceled  # Snakemake has reported each job itself
            if not self._run.close():
                self.logger.error("Jobs of %s may still run. The next start of Snakemake first ends them."
                                  % self._run.path)


class _Run:
    """A run of dcs-tui. A locked file says that its Snakemake lives, and stays while its jobs may run."""

    def __init__(self, program: str, path: Path, mark: Path, flags: List[str], log: IO[str]) -> None:
        self._program, self.path, self._mark = program, path, mark
        self._lock = _lock(mark)
        self.executor = dcs_tui.Executor(*flags, dir=str(path), program=program, log=log)

    def close(self) -> bool:
        """Cancel what is not over, and wait for the end of the run. False: jobs may still run."""
        try:
            self.executor.shutdown(cancel_futures=True)
        except KeyboardInterrupt:
            pass  # the user leaves
        if not _is_over(self._program, self.path):
            return False
        if self._lock is not None:
            self._mark.unlink(missing_ok=True)
            self._lock.close()
            self._lock = None
        return True


class _Log:
    """A file that passes the messages of dcs-tui on to Snakemake's log."""

    def __init__(self, logger: Any) -> None:
        self._logger, self.muted = logger, False

    def write(self, text: str) -> None:
        if text.strip() and not self.muted:
            self._logger.info("dcs-tui: " + text.rstrip())

    def flush(self) -> None:
        pass


def _lock(path: Path) -> Optional[IO[str]]:
    """Create and lock a file. None: another process has locked it."""
    f = open(path, "w")
    try:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        f.close()
        return None
    except OSError:
        pass  # this file system has no locks; Snakemake's own lock remains
    return f


def _is_over(program: str, run: Path) -> bool:
    """Report whether no job of a run can still run, or be started."""
    if not (run / "run.toml").exists():
        return True
    done = subprocess.run([program, "status", "--json", str(run)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          check=False)
    try:
        status = json.loads(done.stdout)
    except ValueError:
        return False
    jobs = status["jobs"]
    return status["owner"] is None and jobs["queued"] + jobs["running"] == 0
