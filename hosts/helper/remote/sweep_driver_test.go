//go:build linux

package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// driver is a small dispatcher for a host with an injected fault. It reconnects, probes again, and
// launches another attempt where the last one is proved not to run anymore, until each of its jobs
// has an outcome.
type driver struct {
	t      testing.TB
	w      *world
	p      *plan
	open   *hosts.Open
	dir    string // holds attempts/
	jobs   []*task
	said   []string // every message for people
	starts int      // number of helpers started
	ends   int      // number of channels that ended unexpectedly
	link   *helperProcess
	asked  time.Time // time of the last probe of all attempts that are not settled
	failed bool
	listed bool // a complete list has been received
}

// task is a job with its attempts.
type task struct {
	id       jobs.ID
	body     string // runs after the attempt has noted that it runs
	want     func(o *jobs.Outcome) bool
	dropped  bool // withdrawn or killed by us: no further attempt
	attempts []*try
	gpus     []int
}

// try is one attempt and what was reported about it.
type try struct {
	id      jobs.AttemptID
	sent    bool // a launch is sent once; after that, the host is probed
	known   bool // the host has received the launch
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
	must(t, os.MkdirAll(filepath.Join(w.runDir, "ran"), 0o700))
	must(t, os.Mkdir(p.Dir, 0o700))
	d := &driver{t: t, w: w, p: p, open: w.open(), dir: w.runDir}
	d.open.Slots = 1
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

// handle records what a message reports about attempts, and checks that nothing contradicts an
// earlier report.
func (d *driver) handle(m hosts.Message) {
	settle := func(id jobs.AttemptID, a hosts.Answer, o *jobs.Outcome) {
		r := d.find(id)
		if r != nil && a != hosts.Unknown {
			r.known = true
		}
		switch {
		case r == nil:
		case a == hosts.IsRunning:
			r.started = true
		case a < hosts.HasExited:
		case r.answer == hosts.NeverStarted && a == hosts.Dead && d.p.kills("host"):
			// It died while it wrote the tombstone. Nothing has run either way.
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
	case *hosts.Inspected:
		d.say("inspected", m.Why)
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
		for _, r := range k.attempts {
			if !k.dropped && slices.Contains(ids, r.id) {
				d.say("withdrawn "+r.id.String(), why)
				return
			}
		}
	}
}

func sameEnd(a, b *jobs.Outcome) bool {
	return a.Exit == b.Exit && a.Signal == b.Signal && a.Error == b.Error && a.TimedOut == b.TimedOut &&
		a.Stopped == b.Stopped && a.Started == b.Started && a.Ended == b.Ended
}

// add submits a job whose shell runs body after it has noted the attempt.
func (d *driver) add(body string, want func(o *jobs.Outcome) bool) *task {
	k := &task{id: jobs.ID(len(d.jobs) + 1), body: body, want: want}
	d.jobs = append(d.jobs, k)
	d.again(k)
	return k
}

// again creates the next attempt of a job.
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

// until connects, probes, and launches again as needed, until cond holds.
func (d *driver) until(what string, cond func() bool) {
	d.t.Helper()
	for end := time.Now().Add(polltest.Patience); !cond(); {
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
		if d.link == nil || d.link.ended {
			if d.link != nil {
				d.ends++
			}
			d.connect()
			fresh = true
		}
		if fresh {
			if d.p.How == howFull {
				d.awaitHeartbeat() // a dispatcher backs off too
			}
			d.launch()
		}
		d.receive(200 * time.Millisecond)
		if now := time.Now(); !d.link.ended && now.Sub(d.asked) > 300*time.Millisecond {
			d.asked = now
			d.ping()
			d.probe()
		}
	}
}

// awaitHeartbeat waits for the helper's next heartbeat, or for the end of the link.
func (d *driver) awaitHeartbeat() {
	for {
		m, ok := d.receive(polltest.Patience)
		if _, is := m.(*hosts.Heartbeat); is || !ok {
			return
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

// allKnown reports whether no launch is on its way.
func (d *driver) allKnown() bool {
	return !slices.ContainsFunc(d.jobs, func(k *task) bool {
		return !k.done() && (!k.last().known || k.last().settled())
	})
}

func (d *driver) allDone() bool {
	return !slices.ContainsFunc(d.jobs, func(k *task) bool { return !k.done() })
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

// runs returns how often an attempt's shell has noted that it runs.
func (d *driver) runs(id jobs.AttemptID) int {
	b, _ := os.ReadFile(filepath.Join(d.w.runDir, "ran", id.String()))
	return bytes.Count(b, []byte{'\n'})
}

// maxStarts is the maximum number of helpers that one fault may cost. A fault happens once.
const maxStarts = 4

// connect starts helpers until one sends a hello without an error.
func (d *driver) connect() {
	d.t.Helper()
	for {
		if d.starts++; d.starts > maxStarts && d.p.How != howFull || d.starts > 100 {
			d.t.Fatalf("no helper stays; said:\n\t%s", strings.Join(d.said, "\n\t"))
		}
		d.p.Helper = min(d.starts, 2)
		l := d.w.startProcess(d.p.env(), heartbeatEnv+"=100ms", nowhereEnv+"=1h")
		d.link = l
		l.out.Write(d.open)
		m, ok := d.receive(polltest.Patience)
		if h, is := m.(*hosts.Hello); ok && is && h.Error == "" && h.FencedBy == 0 {
			for _, s := range append(h.Warnings, h.CwdError) {
				d.say("hello", s)
			}
			d.ping()
			return
		} else if is {
			d.say("hello", h.Error)
		} else if ok {
			d.t.Fatalf("it began with %s", m.Kind())
		}
		d.hangUp()
	}
}

// hangUp waits until a helper that is exiting has exited.
func (d *driver) hangUp() {
	l := d.link
	for _, ok := d.receive(polltest.Patience); ok; _, ok = d.receive(polltest.Patience) {
	}
	if !l.ended {
		d.t.Fatalf("the helper does not leave; said:\n\t%s", strings.Join(d.said, "\n\t"))
	}
}

// receive handles one message. It returns false if none arrived in time or none can arrive anymore.
func (d *driver) receive(wait time.Duration) (hosts.Message, bool) {
	l := d.link
	if l.ended {
		return nil, false
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case m, ok := <-l.msgs:
		if ok {
			d.handle(m)
			return m, true
		}
		l.ended = true
		l.cmd.Wait()
		for line := range strings.Lines(l.stderr.String()) {
			d.say("stderr", line)
		}
	case <-late.C:
	}
	return nil, false
}

func (d *driver) ping() {
	d.link.out.Write(&hosts.Ping{Seq: 1, LeaseUptime: uptime() + time.Hour})
}

// plan describes one fault: which call of which process fails, and how. It reaches the processes of
// a test through the environment, which only the test binary reads.
type plan struct {
	Dir     string // directory for notes: calls (what was called), fired (the fault has happened)
	Root    string // root of the world; the part of a path before it is ignored
	Helper  int    // number of the helper in the scenario; it includes that helper's supervisors
	Network bool   // treat every file system as NFS
	Count   bool   // note every call
	Call    callKey
	Nth     int // number of the call among equal calls in that process, from 1
	How     string
}

// callKey identifies calls that count as equal.
type callKey struct {
	Role string // "host" or "slot", and the number of the helper
	Op   string
	Path string // every number in it is replaced by #
}

const planEnv = "TEST_FAULT"

// The how constants are the ways in which a call fails other than by returning an error.
const (
	howLate   = "late EIO" // the call is made, and its reply is lost
	howShort  = "short"    // the call writes the first half
	howKill   = "killed before"
	howKilled = "killed after"
	howHang   = "hang" // hangs until a file named go exists in Dir
	howFull   = "full" // all calls fail while a file named full exists in Dir
)

var errnos = map[string]unix.Errno{"EIO": unix.EIO, "ENOSPC": unix.ENOSPC, "EDQUOT": unix.EDQUOT,
	"ESTALE": unix.ESTALE, "EINTR": unix.EINTR, "EROFS": unix.EROFS, howLate: unix.EIO}

func (p *plan) String() string {
	return fmt.Sprintf("%s %s %s #%d: %s", p.Call.Role, p.Call.Op, p.Call.Path, p.Nth, p.How)
}

func (p *plan) env() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return planEnv + "=" + string(b)
}

var (
	digits    = regexp.MustCompile(`[0-9]+`)
	packToken = regexp.MustCompile(`[.][A-Z2-7]+[.]zip$`)
)

func (p *plan) key(role, op, path string) callKey {
	path = packToken.ReplaceAllString(strings.TrimPrefix(path, p.Root), ".#.zip")
	return callKey{role, op, digits.ReplaceAllString(path, "#")}
}

// fired returns where the fault has happened, or "" if it has not.
func (p *plan) fired() string {
	b, _ := os.ReadFile(filepath.Join(p.Dir, "fired"))
	return string(b)
}

// plantFault injects the fault of the plan into this process, which is one of ours on the host.
func plantFault(word string) {
	text := os.Getenv(planEnv)
	if text == "" {
		return
	}
	p := &plan{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		panic(err)
	}
	if p.Network {
		clear(localTypes)
	}
	role := fmt.Sprintf("%s%d", strings.TrimPrefix(word, "__"), p.Helper)
	if p.How == howFull {
		fault = p.full
		return
	}
	var calls *os.File
	if p.Count {
		calls, _ = os.OpenFile(filepath.Join(p.Dir, "calls"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	var mu sync.Mutex
	seen, due := 0, false // due: the current call must fail after it has been made
	fault = func(op, path string, done bool) error {
		k := p.key(role, op, path)
		if calls != nil && !done {
			fmt.Fprintf(calls, "%s\t%s\t%s\n", k.Role, k.Op, k.Path)
		}
		if k != p.Call {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if !done {
			seen++
			due = seen == p.Nth
		}
		if !due || done != (p.How == howLate || p.How == howKilled) {
			return nil
		}
		due = false
		note, err := os.OpenFile(filepath.Join(p.Dir, "fired"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil // the fault has already happened in another process of that role
		}
		fmt.Fprintf(note, "%d %s", os.Getpid(), path)
		note.Close()
		switch p.How {
		case howHang:
			polltest.Within(24*time.Hour,
				func() bool { _, err := os.Stat(filepath.Join(p.Dir, "go")); return err == nil })
			return nil
		case howKill, howKilled:
			unix.Kill(os.Getpid(), unix.SIGKILL) // does not return
		}
		if p.How == howShort {
			return unix.EAGAIN
		}
		return errnos[p.How]
	}
}

// full makes calls that need space fail while the disk is full. Call.Path is the affected part
// ("spool", "attempts", or "" for both), and Call.Op is the error.
func (p *plan) full(op, path string, done bool) error {
	if done || !needsRoom[op] {
		return nil
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "full")); err != nil {
		return nil
	}
	where := "spool"
	if strings.Contains(path, "/run/") || attemptFile.MatchString(path) {
		where = "attempts"
	}
	if p.Call.Path != "" && p.Call.Path != where {
		return nil
	}
	return errnos[p.Call.Op]
}

var (
	needsRoom = map[string]bool{"create": true, "write": true, "fsync": true, "mkdir": true, "mkfifo": true,
		"link": true}
	attemptFile = regexp.MustCompile(`^[0-9.]+\.(status|out|err)`)
)

var finalFile = regexp.MustCompile(`/attempts/[0-9]{3}(/[0-9]+\.[0-9]+\.(status|out|err)|\.[A-Z2-7]+\.zip)$`)

// kills reports whether the plan ends a process of the given role ("" for any).
func (p *plan) kills(role string) bool {
	return (p.How == howKill || p.How == howKilled) && strings.HasPrefix(p.Call.Role, role)
}

// check verifies promises 1 to 5 against the reports and the files.
func (d *driver) check() {
	d.t.Helper()
	fired := d.p.fired()
	spent := 0 // attempts beyond the first of each job
	for _, k := range d.jobs {
		spent += len(k.attempts) - 1
		for _, r := range k.attempts {
			d.checkAttempt(k, r)
		}
	}
	// Promise 5: a single fault costs at most one attempt. The death of a process costs the
	// attempts that it held.
	// A helper that dies may take the launch with it.
	if spent > 1 && d.p.How != howFull && !d.p.kills("host") && d.ends == 0 {
		d.wrong("%d attempts were lost", spent)
	}
	litter := d.leftovers()
	if clean := d.clean(); !clean {
		switch {
		case d.p.How == howFull:
		case fired == "":
			d.wrong("nothing went wrong, and yet:%s", d.trace())
		case d.p.How == howShort || d.p.How == "EINTR":
			d.wrong("this must do no harm:%s", d.trace())
		case d.p.kills(""):
			if len(litter) > 0 {
				d.wrong("left over:%s", d.trace())
			}
		case !d.names(fired):
			d.wrong("what went wrong is not said:%s", d.trace())
		case len(litter) > 0 && !d.names(fired):
			d.wrong("left over:%s", d.trace())
		}
	}
}

func (d *driver) checkAttempt(k *task, r *try) {
	d.t.Helper()
	runs := d.runs(r.id)
	switch {
	case runs > 1:
		d.wrong("%s ran %d times", r.id, runs)
	case r.answer == hosts.HasExited:
		// An attempt that is stopped may not have noted anything yet.
		if runs != 1 && !r.outcome.Stopped || !k.want(&r.outcome) {
			d.wrong("%s ran %d times and is said to have ended with %+v", r.id, runs, r.outcome)
		}
		b, err := rundir.ReadFile(rundir.OS, jobs.AttemptFile(d.dir, r.id, jobs.FileStatus))
		if err != nil {
			d.wrong("%s: %v; %s", r.id, err, d.trace())
			return
		}
		if f := attempts.Decode(b, d.w.run, r.id); f.State != attempts.Finished || !sameEnd(&f.Outcome, &r.outcome) {
			d.wrong("%s: the status file says %+v and not %+v", r.id, f, r.outcome)
		}
	case r.answer == hosts.NeverStarted:
		if runs != 0 {
			d.wrong("%s is said never to have started, and ran", r.id)
		}
	case r.answer == hosts.Dead:
		if runs > 0 && !d.p.kills("slot") {
			d.wrong("%s is said to be dead; it ran %d times:%s", r.id, runs, d.trace())
		}
	default:
		d.wrong("%s is %v", r.id, r.answer)
	}
}

// names reports whether some message names the fault's file, or one beside it if it is temporary, and the
// reason.
func (d *driver) names(fired string) bool {
	_, path, _ := strings.Cut(fired, " ")
	name := filepath.Base(path)
	if strings.HasPrefix(name, tempPrefix) {
		name = filepath.Dir(path) + "/"
	}
	return slices.ContainsFunc(d.said, func(s string) bool {
		return strings.Contains(s, errnos[d.p.How].Error()) && strings.Contains(s, name)
	})
}

func (d *driver) trace() string {
	return fmt.Sprintf("\n\tafter %d broken channels, fired at ", d.ends) + d.p.fired() + "\n\tsaid " +
		strings.Join(d.said, "\n\tsaid ") +
		"\n\tleft " + strings.Join(d.leftovers(), "\n\tleft ") + "\n" + d.state()
}
