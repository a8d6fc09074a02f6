//go:build linux

package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
)

// director manages one run until its end, whatever happens to its dispatchers. It works in steps,
// in one goroutine.
type director struct {
	lab       *lab
	t         *testing.T
	name      string // of the run
	dir       string // its directory; "": below the shared one
	inventory string // the hosts.toml of the run
	jobs      []job
	rand      *rand.Rand

	current         *dispatcher   // the current dispatcher
	fenced          []*dispatcher // dispatchers that were stopped, and taken over before they continued
	dispatchers     []*dispatcher
	over            bool
	numFailedStarts int // consecutive starts that failed
	nextStart       time.Time

	repairs       []repair
	counts        map[string]int
	preempted     []string // instances that were taken away
	writeFailures []span   // times during which the shared directory refused writes

	// Number of attempts that ran at the same time as another attempt of the job, because a host
	// was given up.
	numOverlaps int
	// Number of jobs that failed without an exit code because three hosts died while they ran (B2).
	numDied     int
	numNotEnded int // number of run ends that had to be repeated because a host could not be asked
	events      []string
	startedAt   time.Time
}

// repair is a scheduled end of a fault.
type repair struct {
	at   time.Time
	what string // the fault; a machine has at most one fault of a kind at a time
	do   func()
}

// span is a period during which writes failed.
type span struct{ from, to time.Time }

func newDirector(l *lab, name string, rnd *rand.Rand, list []job) *director {
	l.runs = append(l.runs, name)
	d := &director{lab: l, t: l.t, name: name, jobs: list, rand: rnd, inventory: keysDir + "/hosts.toml",
		counts: map[string]int{}, startedAt: time.Now()}
	d.t.Cleanup(func() {
		if !d.t.Failed() {
			return
		}
		d.t.Logf("what was done to run %s:\n%s", d.name, strings.Join(d.events, "\n"))
		d.saveFiles()
	})
	return d
}

func (d *director) runDir() string { return cmp.Or(d.dir, sharedDir+"/"+d.name) }

func (d *director) logEvent(format string, args ...any) {
	line := fmt.Sprintf("%s  %7.2f  ", time.Now().UTC().Format("15:04:05"), time.Since(d.startedAt).Seconds()) +
		fmt.Sprintf(format, args...)
	d.events = append(d.events, line)
	if f, err := os.OpenFile(filepath.Join(d.lab.dir, d.name+".events"), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o600); err == nil {
		fmt.Fprintln(f, line) // shows where a test hangs
		f.Close()
	}
}

// start starts the run on the first desk.
func (d *director) start(more ...string) {
	d.t.Helper()
	file, err := d.lab.writeJobs(d.name, d.jobs)
	if err != nil {
		d.t.Fatal(err)
	}
	args := append([]string{"run", "--no-tui", "--ssh-config", keysDir + "/ssh_config", "--hosts", d.inventory,
		"--run-dir", d.runDir()}, more...)
	if err := d.startDispatcher(d.lab.desks[0], append(args, file)...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *director) startDispatcher(desk *machine, args ...string) error {
	life, err := d.lab.dispatch(desk, fmt.Sprintf("%s-%02d-%s", d.name, len(d.dispatchers)+1, desk.name), args...)
	if err != nil {
		return err
	}
	d.logEvent("dispatcher %s: %s", life.name, args[0])
	d.current = life
	d.dispatchers = append(d.dispatchers, life)
	return nil
}

// resume continues the run on the given desk.
func (d *director) resume(desk *machine, force bool) error {
	args := []string{"resume", "--no-tui", d.runDir()}
	if force {
		args = append(args, "--force")
	}
	return d.startDispatcher(desk, args...)
}

// handleEvents handles faults and dispatchers that have ended.
func (d *director) handleEvents() {
	d.stepCloud()
	now := time.Now()
	for i := 0; i < len(d.repairs); i++ {
		if h := d.repairs[i]; !h.at.After(now) {
			d.repairs = slices.Delete(d.repairs, i, i+1)
			i--
			h.do()
			d.logEvent("healed: %s", h.what)
		}
	}
	if d.over || now.Before(d.nextStart) || d.current != nil && !d.current.hasEnded() {
		return
	}
	if d.current != nil {
		d.handleEnd(d.current)
	}
	if d.over || now.Before(d.nextStart) {
		return
	}
	desk := d.lab.desks[d.rand.IntN(len(d.lab.desks))]
	if err := d.resume(desk, d.rand.IntN(3) == 0); err != nil {
		d.nextStart = now.Add(time.Second)
	}
}

// handleEnd handles the end of a dispatcher.
func (d *director) handleEnd(life *dispatcher) {
	words := life.output()
	d.logEvent("dispatcher %s ended with %d", life.name, life.code)
	d.current = nil
	switch {
	case life.code == 0 || life.code == 1 || life.code == 130:
		d.over = true
	case life.code == -1 || life.code == 4 || life.code == 137:
		d.numFailedStarts = 0
	case life.code == 125: // exit code of env
		d.t.Fatalf("the lab: %s", words)
	default:
		// No takeover is possible while the disk is full or another dispatcher is believed to be
		// alive. Both are temporary.
		if d.numFailedStarts++; d.numFailedStarts > 90 {
			d.t.Fatalf("no dispatcher gets to work any more; the last, %s, ended with %d:\n%s", life.name, life.code,
				lastLines(words, 20))
		}
		d.nextStart = time.Now().Add(time.Second)
	}
}

// repairAll ends all faults now.
func (d *director) repairAll() {
	for len(d.repairs) > 0 {
		h := d.repairs[0]
		d.repairs = d.repairs[1:]
		h.do()
		d.logEvent("healed: %s", h.what)
	}
}

// stepUntil calls step until the condition holds.
func (d *director) stepUntil(what string, limit time.Duration, ok func() bool) {
	d.t.Helper()
	if !polltest.Within(limit, func() bool { d.handleEvents(); return ok() }) {
		d.t.Fatalf("%v passed without: %s\n%s", limit, what, d.newestOutput())
	}
}

// newestOutput returns the output of the newest dispatcher.
func (d *director) newestOutput() string {
	if len(d.dispatchers) == 0 {
		return ""
	}
	life := d.dispatchers[len(d.dispatchers)-1]
	return life.name + " said:\n" + lastLines(life.output(), 30)
}

// upLine matches a dispatcher's message about one or several hosts that are up.
var upLine = regexp.MustCompile(`(?:\((\d+) hosts\))? +is up`)

// numHostsUp returns how many hosts the newest dispatcher has reported as up.
func (d *director) numHostsUp() (n int) {
	for _, m := range upLine.FindAllStringSubmatch(d.newestOutput(), -1) {
		hosts, _ := strconv.Atoi(m[1]) // "": one host
		n += max(1, hosts)
	}
	return n
}

// awaitEnd waits for the end of the run without further faults.
func (d *director) awaitEnd() {
	d.t.Helper()
	d.repairAll()
	d.awaitOver()
	d.stepUntil("the end of dispatchers that were taken over", polltest.Patience, func() bool { return !d.hasFenced() })
}

// kill kills a dispatcher with SIGKILL.
func (life *dispatcher) kill() bool { return life.sendSignal(syscall.SIGKILL) }

// saveFiles saves the files that help to analyze a failure.
func (d *director) saveFiles() {
	if *keepFlag == "" {
		return
	}
	to := filepath.Join(*keepFlag, strings.ReplaceAll(d.t.Name(), "/", "_")+"-"+d.name)
	os.MkdirAll(to, 0o700)
	runCommand("cp", "-a", d.lab.dir, filepath.Join(to, "said"))
	runCommand("cp", "-a", d.lab.hub.path(d.runDir()), filepath.Join(to, "run"))
	runCommand("cp", "-a", d.lab.hub.path(marksDir+"/"+d.name), filepath.Join(to, "marks"))
	for _, m := range d.lab.hosts {
		runCommand("cp", "-a", d.lab.hub.path("/srv/"+m.name), filepath.Join(to, m.name))
	}
	d.t.Logf("kept in %s", to)
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
