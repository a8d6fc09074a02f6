"""The pools of Python that are compared. Each has the slots of the lab: on its hosts, or here.

A pool has pids(), the processes that hold the queue; call(function, arguments), which submits
calls and returns a function that waits for their results; commands(run, lines), the same for shell
commands; and close().
"""
import concurrent.futures
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
import time


class Pool:
    package = ""

    def __init__(self, lab, durable):
        self.lab, self.durable = lab, durable
        self.slots = lab["slots"] * len(lab["hosts"])
        self.hosts = []  # the ssh processes of workers
        self.open()

    @classmethod
    def version(cls):
        __import__(cls.package)
        return importlib.metadata.version(cls.package)

    def pids(self):
        return [os.getpid()]

    def commands(self, run, lines):
        return self.call(run, lines)

    def close(self):
        pass

    def path(self, name):
        return os.path.join(self.lab["dir"], name)

    def ssh(self, host, words):
        """Start a program on a host."""
        process = subprocess.Popen(["ssh", "-F", self.lab["config"], host, "exec " + shlex.join(words)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.hosts.append(process)


class DcsTui(Pool):
    def open(self):
        sys.path.insert(0, self.lab["client"])
        from dcs_tui import Executor
        self.executor = Executor("--hosts", self.lab["inventory"], "--ssh-config", self.lab["config"],
                                 dir=self.path("calls-%d" % os.getpid()), program=self.lab["program"], python=sys.executable)

    def call(self, function, arguments):
        results = self.executor.map(function, arguments)
        return lambda: list(results)

    def close(self):
        self.executor.shutdown()


class ProcessPool(Pool):
    """concurrent.futures, as it is: each call travels by itself."""

    @classmethod
    def version(cls):
        return platform.python_version()

    def open(self):
        self.executor = concurrent.futures.ProcessPoolExecutor(self.slots)

    def call(self, function, arguments):
        results = self.executor.map(function, arguments)
        return lambda: list(results)

    def close(self):
        self.executor.shutdown()


class Loky(ProcessPool):
    package = "loky"
    version = Pool.__dict__["version"]

    def open(self):
        import loky
        self.executor = loky.get_reusable_executor(max_workers=self.slots, timeout=None)


class Joblib(Pool):
    """joblib with its default backend, loky, and its batches of calls."""
    package = "joblib"

    def open(self):
        import joblib
        self.parallel, self.delayed = joblib.Parallel(n_jobs=self.slots), joblib.delayed

    def call(self, function, arguments):
        return lambda: self.parallel(self.delayed(function)(a) for a in arguments)


class Dask(Pool):
    """dask.distributed: a scheduler here, and on each host a worker that ssh starts."""
    package = "distributed"

    def open(self):
        from distributed import Client
        file = self.path("scheduler-%d.json" % os.getpid())
        self.scheduler = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
             "--no-dashboard", "--scheduler-file", file],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(file):
            time.sleep(0.02)
        self.client = Client(scheduler_file=file)
        for host in self.lab["hosts"]:
            self.ssh(host, [sys.executable, "-m", "distributed.cli.dask_worker", self.client.scheduler.address,
                            "--nthreads", str(self.lab["slots"]), "--nworkers", "1", "--no-dashboard",
                            "--local-directory", self.path("dask-" + host)])
        self.client.wait_for_workers(len(self.lab["hosts"]))

    def pids(self):
        return [os.getpid(), self.scheduler.pid]

    def call(self, function, arguments):
        futures = self.client.map(function, list(arguments), pure=False)
        return lambda: self.client.gather(futures)

    def close(self):
        self.client.shutdown()
        self.scheduler.wait()


# Chooses the host of a worker pool by its block and starts the pool there.
ON_HOST = """#!/bin/sh
for word; do
	case $word in --block_id=*) block=${word#*=} ;; esac
done
set -- "$*" %s
command=$1
shift $((block %% ($# - 1) + 1))
exec ssh -F %s "$1" "PATH=%s:\\$PATH exec $command"
"""


class Parsl(Pool):
    """Parsl's HighThroughputExecutor, with a block for each host. It notices after 15 s that a host
    is dead (by default, after 120 s)."""
    package = "parsl"

    def open(self):
        import parsl
        from parsl.config import Config
        from parsl.dataflow.memoization import BasicMemoizer
        from parsl.executors import HighThroughputExecutor
        from parsl.launchers import WrappedLauncher
        from parsl.providers import LocalProvider
        from parsl.utils import get_all_checkpoints
        programs = os.path.dirname(sys.executable)
        os.environ["PATH"] = programs + ":" + os.environ["PATH"]
        script = self.path("on-host")
        with open(script, "w", encoding="utf-8") as f:
            f.write(ON_HOST % (" ".join(self.lab["hosts"]), self.lab["config"], programs))
        os.chmod(script, 0o700)
        n, keep = len(self.lab["hosts"]), {}
        runs = self.durable or self.path("parsl")
        if self.durable:
            os.makedirs(runs, exist_ok=True)
            keep = {"memoizer": BasicMemoizer(checkpoint_mode="task_exit", checkpoint_files=get_all_checkpoints(runs))}
        self.executor = HighThroughputExecutor(
            label="hosts", address="127.0.0.1", cores_per_worker=1e-6, max_workers_per_node=self.lab["slots"],
            heartbeat_period=3, heartbeat_threshold=15,
            provider=LocalProvider(init_blocks=n, min_blocks=n, max_blocks=n, launcher=WrappedLauncher(script)))
        parsl.load(Config(executors=[self.executor], run_dir=runs, retries=3, strategy="none",
                          initialize_logging=False, **keep))
        self.parsl = parsl

    def pids(self):
        interchange = getattr(self.executor, "interchange_proc", None)
        return [os.getpid()] + ([interchange.pid] if interchange else [])

    def call(self, function, arguments):
        app = self.parsl.python_app(function, cache=bool(self.durable))
        futures = [app(a) for a in arguments]
        return lambda: [f.result() for f in futures]

    def close(self):
        self.parsl.dfk().cleanup()


class HyperQueue(Pool):
    """HyperQueue: the package of PyPI has the server and the workers in one process, on one machine."""
    package = "hyperqueue"

    def open(self):
        from hyperqueue import Job
        from hyperqueue.cluster import LocalCluster, WorkerConfig
        self.new_job = Job
        self.cluster = LocalCluster()
        for _ in self.lab["hosts"]:
            self.cluster.start_worker(WorkerConfig(cores=self.lab["slots"]))
        self.client = self.cluster.client()

    def commands(self, run, lines):
        job = self.new_job(self.lab["dir"], max_fails=None)
        for line in lines:
            job.program(["/bin/sh", "-c", line], stdout=None, stderr=None)
        submitted = self.client.submit(job)
        return lambda: self.client.wait_for_jobs([submitted])

    def close(self):
        self.cluster.stop()


POOLS = {"dcs-tui": DcsTui, "concurrent.futures": ProcessPool, "loky": Loky, "joblib": Joblib, "dask": Dask,
         "parsl": Parsl, "hyperqueue": HyperQueue}
