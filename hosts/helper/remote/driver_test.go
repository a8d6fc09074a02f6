//go:build linux

package remote

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// driver is a small dispatcher for a host on which something goes wrong: it
// connects again, asks again, and launches a next attempt where one is proved not
// to run any more, until each of its jobs has an end.
type driver struct {
	t      testing.TB
	w      *world
	p      *plan
	open   *hosts.Open
	jobs   []*task
	said   []string // every line for people
	starts int      // helpers started
	ends   int      // channels that ended before they were asked to
	link   *link
	asked  time.Time // for all that is not settled
	failed bool
	listed bool // a whole list has come
	probes int  // answers to probes
}

// task is a job with its attempts.
type task struct {
	id       jobs.ID
	body     string // after the attempt has noted that it runs
	want     func(o *jobs.Outcome) bool
	dropped  bool // withdrawn or killed by us: no further attempt
	attempts []*try
	gpus     []int
}

// try is one attempt and what was said of it.
type try struct {
	id      jobs.AttemptID
	sent    bool // a launch is sent once; after that its host is asked
	started bool
	answer  hosts.Answer // Unknown until it is settled
	outcome jobs.Outcome
}

func (k *task) last() *try { return k.attempts[len(k.attempts)-1] }

func (r *try) settled() bool { return r.answer >= hosts.HasExited }

func (k *task) done() bool {
	r := k.last()
	return r.answer == hosts.HasExited || k.dropped && r.settled()
}

func newDriver(t testing.TB, p *plan) *driver {
	w := newWorld(t)
	p.Root = filepath.Dir(w.base)
	p.Dir = filepath.Join(p.Root, "notes")
	if err := os.MkdirAll(filepath.Join(w.runDir, "ran"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &driver{t: t, w: w, p: p, open: w.open()}
	d.open.Slots = 1
	t.Cleanup(func() {
		if d.link != nil && !d.link.over {
			d.link.cmd.Process.Kill()
			d.link.cmd.Wait()
		}
	})
	return d
}

func (d *driver) wrong(format string, args ...any) {
	d.t.Helper()
	d.failed = true
	d.t.Errorf(format, args...)
}

func (d *driver) say(who, text string) {
	if text == "" {
		return
	}
	if strings.ContainsAny(strings.TrimSuffix(text, "\n"), "\n") {
		d.wrong("not one line from %s: %q", who, text)
	}
	d.said = append(d.said, who+": "+text)
}

func (d *driver) find(id jobs.AttemptID) *try {
	for _, k := range d.jobs {
		for _, r := range k.attempts {
			if r.id == id {
				return r
			}
		}
	}
	return nil
}

// hear takes in what a message says of attempts, and that nothing contradicts
// what was said before.
func (d *driver) hear(m hosts.Message) {
	settle := func(id jobs.AttemptID, a hosts.Answer, o *jobs.Outcome) {
		r := d.find(id)
		switch {
		case r == nil:
		case a == hosts.IsRunning:
			r.started = true
		case a < hosts.HasExited:
		case r.settled() && r.answer != a:
			d.wrong("%s was %v and is %v", id, r.answer, a)
		case r.settled() && a == hosts.HasExited && !sameEnd(o, &r.outcome):
			d.wrong("%s ended with %+v and %+v", id, r.outcome, *o)
		default:
			r.answer = a
			if o != nil {
				r.outcome = *o
			}
		}
	}
	switch m := m.(type) {
	case *hosts.Started:
		for _, j := range m.Jobs {
			settle(j.Attempt, hosts.IsRunning, nil)
		}
	case *hosts.Exits:
		for _, j := range m.Jobs {
			settle(j.Attempt, hosts.HasExited, &j.Outcome)
		}
	case *hosts.Withdrawn:
		d.saysUnlessAsked(m.Attempts, m.Why)
		for _, id := range m.Attempts {
			settle(id, hosts.NeverStarted, nil)
		}
	case *hosts.Refused:
		d.say("refused", m.Why)
		for _, id := range m.Attempts {
			settle(id, hosts.NeverStarted, nil)
		}
	case *hosts.Probed:
		d.probes++
		for _, p := range m.Jobs {
			if p.Answer == hosts.Unknown || p.Answer == hosts.Dead {
				d.say(fmt.Sprintf("probed %s", p.Attempt), p.Why)
			}
			settle(p.Attempt, p.Answer, p.Outcome)
		}
	case *hosts.Listed:
		d.say("listed", m.Why)
		for _, p := range m.Jobs {
			settle(p.Attempt, p.Answer, p.Outcome)
		}
		d.listed = d.listed || m.Last
	case *hosts.Looked:
		d.say("looked", m.Why)
		for _, j := range m.Jobs {
			settle(j.Attempt, hosts.HasExited, &j.Outcome)
		}
	case *hosts.Trouble:
		d.say("trouble", m.Text)
	case *hosts.Chunk:
		d.say("chunk", m.Why)
	}
}

func (d *driver) saysUnlessAsked(ids []jobs.AttemptID, why string) {
	for _, k := range d.jobs {
		if !k.dropped {
			for _, r := range k.attempts {
				for _, id := range ids {
					if r.id == id {
						d.say("withdrawn "+id.String(), why)
						return
					}
				}
			}
		}
	}
}

func sameEnd(a, b *jobs.Outcome) bool {
	return a.Exit == b.Exit && a.Signal == b.Signal && a.Error == b.Error && a.TimedOut == b.TimedOut &&
		a.Stopped == b.Stopped && a.Started == b.Started && a.Ended == b.Ended
}

// add hands over a job whose shell runs body after it has noted the attempt.
func (d *driver) add(body string, want func(o *jobs.Outcome) bool) *task {
	k := &task{id: jobs.ID(len(d.jobs) + 1), body: body, want: want}
	d.jobs = append(d.jobs, k)
	d.again(k)
	return k
}

// again makes the next attempt of a job.
func (d *driver) again(k *task) {
	if len(k.attempts) >= maxStarts && d.p.How != howFull || len(k.attempts) > 1000 {
		d.t.Fatalf("job %d does not come to an end; said:\n\t%s", k.id, strings.Join(d.said, "\n\t"))
	}
	k.attempts = append(k.attempts, &try{id: jobs.AttemptID{Job: k.id, N: len(k.attempts) + 1}})
}

// launch sends every attempt that has not been sent.
func (d *driver) launch() {
	m := &hosts.Launch{Epoch: 1, ExpireUptime: uptime() + time.Hour}
	for _, k := range d.jobs {
		if r := k.last(); !r.settled() && !r.sent {
			r.sent = true
			m.Jobs = append(m.Jobs, gpuJob(r.id.String(), "echo $DCS_ATTEMPT >> ran/$DCS_ATTEMPT; "+k.body, k.gpus...))
		}
	}
	if len(m.Jobs) > 0 {
		d.link.out.Write(m)
	}
}

// until goes on until cond holds: it connects, asks and launches anew as needed.
func (d *driver) until(what string, cond func() bool) {
	d.t.Helper()
	for end := time.Now().Add(bound); !cond(); {
		if time.Now().After(end) {
			d.t.Fatalf("it did not come to this: %s; said:\n\t%s\n%s", what, strings.Join(d.said, "\n\t"), d.state())
		}
		fresh := false
		for _, k := range d.jobs {
			if k.last().settled() && !k.done() {
				d.again(k)
				fresh = true
			}
		}
		if d.link == nil || d.link.over {
			if d.link != nil {
				d.ends++
			}
			d.connect()
			fresh = true
		}
		if fresh {
			if d.p.How == howFull {
				time.Sleep(50 * time.Millisecond) // a dispatcher backs off too
			}
			d.launch()
		}
		d.receive(200 * time.Millisecond)
		if now := time.Now(); !d.link.over && now.Sub(d.asked) > 300*time.Millisecond {
			d.asked = now
			d.ping()
			d.probe()
		}
	}
}

// probe asks for all attempts that are not settled.
func (d *driver) probe() {
	m := &hosts.Probe{Epoch: 1}
	for _, k := range d.jobs {
		if !k.last().settled() {
			m.Attempts = append(m.Attempts, k.last().id)
		}
	}
	if len(m.Attempts) > 0 {
		d.link.out.Write(m)
	}
}

func (d *driver) allDone() bool {
	for _, k := range d.jobs {
		if !k.done() {
			return false
		}
	}
	return true
}

func (d *driver) state() string {
	var b strings.Builder
	for _, k := range d.jobs {
		for _, r := range k.attempts {
			fmt.Fprintf(&b, "\t%s started %v %v %+v\n", r.id, r.started, r.answer, r.outcome)
		}
	}
	return b.String()
}

// runs is how often an attempt's shell has noted that it runs.
func (d *driver) runs(id jobs.AttemptID) int {
	b, _ := os.ReadFile(filepath.Join(d.w.runDir, "ran", id.String()))
	return bytes.Count(b, []byte{'\n'})
}
