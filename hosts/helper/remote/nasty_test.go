//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// nastyLeaf is the shell code with which a program of nastyWays runs itself as a leaf: it writes a
// line into the pipe $2 and stays. The programs are the ways in which jobs try not to be ended.
// Each program writes a line into $READY when it is ready.
const nastyLeaf = `case $1 in leaf) trap '' TERM HUP INT QUIT; echo up > $2; while :; do sleep 1000; done;; esac
`

var nastyWays = map[string]string{
	"forks away and exits":         `sh $0 leaf $READY & exit 0`,
	"forks twice and exits":        `(sh $0 leaf $READY &) ; exit 0`,
	"starts a new session":         `setsid sh $0 leaf $READY & wait`,
	"forks twice in a new session": `(setsid sh $0 leaf $READY &) ; sleep 1000`,
	"closes all descriptors": `R=$READY; (setsid sh $0 leaf $R </dev/null >/dev/null 2>&1 3<&- &) ; ` +
		`exec <&- >&- 2>&-; sleep 1000`,
	"clears its environment":    `R=$READY; (setsid env -i PATH="$PATH" sh $0 leaf $R &); sleep 1000`,
	"clears it in place":        `R=$READY; exec env -i PATH="$PATH" sh $0 leaf $R`,
	"ignores TERM, HUP and INT": `trap '' TERM HUP INT QUIT; echo up > $READY; while :; do sleep 1000; done`,
	"runs its end for ever": `trap 'while :; do sleep 1000; done' TERM HUP INT; echo up > $READY; while :; ` +
		`do sleep 1000; done`,
	"forks when it is ended": `trap 'setsid sh $0 leaf /dev/null & setsid sh $0 leaf /dev/null & exit 0' TERM; ` +
		`echo up > $READY; while :; do sleep 0.05; done`,
	"stops itself":          `echo up > $READY; kill -STOP $$; sleep 1000`,
	"stops its supervisor":  `kill -STOP $PPID; echo up > $READY; sleep 1000`,
	"stops all of its kind": `sh $0 leaf $READY & sleep 1000 & kill -STOP $! ; kill -STOP $$; sleep 1000`,
	"asks its supervisor to end": `kill -TERM $PPID; kill -HUP $PPID; kill -INT $PPID; kill -QUIT $PPID; ` +
		`echo up > $READY; sleep 1000`,
}

// script returns a job that runs a shell script with two pipes, READY and GATE.
func (w *world) script(id, text string) (j hosts.LaunchJob, ready, gate string) {
	w.t.Helper()
	prog := filepath.Join(w.runDir, "script-"+id)
	write(w.t, prog, text+"\n")
	ready, gate = w.fifo("ready-"+id), w.fifo("gate-"+id)
	j = job(id, "exec sh "+prog)
	j.Env = []jobs.EnvVar{{Name: "READY", Value: ready}, {Name: "GATE", Value: gate}}
	return j, ready, gate
}

// alive returns the processes of the world that run one of its programs.
func (w *world) alive() (out []proc) {
	t := scan(nil)
	for pid, p := range t {
		if isEndable(p) && strings.Contains(string(procFile(pid, "cmdline")), w.runDir) {
			out = append(out, p)
		}
	}
	return out
}

// TestNoProcessEscapesAKill checks that a kill or a timeout ends all processes of a job, whatever
// the job does to escape (promise 4, K9, E1, X8). What a job leaves behind by itself ends with the
// run.
func TestNoProcessEscapesAKill(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	for way := range nastyWays {
		for _, end := range []string{"kill", "timeout", "bye"} {
			t.Run(way+"/"+end, func(t *testing.T) {
				t.Parallel()
				due := filepath.Join(t.TempDir(), "due")
				w := newWorld(t, timeoutEnv+"="+due)
				f := w.start(w.open())
				j, ready, _ := w.script("1.1", nastyLeaf+nastyWays[way])
				if end == "timeout" {
					j.Timeout = time.Millisecond // it passes when the job is ready
				}
				f.launch(j)
				w.receive(ready)
				leaves := strings.HasSuffix(way, "and exits")
				if leaves {
					if o := f.exit("1.1"); !o.OK() || o.LeftChildren < 1 {
						t.Errorf("%+v, want success and children left", o)
					}
				}
				switch end {
				case "kill":
					f.kill("1.1")
				case "timeout":
					write(t, due, "")
				}
				var o jobs.Outcome
				switch {
				case end == "bye" || leaves && end == "timeout":
				case leaves:
					// If the job is over, what it left behind is ended. The answer does not tell when,
					// because a lost report of the exit has the same answer.
					polltest.Until(t, "what the job left behind has ended", func() bool { return len(w.alive()) == 0 })
				case way == "forks when it is ended":
					o = f.exit("1.1") // the job may exit in any way
					if o.TimedOut == o.Stopped {
						t.Errorf("got outcome %+v, want either a timeout or a stop", o)
					}
				default:
					o = f.exit("1.1")
					if o.OK() || o.TimedOut != (end == "timeout") || o.Stopped != (end == "kill") || o.Signal == "" {
						t.Errorf("%+v, want it ended by a signal for %s", o, end)
					}
					if s := w.status("1.1"); s.State != attempts.Finished || s.Outcome.Stopped != o.Stopped ||
						s.Outcome.TimedOut != o.TimedOut {
						t.Errorf("status %+v, want %+v", s, o)
					}
				}
				// Nothing is waited for if what the job left behind may stay until the end of the
				// run.
				if left := w.alive(); len(left) > 0 && end != "bye" && !(leaves && end == "timeout") {
					t.Errorf("alive: %s", listProcs(left))
				}
			})
		}
	}
}

// TestForkBombsAreEnded checks that processes that fork faster than one snapshot of them is taken
// are ended (promise 4). One case has many processes at once, and the others have one process that
// is replaced again and again.
func TestForkBombsAreEnded(t *testing.T) {
	polltest.Long(t)
	for how, text := range map[string]string{
		// Each of 8 loops starts a new process for each one that ends, some dozens at a time.
		"many": `n=0; while [ $n -lt 8 ]; do n=$((n+1)); ` +
			`(trap '' TERM; while :; do sleep 0.02 & sleep 0.02 & sleep 0.03; done) & done; echo up > $READY; wait`,
		// Each process starts a child in a session of its own and exits.
		"runner": `case $1 in run) trap '' TERM; exec 2>/dev/null; setsid sh $0 run & exit;; esac; ` +
			`setsid sh $0 run & echo up > $READY; sleep 1000`,
		"clean runner": `case $1 in
			run) trap '' TERM; exec 2>/dev/null; env -i PATH="$PATH" setsid sh $0 run & exit;;
			esac
			env -i PATH="$PATH" setsid sh $0 run & echo up > $READY; sleep 1000`,
	} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			f := w.start(w.open())
			j, ready, _ := w.script("1.1", "ulimit -u 100000 2>/dev/null\n"+text)
			f.launch(j)
			w.receive(ready)
			f.kill("1.1")
			if o := f.exit("1.1"); !o.Stopped {
				t.Errorf("got outcome %+v, want it stopped", o)
			}
			if left := w.alive(); len(left) > 0 {
				t.Errorf("alive: %s", listProcs(left))
				os.Remove(strings.TrimPrefix(j.Command, "exec sh ")) // so that no more of them can start
			}
		})
	}
}

// TestJobThatKillsItsSupervisorIsDead checks that a job that kills its supervisor is ended with all
// of its processes and is reported as dead as soon as that is seen, so that it may be tried
// elsewhere (promise 2).
func TestJobThatKillsItsSupervisorIsDead(t *testing.T) {
	for how, text := range map[string]string{
		"plain":       `sh $0 leaf $READY & read x < $GATE; kill -9 $PPID; sleep 1000`,
		"and itself":  `sh $0 leaf $READY & read x < $GATE; kill -9 $PPID $$`,
		"new session": `setsid sh $0 leaf $READY & read x < $GATE; kill -9 $PPID; sleep 1000`,
		"clean leaf": `S=$PPID; R=$READY; (env -i PATH="$PATH" setsid sh $0 leaf $R &); read x < $GATE; ` +
			`kill -9 $S; sleep 1000`,
		"clean and all": `S=$PPID; R=$READY; (env -i PATH="$PATH" setsid sh $0 leaf $R </dev/null >/dev/null 2>&1 ` +
			`&); read x < $GATE; kill -9 $S; kill -9 $$`,
	} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			f := w.start(w.open())
			f.mayDie = true
			j, ready, gate := w.script("1.1", nastyLeaf+text)
			f.launch(j)
			w.receive(ready)
			w.say(gate)
			if p := f.probed("1.1"); p.Answer != hosts.Dead {
				t.Errorf("%+v, want dead", p)
			}
			f.answers("1.1", hosts.Dead)
			if left := w.alive(); len(left) > 0 {
				t.Errorf("alive: %s", listProcs(left))
			}
			f.launch(job("2.1", "exit 5"))
			f.exits("2.1", 5)
		})
	}
}

// TestJobThatKillsTheHelperLosesNothing checks that a job that kills the helper loses nothing. Its
// supervisor continues, and the next helper reports its end.
func TestJobThatKillsTheHelperLosesNothing(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", fmt.Sprintf("read x < %s; kill -9 %d; echo up > %s; exit 7", gate, f.cmd.Process.Pid, ready)),
		job("2.1", "exit 8"))
	f.probe("2.1") // the whole launch is in the spool
	w.say(gate)
	w.receive(ready)
	f.wait()
	g := w.start(w.open())
	for id, exit := range map[string]int{"1.1": 7, "2.1": 8} {
		if p := g.settled(id); p.Answer != hosts.HasExited || p.Outcome.Exit != exit {
			t.Errorf("%s: %+v, want exit %d", id, p, exit)
		}
	}
}

// TestStoppedSupervisorGoesOn checks that a stopped supervisor is continued and reports the end of
// its job.
func TestStoppedSupervisorGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.start(w.open())
	f.launch(job("1.1", "kill -STOP $PPID; exit 7"))
	f.exits("1.1", 7)
	await(f, func(m *hosts.Trouble) bool { return strings.Contains(m.Text, "stopped") })
}

// TestStoppedIdleSupervisorKeepsNoJobWaiting checks that a stopped idle supervisor does not keep
// jobs waiting.
func TestStoppedIdleSupervisorKeepsNoJobWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.startWith(1)
	f.stopIdleSupervisor()
	f.launch(job("2.1", "exit 6"))
	f.exits("2.1", 6)
}
