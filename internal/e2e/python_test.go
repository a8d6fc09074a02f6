//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// pythonWithCloudpickle returns a Python of a version that the client supports, with cloudpickle, or "".
var pythonWithCloudpickle = sync.OnceValue(func() string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.Command(name, "-c",
			"import cloudpickle, sys; assert sys.version_info >= (3, 9); cloudpickle.register_pickle_by_value; "+
				"print(sys.executable)").Output()
		if err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	return ""
})

// needPython returns the Python for tests of its client. Without one, the test is skipped.
func needPython(t *testing.T) string {
	t.Helper()
	python := pythonWithCloudpickle()
	if python == "" {
		hosttest.LeaveOut(t, "the Python client: there is no python3 with cloudpickle")
	}
	return python
}

// pythonIn runs a Python program of the client in the lab's directory, and returns its output. The
// program gets the lab's inventory as HOSTS, and the Python that runs it as PYTHON.
func (l *lab) pythonIn(python, stdin string, args ...string) string {
	l.t.Helper()
	cmd := exec.Command(python, append([]string{"-B"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+l.repoPath("clients/python"), "DCS="+program,
		"HOSTS="+l.path("hosts.toml"), "PYTHON="+python)
	p := l.startCommand(cmd)
	late := time.AfterFunc(polltest.Patience, func() { cmd.Process.Signal(syscall.SIGKILL) })
	defer late.Stop()
	end := p.wait()
	if end.code != 0 {
		l.t.Fatalf("exit %d\n%s\n%s", end.code, end.stdout, end.stderr)
	}
	return end.stdout
}

// pythonBegin starts a test program of the client.
const pythonBegin = `
import os, sys
from dcs_tui import *
def executor(python=os.environ["PYTHON"], **more):
    return Executor("--hosts", os.environ["HOSTS"], program=os.environ["DCS"], python=python, log=sys.stderr, **more)
`

// TestPythonShipsCode calls functions of programs that hosts cannot import: from standard input, of
// -c, and of a package that is run with -m and has relative imports. It also checks that an edit of
// the file during the run changes nothing.
func TestPythonShipsCode(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	call := pythonBegin + `
class Wrong(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b
def add(x):
    if x < 0:
        raise Wrong("negative", x)  # the line of the error
    return x + 1
with executor() as e:
    e1 = e.submit(add, -3).exception()
    assert type(e1) is Wrong and e1.b == -3, e1
    print(e.submit(add, 1).result())
`
	for name, args := range map[string][]string{"standard input": {"-"}, "-c": {"-c", call}} {
		if got := l.pythonIn(python, call, args...); got != "2\n" {
			t.Errorf("%s: got %q, want 2", name, got)
		}
	}
	l.mkdir("pkg")
	l.writeFile("pkg/__init__.py", "")
	l.writeFile("pkg/helper.py", "class Point:\n    def __init__(self, x):\n        self.x = x\n"+
		"def move(p):\n    return Point(p.x + 1)\n")
	l.writeFile("pkg/main.py", pythonBegin+`
from . import helper
from .helper import Point
def twice(p):
    return helper.move(helper.move(p))
def fail():
    raise ValueError("no")  # the line of the error
with executor() as e:
    p = e.submit(twice, Point(1)).result()
    assert type(p) is Point, type(p)
    open("pkg/helper.py", "w").write("1 / 0")
    open("pkg/main.py", "w").write("1 / 0")
    error = e.submit(fail).exception()
    print(p.x, e.submit(twice, p).result().x, list(e.map(twice, [p], chunksize=1))[0].x)
    trace = str(error.__cause__)
    assert "in fail" in trace and "# the line of the error" in trace and "_worker" not in trace, trace
`)
	if got := l.pythonIn(python, "", "-m", "pkg.main"); got != "3 5 5\n" {
		t.Errorf("-m pkg.main: got %q, want 3 5 5", got)
	}
}

// TestPythonMistakes makes mistakes of newcomers: an id that is given twice, whose second job would get
// no result; arguments that are no flags; and hosts that do not answer, of which a program without a log
// would hear nothing.
func TestPythonMistakes(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	l.writeFile("dead.toml", "[[host]]\nname = \"ws09\"\nlink = [\"false\"]\n")
	got := l.pythonIn(python, pythonBegin+`
import threading
import dcs_tui._executor
def refused(call, text):
    try:
        call()
    except ValueError as e:
        assert text in str(e), e
    else:
        raise AssertionError("accepted: " + text)
refused(lambda: Executor(4, program=os.environ["DCS"]), "flags of dcs-tui run")
with Executor("--hosts", os.environ["HOSTS"], "--max-slots", 2, program=os.environ["DCS"]) as e:
    first = e.submit(Job("sleep 1000", id="a"))
    refused(lambda: e.submit(Job("echo 2", id="a")), "the id a")
    first.cancel()
    zero = e.submit(Job("echo 3", id=0))
    assert zero.key == "0" and zero.result().output == "3\n"
    refused(lambda: e.submit(Job("echo 4", id=0)), "the id 0")
    assert "slots" in str(e.submit(Job("echo 5", id="b", slot=1)).exception())
    assert e.submit(Job("echo 5", id="b")).result().output == "5\n"
    assert list(e.map(Job(abs, id="m"), [-1])) == [1]
    error = str(e.submit(Job("echo 'no data' >&2; exit 7", tries=1)).exception())
    assert "failed: exit 7 (no data); see /" in error, error
    assert e.results()[-1].exit == 7, e.results()
    refused(lambda: e.map(Job(abs, id="m"), [-1]), "the id m")

class Log:
    said = threading.Event()
    def write(self, text):
        if "ws09" in text:
            self.said.set()
    def flush(self):
        pass
real, sys.stderr = sys.stderr, Log()
dcs_tui._executor._PATIENCE = 0.0
class Slow(Executor):
    def _tell_of_silence(self):
        while not (self._pending and any("ws09" in line for line in list(self._said))):
            threading.Event().wait(0.05)
        super()._tell_of_silence()
e = Slow("--hosts", os.path.join(os.path.dirname(os.environ["HOSTS"]), "dead.toml"), program=os.environ["DCS"])
job = e.submit("true")
assert Log.said.wait(60)
e.shutdown(cancel_futures=True)
sys.stderr = real
with Executor("--hosts", os.path.join(os.path.dirname(os.environ["HOSTS"]), "dead.toml"), "--give-up", "1s",
              program=os.environ["DCS"], log=sys.stderr) as e:
    e.submit(Job("true", tags="nosuch"))
    error = e.submit("true").exception()
    assert isinstance(error, StoppedError) and "hosts: ws09 ran nothing" in str(error), error
    assert "no host could be used" in str(error), error
print("done")
`, "-")
	if got != "done\n" {
		t.Errorf("got %q", got)
	}
}

// TestPythonWithoutCloudpickle checks that a call that only cloudpickle can send is refused with its name.
func TestPythonWithoutCloudpickle(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	got := l.pythonIn(python, `
import sys
sys.modules["cloudpickle"] = None
`+pythonBegin+`
def mine():
    pass
with executor() as e:
    for function in mine, lambda: 1:
        try:
            e.submit(function)
        except TypeError as error:
            print("pip install cloudpickle" in str(error), error)
`, "-")
	if strings.Count(got, "True") != 2 {
		t.Errorf("got %q", got)
	}
}

// TestPythonMap checks that map returns results in the order of its arguments, that calls share
// jobs, that after a crash only the calls without a result run again, and that a call that cannot be
// sent has an error and does not keep the run open.
func TestPythonMap(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	l.mkdir("ran")
	l.writeFile("map.py", pythonBegin+`
import time
def note(x):
    with open("ran/%d" % x, "a") as f:
        f.write(os.environ["DCS_JOB_ID"] + "\n")
    return os.environ["DCS_JOB_ID"]
def crash(x):
    times = os.path.exists("ran/%d" % x)
    note(x)
    if x == 3 and not times:
        os._exit(9)
    return x
def fail(x):
    if x == 1:
        raise ValueError(x)
    return x
def always(x):
    if x == 1:
        os._exit(9)
    return x
def slow(x):
    if x == 1:
        time.sleep(600)
    return x
with executor(dir="run") as e:
    jobs = list(e.map(note, range(100, 110), chunksize=4))
    assert [jobs.count(j) for j in dict.fromkeys(jobs)] == [4, 4, 2], jobs
    assert list(e.map(crash, range(6), chunksize=6)) == list(range(6))
    assert list(e.map(pow, range(300), [2] * 300)) == [x * x for x in range(300)]
    results = e.map(fail, range(3), chunksize=3)
    assert next(results) == 0
    try:
        next(results)
        assert False
    except ValueError as error:
        assert error.args == (1,), error
    results = e.map(Job(always, tries=2), range(3), chunksize=3)
    assert next(results) == 0
    try:
        next(results)
        assert False
    except JobError as error:
        assert error.result.exit == 9, error
    results = e.map(Job(slow, tries=1, timeout="5s"), range(2), chunksize=2)
    assert next(results) == 0
    try:
        next(results)
        assert False
    except JobError as error:
        assert "runs longer than timeout=5s" in str(error), error
    assert list(e.map(len, ["a"])) == [1]
    try:
        e.map(len, ["a"], reuse=True)
        assert False
    except NotImplementedError as error:
        assert "chunksize" in str(error), error
    def full(path, fill):
        raise OSError("no space left")
    e._ship.write = full
    results = e.map(len, ["a", "b" * 100000], chunksize=1)
    assert next(results) == 1
    try:
        next(results)
        assert False
    except OSError:
        del e._ship.write
    late = e.map(note, range(200, 205), chunksize=1)
assert len(list(late)) == 5
`)
	l.pythonIn(python, "", "map.py")
	for x := range 6 {
		want := 1
		if x == 3 {
			want = 2
		}
		if n := strings.Count(l.readFile(l.path("ran/"+string(rune('0'+x)))), "\n"); n != want {
			t.Errorf("call %d ran %d times, want %d", x, n, want)
		}
	}
}

// TestPythonResults sends results that do not fit into a line of --json, errors whose class the
// client lacks, and values whose classes belong to the client.
func TestPythonResults(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	l.writeFile("results.py", pythonBegin+`
import array, asyncio, enum, pickle, subprocess, threading
class Color(enum.Enum):
    RED = 1
class Block(bytearray):
    def __reduce_ex__(self, protocol):
        return Block, (pickle.PickleBuffer(self),)
class View:
    def __init__(self, data):
        self.view = memoryview(data)
    def __reduce_ex__(self, protocol):
        return View, (pickle.PickleBuffer(self.view),)
def block(n):
    return [Block(b"a" * n), Block(b"b" * n)]
def color():
    return Color.RED
def lock():
    raise ValueError(threading.Lock())
def foreign():
    import threading
    class Own(Exception):
        held = threading.Lock()
    raise Own("text")
def size(data):
    return [len(d) for d in data]
async def wait(e):
    assert await e.submit(size, ["ab"]) == [2]
    return sorted([(await f)[0] async for f in as_completed([e.submit(size, ["a" * i]) for i in range(3)])])
with executor() as e:
    a, b = e.submit(block, 20 << 20).result()
    assert a == b"a" * (20 << 20) and b == b"b" * (20 << 20)
    assert e.submit(size, [a, b]).result() == [20 << 20] * 2
    assert len(e.submit(bytes, 40 << 20).result()) == 40 << 20
    for n in 100, 4 << 20:
        view = e.submit(View, bytearray(b"v") * n).result().view
        view[0] = 0
        assert len(view) == n and view[1] == ord("v"), view
    large = e.submit("head -c 3000000 /dev/zero | tr '\\0' x").result()
    assert "output" not in vars(large) and large.output_bytes == 3000000, vars(large)
    again = pickle.loads(pickle.dumps(large))
    assert large.output == again.output == "x" * 3000000 and large.buffer()[:3] == b"xxx"
    error = e.submit(Job("head -c 3000000 /dev/zero; exit 3", tries=1)).exception()
    assert "exit 3" in str(error) and error.result.output == "\0" * 3000000, error
    assert e.submit("printf '\\377'").result().buffer()[:] == b"\377"
    assert e.submit(color).result() is Color.RED
    for function, text in (lock, "ValueError: <unlocked"), (foreign, "Own: text"):
        error = e.submit(function).exception()
        assert type(error) is RemoteError and text in str(error) and "raise" in str(error.__cause__), repr(error)
    assert asyncio.run(wait(e)) == [0, 1, 2]
    try:
        e.submit(size, threading.Lock())
        assert False
    except TypeError as error:
        assert "cannot be sent" in str(error), error
outputs = lambda: [r.output for r in e.results() if r.command.startswith("printf")]
assert outputs() == ["\ufffd"]
subprocess.run([os.environ["DCS"], "runs", "pack", e.dir], check=True)
assert outputs() == ["\ufffd"] and any(name.endswith(".zip") for name in os.listdir(e.dir + "/attempts"))
open(os.path.join(e.dir, "attempts", "000.0.zip"), "w").close()  # a job may put anything there
assert outputs() == ["\ufffd"]
`)
	l.pythonIn(python, "", "results.py")
}

// TestPythonVersions checks that code of the main program does not run on another Python than the
// client's, that the error names both, and that functions of installed modules still run there.
func TestPythonVersions(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	l.writeFile("versions.py", pythonBegin+`
def own(x):
    return x
with open("other", "w") as f:
    f.write("#!%s\nimport runpy, sys\nsys.implementation.name = 'otherpython'\nsys.argv = sys.argv[1:]\n"
            "runpy.run_path(sys.argv[0], run_name='__main__')\n" % sys.executable)
os.chmod("other", 0o700)
with executor(python=os.path.abspath("other")) as e:
    error = e.submit(Job(own, tries=1), 1).exception()
    assert type(error) is JobError and error.result.exit == 70, repr(error)
    here = "%s %d.%d" % ((sys.implementation.name,) + sys.version_info[:2])
    assert "needs %s," % here in str(error) and "is otherpython 3." in str(error), error
    assert e.submit(pow, 2, 5).result() == 32
    results = e.map(Job(own, tries=1), range(4), chunksize=2)
    try:
        next(results)
        assert False
    except JobError as error:
        assert "is otherpython 3." in str(error), error
`)
	l.pythonIn(python, "", "versions.py")
}

// TestPythonInterrupted checks that the first Ctrl-C cancels the jobs and says so, and that the next
// one leaves, with the command that ends what goes on. dcs-tui is stopped before the second, so it
// cannot end earlier.
func TestPythonInterrupted(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	l.writeFile("interrupted.py", pythonBegin+`
import signal, time
class Said:
    def __init__(self, out):
        self.out, self.texts, self.again = out, [], False
    def flush(self):
        self.out.flush()
    def write(self, text):
        self.out.write(text)
        self.texts.append(text)
        if self.again and "again leaves" in text:
            os.kill(os.getpid(), signal.SIGINT)
sys.stderr = said = Said(sys.stderr)
signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupted(e, name, stop):
    try:
        with e:
            future = e.submit("touch %s; sleep 600" % name)
            while not os.path.exists(name):
                time.sleep(0.05)
            if stop:
                os.kill(e._process.pid, signal.SIGSTOP)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return future
future = interrupted(executor(dir="first"), "started1", False)
assert future.exception().result.state == "canceled", future
assert "canceling 1 job of first; Ctrl-C again leaves" in "".join(said.texts), said.texts
said.again = True
e = executor(dir="second")
interrupted(e, "started2", True)
text = "".join(said.texts)
assert "left second" in text and "dcs-tui cancel second --yes" in text, text
os.kill(e._process.pid, signal.SIGCONT)
e._process.wait()
`)
	l.pythonIn(python, "", "interrupted.py")
	l.run("cancel", l.path("second"), "--yes")
}

// TestPythonSubmitit checks the interface of submitit: results, arrays, batches, what functions print,
// commands, sequences, and failures. With DCS_LONG=1, and where the real package is installed, its
// output is the same.
func TestPythonSubmitit(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	l.writeFile("example.py", `
import asyncio, os, sys, time
if sys.argv[1] == "real":
    import logging, submitit
    logging.getLogger("submitit").setLevel(logging.CRITICAL)
    more = {"cluster": "local"}
else:
    from dcs_tui import submitit
    more = {"program": os.environ["DCS"], "python": os.environ["PYTHON"], "flags": ["--hosts", os.environ["HOSTS"]]}
def add(a, b):
    print("adding", a, b)
    return a + b
def bad(x):
    raise ValueError(x)
def where():
    here = submitit.JobEnvironment()
    return (here.job_id, here.num_tasks, here.num_nodes, here.node, here.global_rank, here.local_rank,
            here.hostname == here.hostnames[0], here.activated())
executor = submitit.AutoExecutor(folder=sys.argv[1] + "-log/%j", slurm_max_num_timeout=2, **more)
executor.update_parameters(timeout_min=5, slurm_partition="dev", slurm_array_parallelism=2, name="adds", mem_gb=None)
job = executor.submit(add, 5, 7)
print(job.result(), job.exception(), job.done(), job.state, job.num_tasks, job.task(0) is job)
print("adding 5 7" in job.stdout(), job.paths.stdout.name == job.job_id + "_0_log.out",
      job.paths.folder.name == job.job_id, job.paths.stderr.exists())
print(job.submission().function.__name__, job.submission().args, job.submission().kwargs)
print(asyncio.run(job.awaitable().result()))
print([job.result() for job in executor.map_array(add, [1, 2, 3], [10, 20, 30])])
print([job.result() for job in executor.submit_array([where, dict])][1])
jobs = []
with executor.batch():
    for i in range(3):
        jobs.append(executor.submit(add, i, b=1))
        try:
            jobs[0].job_id
        except AttributeError as e:
            print(type(e).__name__)
    try:
        executor.update_parameters(timeout_min=1)
    except RuntimeError as e:
        print(type(e).__name__)
print(sorted(job.result() for job in submitit.helpers.as_completed(jobs, poll_frequency=0.1)), jobs[0].results())
try:
    with executor.batch():
        executor.submit(add, 1, 1)
        raise KeyError
except KeyError:
    print("nothing is submitted")
job = executor.submit(where)
found = job.result()
print(found[0] == job.job_id, found[1:])
try:
    submitit.JobEnvironment()
except RuntimeError as e:
    print(type(e).__name__)
command = submitit.helpers.CommandFunction(["echo", "a"], verbose=False)
print(command("here"), "|", executor.submit(command, "b", c=1).result())
job = executor.submit(submitit.helpers.CommandFunction(["sh", "-c", "echo no >&2; exit 3"]))
print(type(job.exception()).__name__, "no" in job.stderr())
sequence = submitit.helpers.FunctionSequence()
sequence.add(add, 1, 2)
sequence.add(pow, 2, 5)
print(executor.submit(sequence).result())
job = executor.submit(bad, "x")
e = job.exception()
print(type(e).__name__, "ValueError: x" in str(e), "in bad" in str(e), "ValueError: x" in job.stderr())
try:
    job.result()
except RuntimeError as e:
    print(type(e).__name__)
try:
    executor.update_parameters(nonsense=1)
except NameError as e:
    print(type(e).__name__)
`)
	ours := l.pythonIn(python, "", "example.py", "ours")
	want := `12 None True FINISHED 1 True
True True True True
add (5, 7) {}
12
[11, 22, 33]
{}
AttributeError
AttributeError
AttributeError
RuntimeError
[1, 2, 3] [1]
nothing is submitted
True (1, 1, 0, 0, 0, True, True)
RuntimeError
a here | a b --c=1
FailedJobError True
[3, 32]
FailedJobError True True True
FailedJobError
NameError
`
	if ours != want {
		t.Errorf("got\n%swant\n%s", ours, want)
	}
	if !polltest.Scale(false, false, true) || exec.Command(python, "-c", "import submitit").Run() != nil {
		t.Logf("not compared: without DCS_LONG=1, or %s has no submitit", python)
	} else if real := l.pythonIn(python, "", "example.py", "real"); real != ours {
		t.Errorf("the real package prints\n%sours\n%s", real, ours)
	}
}

// TestPythonSubmititDiffers checks what the real package lacks or takes minutes for: a function that
// continues after its timeout, one that does not want to, and errors that name what is not available.
func TestPythonSubmititDiffers(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	l.writeFile("differs.py", `
import os, pickle, time
from dcs_tui import submitit
from dcs_tui.submitit.helpers import Checkpointable
class Count(Checkpointable):
    def __init__(self):
        self.n = 0
    def __call__(self, x):
        self.n += 1
        while self.n < 2:
            time.sleep(0.01)
        return self.n, x
class Never:
    def __call__(self):
        time.sleep(600)
    def checkpoint(self):
        return None
executor = submitit.AutoExecutor(folder="log", program=os.environ["DCS"], python=os.environ["PYTHON"],
                                 flags=["--hosts", os.environ["HOSTS"]])
executor.update_parameters(timeout_min=0.05)
n, x = executor.submit(Count(), "x").result()
assert n >= 2 and x == "x", n
e = executor.submit(Never()).exception()
assert type(e) is submitit.helpers.UncompletedJobError and "returned None" in str(e), repr(e)
executor.update_parameters(timeout_min=60, stderr_to_stdout=True)
job = executor.submit(time.sleep, 600)
for what in (lambda: job.paths.result_pickle, lambda: job._interrupt(), lambda: submitit.SlurmExecutor,
             lambda: submitit.helpers.RsyncSnapshot("x"), lambda: submitit.AutoExecutor("log", cluster="debug")):
    try:
        what()
        assert False
    except NotImplementedError as e:
        assert "dcs" in str(e), e
try:
    pickle.dumps(job)
    assert False
except TypeError as e:
    assert "dcs-tui resume" in str(e), e
try:
    executor.update_parameters(nodes=2)
    assert False
except ValueError as e:
    assert "one process on one host" in str(e), e
final = job._call.final
job.cancel_at_deletion()
del job
assert "canceled" in str(final.exception()), final.exception()
`)
	l.pythonIn(python, "", "differs.py")
}

// TestPythonPackage runs the doctests and the first lines of the README, and checks types, the oldest
// version of Python, and the installation where the tools for that are installed.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	python := needPython(t)
	l := newLocalLab(t, 2, "")
	if got := l.pythonIn(python, `
import doctest, importlib, pkgutil, dcs_tui
tried = 0
for module in pkgutil.walk_packages(dcs_tui.__path__, "dcs_tui."):
    failed, n = doctest.testmod(importlib.import_module(module.name))
    assert not failed
    tried += n
print(tried >= 10)
`, "-"); got != "True\n" {
		t.Errorf("doctests: got\n%s", got)
	}
	_, code, _ := strings.Cut(l.readFile(l.repoPath("clients/python/README.md")), "```python\n")
	code, _, _ = strings.Cut(code, "```")
	begin := "import os\nos.environ['PATH'] = os.path.dirname(os.environ['DCS']) + ':' + os.environ['PATH']\n"
	if got := l.pythonIn(python, begin+code, "-"); !strings.HasSuffix(got, "46656, 823543, 16777216, 387420489]\n") {
		t.Errorf("README: got %q", got)
	}
	source := l.path("source")
	must(t, os.CopyFS(source, os.DirFS(l.repoPath("clients/python"))))
	for name, args := range map[string][]string{
		"mypy":       {"-m", "mypy", "--strict", "--cache-dir", l.path("cache"), "dcs_tui"},
		"vermin":     {"-c", "import vermin; vermin.main()", "-q", "-t=3.9-", "--eval-annotations", "dcs_tui"},
		"setuptools": nil,
	} {
		if name != "setuptools" && !polltest.Scale(false, false, true) {
			t.Logf("not checked without DCS_LONG=1, because versions differ in what they find: %s", name)
			continue
		}
		if exec.Command(python, "-c", "import "+name).Run() != nil {
			t.Logf("not checked: %s has no %s", python, name)
			continue
		}
		if name == "setuptools" {
			args = []string{
				"-m",
				"pip",
				"--isolated",
				"install",
				"-q",
				"--no-index",
				"--no-deps",
				"--no-build-isolation",
				"--disable-pip-version-check",
				"--root-user-action",
				"ignore",
				"--target",
				l.path("installed"),
				".",
			}
			if exec.Command(python, "-c", "import setuptools, wheel, pip; "+
				"assert int(setuptools.__version__.split('.')[0]) >= 61 and int(pip.__version__.split('.')[0]) >= "+
				"23").Run() != nil {
				t.Logf("pip install is not checked: %s has no setuptools, wheel, and pip for it", python)
				continue
			}
		}
		cmd := exec.Command(python, args...)
		cmd.Dir, cmd.Env = source, append(os.Environ(), "PIP_CONFIG_FILE="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
