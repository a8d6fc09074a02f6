//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dcstui "dcs-tui/clients/go"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// clientFlags returns the flags of a client's run over the lab's hosts.
func (l *lab) clientFlags(slots int) []string {
	return []string{"--ssh-config", l.servers[0].ConfigFile, "--hosts", l.inventory(slots)}
}

// killDispatcher kills the dispatcher of a run.
func (l *lab) killDispatcher(dir string) {
	l.t.Helper()
	run, err := rundir.Open(dir)
	must(l.t, err)
	owner, err := journal.ReadOwner(run)
	if err != nil || owner.Liveness() != journal.Alive {
		l.t.Fatalf("no dispatcher to kill: %v, %v", owner, err)
	}
	must(l.t, syscall.Kill(owner.PID, syscall.SIGKILL))
}

// TestGoClientGetsEachResultOnce runs the Go client over real sshd and kills its dcs-tui twice in
// the middle. It checks that each job has one result and that each attempt ran once.
func TestGoClientGetsEachResultOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	const n = 60
	l.writeTaggedJobs(0, "")
	var log progtest.Buffer
	c, err := dcstui.Start(dcstui.Options{Program: program, Args: l.clientFlags(2), Dir: l.path("run"), Output: true,
		Log: &log})
	must(t, err)
	defer func() {
		if t.Failed() {
			t.Logf("it said:\n%s", log.String())
		}
	}()
	submit := func(j dcstui.Job) string {
		t.Helper()
		id, err := c.Submit(j)
		must(t, err)
		return id
	}
	for i := range n {
		submit(dcstui.Job{
			ID:     "i" + strconv.Itoa(i),
			Params: map[string]string{"i": strconv.Itoa(i)},
			Command: fmt.Sprintf("echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID; until [ -e %s/$((DCS_PARAM_i / 20)) ]; "+
				"do sleep 0.05; done; echo $DCS_PARAM_i", l.path("ran"), l.path("gate")),
		})
	}
	wrong := submit(dcstui.Job{Command: "true", Options: map[string]any{"slotz": 1}})
	long := submit(dcstui.Job{Command: "sleep 600", Options: map[string]any{"priority": 1, "name": "long"}})
	must(t, os.Mkdir(l.path("gate"), 0o700))
	seen := map[string]*dcstui.Result{}
	open := 0
	next := func() bool {
		for r, err := range c.Results(t.Context()) {
			must(t, err)
			if seen[r.ID] != nil {
				t.Errorf("%s has two results", r.ID)
			}
			seen[r.ID] = r
			if r.ID == wrong && (r.State != "refused" || !strings.Contains(r.Reason, `did you mean slots`)) {
				t.Errorf("got %+v, want a refusal that suggests slots", r)
			}
			return true
		}
		return false
	}
	for len(seen) < n+1 {
		if len(seen) >= open*20 && open < 3 {
			l.until("jobs run", func() bool { return l.numFiles("ran/*") > open*20 })
			if open > 0 {
				l.killDispatcher(l.path("run"))
			}
			l.writeFile("gate/"+strconv.Itoa(open), "")
			open++
		}
		if !next() {
			t.Fatal("the results end early")
		}
	}
	must(t, c.Cancel(long))
	c.CloseInput()
	for next() {
	}
	for i := range n {
		r := seen["i"+strconv.Itoa(i)]
		if r == nil || !r.OK() || r.Output != strconv.Itoa(i)+"\n" || r.Params["i"] != strconv.Itoa(i) || r.Host == "" {
			t.Errorf("job %d: %+v", i, r)
		}
	}
	if _, err := c.Submit(dcstui.Job{ID: "i7", Command: "true"}); err == nil || !strings.Contains(err.Error(), "i7") {
		t.Errorf("an id was taken twice: %v", err)
	}
	if r := seen[long]; r == nil || r.State != "canceled" {
		t.Errorf("the long job: got %+v, want it canceled", r)
	}
	if _, err := c.Submit(dcstui.Job{Command: "true"}); err == nil {
		t.Error("a job was taken after CloseInput")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	l.checkAttemptsRanOnce(n)

	// A program that is started again with the same directory gets the same results.
	again, err := dcstui.Start(dcstui.Options{Program: program, Dir: l.path("run"), Output: true, Log: &log})
	must(t, err)
	again.Submit(dcstui.Job{ID: "i7", Command: "false"})
	again.Submit(dcstui.Job{ID: "new", Command: "echo new"})
	again.CloseInput()
	for range 2 {
		if r, err := again.Next(t.Context()); err != nil || r.ID == "i7" && r.Output != "7\n" || r.ID == "new" &&
			r.Output != "new\n" {
			t.Errorf("Next: got %+v, %v; want the earlier output of i7, and that of new", r, err)
		}
	}
	if _, err := again.Next(t.Context()); err != io.EOF {
		t.Errorf("Next after the last result: got error %v, want io.EOF", err)
	}
	l.checkAttemptsRanOnce(n)
}

// TestGoClientThatIsStopped checks that a program that a user or a wrong flag has stopped is not
// started again.
func TestGoClientThatIsStopped(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	bad, err := dcstui.Start(dcstui.Options{Program: program, Args: []string{"--no-such-flag"}, Dir: l.path("bad")})
	must(t, err)
	var stopped *dcstui.StoppedError
	if _, err := bad.Next(t.Context()); !errors.As(err, &stopped) || stopped.Code != 2 {
		t.Errorf("Next: got error %v, want a StoppedError with exit code 2", err)
	}
	c, err := dcstui.Start(dcstui.Options{Program: program, Args: l.clientFlags(1), Dir: l.path("run")})
	must(t, err)
	c.Submit(dcstui.Job{Command: "touch " + l.path("started") + "; sleep 600"})
	l.until("the job runs", func() bool { return l.numFiles("started") == 1 })
	l.writeFile("run/STOP.now", "")
	if r, err := c.Next(t.Context()); err != nil || r.State != "canceled" {
		t.Errorf("Next after STOP.now: got %+v, %v; want a canceled job", r, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

const pythonClient = `
import os, signal, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from concurrent.futures import as_completed, CancelledError, TimeoutError, wait
from dcs_tui import Executor, Job, JobError, Result, StoppedError

class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b

def square(x, gate=None):
    print("noise")
    if gate:
        with open("ran/%s" % os.environ["DCS_JOB_ID"], "a") as f:
            f.write(os.environ["DCS_ATTEMPT"] + "\n")
        while not os.path.exists(gate):
            time.sleep(0.05)
    return x * x

def fail(x):
    raise KeyError(x)

def odd():
    raise Odd(1, 2)

def size(data):
    return len(data), data[:3]

def closed(value):
    return lambda: value

def main():
    executor = Executor(*sys.argv[4:], program=sys.argv[2], dir="run", python=sys.executable, log=open("py.err", "a"))
    with executor:
        futures = {executor.submit(square, i, gate="gate"): i for i in range(40)}
        while not os.listdir("ran"):
            for f in futures:
                assert not f.done() or f.result() is None
            time.sleep(0.05)
        os.kill(executor._process.pid, signal.SIGKILL)
        open("gate", "w").close()
        got = []
        for f in as_completed(futures, timeout=600):
            assert f.result() == futures[f] ** 2, f
            got.append(f)
            if len(got) == 20:
                os.kill(executor._process.pid, signal.SIGKILL)
        assert len(got) == 40
        assert list(executor.map(pow, range(5), [2] * 5)) == [0, 1, 4, 9, 16]
        r = executor.submit("echo $X; echo err >&2", ).result()
        assert isinstance(r, Result) and r.output == "\n" and r.exit == 0 and r.state == "succeeded", vars(r)
        assert executor.submit(Job("echo $X", env={"X": "a b"}, name="named", id="mine")).result().name == "named"
        try:
            executor.submit(Job("exit 3", tries=1)).result()
            assert False
        except JobError as e:
            assert e.result.exit == 3 and "exit 3" in str(e), e
        try:
            executor.submit(Job("true", slotz=1)).result()
            assert False
        except JobError as e:
            assert e.result is None and "did you mean slots" in str(e), e
        try:
            executor.submit(fail, 7).result()
            assert False
        except KeyError as e:
            cause = str(e.__cause__)
            assert e.args == (7,) and "in fail" in cause and "raise KeyError(x)" in cause, cause
        e = executor.submit(odd).exception()
        assert type(e) is Odd and e.args == (1,) and e.b == 2 and "in odd" in str(e.__cause__), repr(e)
        data = os.urandom(300000)
        assert executor.submit(size, data).result() == (300000, data[:3])
        assert len(executor.submit(bytes, 3000000).result()) == 3000000
        assert executor.submit(size, b"a").exception(timeout=600) is None
        long = executor.submit("echo x > long; sleep 600")
        while not os.path.exists("long"):
            time.sleep(0.05)
        assert long.cancel() and long.cancelled() and long.cancel()
        assert wait([long], timeout=600).done == {long}
        try:
            long.result()
            assert False
        except CancelledError:
            pass
        assert executor.submit(closed(5)).result() == 5
    try:
        executor.submit("true")
        assert False
    except RuntimeError:
        pass
    assert not os.path.exists(".dcs-run"), os.listdir(".dcs-run")
    late = Executor(*sys.argv[4:], program=sys.argv[2], dir="late", log=open("py.err", "a"))
    left = [late.submit("sleep 600") for _ in range(5)]
    late.shutdown(cancel_futures=True)
    assert all(f.cancelled() for f in left)
    with Executor("--no-such-flag", program=sys.argv[2], dir="bad") as bad:
        for stop in lambda: bad.submit("true").result(), lambda: list(bad.map(pow, range(3000), range(3000))):
            try:
                stop()
                assert False
            except StoppedError as stopped:
                assert "no-such-flag" in str(stopped) and "resume" not in str(stopped), stopped
    print("all is well")

if __name__ == "__main__":
    main()
`

// TestPythonClientResumesARun runs the Python client over real sshd, killed and resumed in the
// middle.
func TestPythonClientResumesARun(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	python := needPython(t)
	l := newLab(t, 2)
	l.writeTaggedJobs(0, "")
	args := append([]string{"-B", l.writeFile("client.py", pythonClient), l.repoPath("clients/python"), program, "--"},
		l.clientFlags(2)...)
	cmd := exec.Command(python, args...)
	p := l.startCommand(cmd)
	late := time.AfterFunc(polltest.Patience, func() { cmd.Process.Signal(syscall.SIGINT) })
	defer late.Stop()
	end := p.wait()
	if end.code != 0 || end.stdout != "all is well\n" {
		b, _ := os.ReadFile(l.path("py.err"))
		t.Fatalf("exit %d\n%s\n%s\n%s", end.code, end.stdout, end.stderr, b)
	}
	l.checkAttemptsRanOnce(40)
}

// TestPythonClientApart is TestPythonClientResumesARun with hosts that share no directory. The data
// of functions is sent, and results arrive through standard output.
func TestPythonClientApart(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	python := needPython(t)
	l := newLab(t, 1)
	l.writeFile("apart.py", `
import os, sys
sys.path.insert(0, sys.argv[1])
from dcs_tui import Executor
def read(data):
    return open("input/a").read() + str(len(data))
if __name__ == "__main__":
    os.makedirs("input", exist_ok=True)
    open("input/a", "w").write("read ")
    with Executor("--ssh-config", os.environ["SSH"], "--hosts", os.environ["HOSTS"], program=os.environ["DCS"],
                  python=sys.executable, send=["input"], log=sys.stderr) as executor:
        print(executor.submit(read, os.urandom(100000)).result(), len(executor.submit(os.urandom, 6 << 20).result()),
              len(executor.submit("head -c 3000000 /dev/zero | tr '\\0' x").result().output))
`)
	l.runApart("\nmkdir apart/deep; cd apart/deep; " + python + " -B ../../apart.py " + l.repoPath("clients/python") +
		" > ../../py.out")
	l.checkFiles(map[string]string{"py.out": "read 100000 6291456 3000000\n"})
}
