//go:build linux

package faults

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
)

// outages are the failures of a dispatcher's machine. Each returns the function that ends it.
var outages = map[string]func(*director) (heal func()){
	"killed": func(d *director) func() {
		d.current.kill()
		return func() {}
	},
	"no power": func(d *director) func() {
		d.current.desk.powerOff(true)
		return func() { d.must(d.current.desk.boot()) }
	},
	"hangs": func(d *director) func() {
		d.current.sendSignal(syscall.SIGSTOP)
		d.fenced = append(d.fenced, d.current)
		return func() { d.current.sendSignal(syscall.SIGCONT) }
	},
	"cable": func(d *director) func() {
		m := d.current.desk
		d.must(m.setLink(false))
		d.fenced = append(d.fenced, d.current)
		return func() { d.must(m.setLink(true)) }
	},
	"cut off": func(d *director) func() { // from the hosts and from the file server
		m := d.current.desk
		m.mount.Hang()
		d.must(m.setLink(false))
		d.fenced = append(d.fenced, d.current)
		return func() {
			d.must(m.setLink(true))
			m.mount.Resume()
		}
	},
}

// TestStandbyTakesOver checks that a standby on a host takes the run over when the dispatcher's
// machine fails, and starts the next standby. No result is lost, nothing runs twice, and the old
// dispatcher is fenced off when it comes back (E7, X1). CI tests one outage, chosen by the seed.
// The long test covers each of them, and then the death of the standby that has taken over.
func TestStandbyTakesOver(t *testing.T) {
	eachOutage(t, []string{"killed", "no power", "hangs", "cut off"},
		func(t *testing.T, outage func(*director) func(), long bool) {
			standbyTakesOver(t, newNetLab(t, 2*time.Second), outage, long)
		})
}

// eachOutage runs a test with each of the outages, or in short with one of them, chosen by the
// seed.
func eachOutage(t *testing.T, names []string, test func(t *testing.T, outage func(*director) func(), long bool)) {
	needLab(t)
	long := *faultsFlag > 0
	if !long {
		names = names[newRand(t).IntN(len(names)):][:1]
	}
	t.Logf("seed %d (-seed %d repeats it)", seed(), seed())
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, outages[name], long)
		})
	}
}

func standbyTakesOver(t *testing.T, l *lab, outage func(*director) func(), twice bool) {
	list := append(equalJobs(40, "plain", 2), equalJobs(4, "gate", 0)...)
	d := newDirector(l, "standby", newRand(t), list)
	d.start("--standby-on", "ws1,ws2")
	d.awaitStatus("a standby on ws1", func(s *runStatus) bool { return s.Standby == "ws1" && d.numMarks() >= 8 })
	heal := outage(d)
	took := d.awaitStatus("the standby on ws1 has the run", isOwnedBy("ws1"))
	t.Logf("taken over %s after the outage", took.Round(time.Second))
	heal()
	d.logEvent("healed")
	d.awaitStatus("the next standby, on ws2", func(s *runStatus) bool {
		return isOwnedBy("ws1")(s) && s.Standby == "ws2"
	})
	if twice {
		signalAll(l.hosts[0].find(func(p process) bool { return p.has("--standby") }), syscall.SIGKILL)
		d.logEvent("the dispatcher on ws1 is killed")
		took := d.awaitStatus("the standby on ws2 has the run", isOwnedBy("ws2"))
		t.Logf("taken over again %s after the second outage", took.Round(time.Second))
	}
	d.must(l.openGate(d.name))
	d.awaitStatus("the end of the run", func(s *runStatus) bool { return s.Ended && s.Owner == nil })
	d.over = true
	d.stepUntil("the end of the dispatcher that was taken over", polltest.Patience,
		func() bool { return d.current.hasEnded() })
	d.checkRanAtMostOnce()
	d.checkRun()
}

// runStatus contains the fields of `status --json` that these tests read.
type runStatus struct {
	Owner   *string
	Standby string
	Ended   bool
}

func isOwnedBy(machine string) func(*runStatus) bool {
	return func(s *runStatus) bool { return s.Owner != nil && strings.Contains(*s.Owner, " on "+machine+" ") }
}

// awaitStatus waits until ok accepts the run's status as seen from the second machine, and returns
// how long that took. It does not restart dispatchers.
func (d *director) awaitStatus(what string, ok func(*runStatus) bool) time.Duration {
	d.t.Helper()
	return d.awaitOn(d.lab.desks[1], d.runDir(), what, ok)
}

// awaitOn is awaitStatus as seen from a machine, in a directory.
func (d *director) awaitOn(m *machine, dir, what string, ok func(*runStatus) bool) time.Duration {
	d.t.Helper()
	began, last := time.Now(), ""
	if !polltest.Within(polltest.Patience, func() bool {
		out, code, err := d.lab.query(m, "status", "--json", dir)
		last = out
		s := new(runStatus)
		return err == nil && code == 0 && json.Unmarshal([]byte(out), s) == nil && ok(s)
	}) {
		d.t.Fatalf("%v passed without: %s\n%s\n%s\n%s", polltest.Patience, what, last, d.newestOutput(),
			d.lab.readFile(m.onHub(dir)+"/dispatcher.log"))
	}
	d.logEvent("%s", what)
	return time.Since(began)
}
