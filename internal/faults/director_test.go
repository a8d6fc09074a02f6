package faults

import (
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
	"dcs-tui/jobs"
)

// director carries one run to its end, whatever happens to its dispatchers. All
// that it does it does in one goroutine, in steps.
type director struct {
	l         *lab
	t         *testing.T
	name      string // of the run
	inventory string // the hosts.toml of the run
	jobs      []job
	rnd       *rand.Rand

	cur    *life   // the dispatcher that should be at work
	fenced []*life // those that were stopped and taken over before they went on
	lives  []*life
	over   bool
	failed int // starts in a row that came to nothing
	next   time.Time

	heals     []heal
	counts    map[string]int
	preempted []string // instances that were taken away
	spans     []span   // when the shared directory took no writes

	overlaps int // attempts of one job that ran at the same time, because a host was given up
	died     int // jobs whose hosts died under them three times: failed without an exit code, as B2 says
	notEnded int // ends of the run that had to be repeated, because a host could not be asked
	events   []string
	begun    time.Time
}

// heal is what ends a fault.
type heal struct {
	at   time.Time
	what string // the fault; a machine has at most one of a kind at a time
	do   func()
}

// span is a time during which writing failed.
type span struct{ from, to time.Time }

// patience is how long anything may take on a busy machine, a whole run once no fault is made any more.
const patience = 4 * time.Minute

func newDirector(l *lab, name string, rnd *rand.Rand, list []job) *director {
	l.runs = append(l.runs, name)
	d := &director{l: l, t: l.t, name: name, jobs: list, rnd: rnd, inventory: keysDir + "/hosts.toml", counts: map[string]int{}, begun: time.Now()}
	d.t.Cleanup(func() {
		if !d.t.Failed() {
			return
		}
		d.t.Logf("what was done to run %s:\n%s", d.name, strings.Join(d.events, "\n"))
		d.keep()
	})
	return d
}

func (d *director) runDir() string { return sharedDir + "/" + d.name }

func (d *director) note(format string, args ...any) {
	line := fmt.Sprintf("%s  %7.2f  ", time.Now().UTC().Format("15:04:05"), time.Since(d.begun).Seconds()) + fmt.Sprintf(format, args...)
	d.events = append(d.events, line)
	if f, err := os.OpenFile(filepath.Join(d.l.dir, d.name+".events"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, line) // for whoever must find out where a test hangs
		f.Close()
	}
}

// start begins the run on the first machine of the user.
func (d *director) start(more ...string) {
	d.t.Helper()
	file, err := d.l.write(d.name, d.jobs)
	if err != nil {
		d.t.Fatal(err)
	}
	args := append([]string{"run", "--no-tui", "--ssh-config", keysDir + "/ssh_config", "--hosts", d.inventory, "--run-dir", d.runDir()}, more...)
	if err := d.begin(d.l.desks[0], append(args, file)...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *director) begin(desk *machine, args ...string) error {
	life, err := d.l.dispatch(desk, fmt.Sprintf("%s-%02d-%s", d.name, len(d.lives)+1, desk.name), args...)
	if err != nil {
		return err
	}
	d.note("dispatcher %s: %s", life.name, args[0])
	d.cur = life
	d.lives = append(d.lives, life)
	return nil
}

// resume continues the run on the chosen machine.
func (d *director) resume(desk *machine, force bool) error {
	args := []string{"resume", "--no-tui", d.runDir()}
	if force {
		args = append(args, "--force")
	}
	return d.begin(desk, args...)
}

// step looks at what has come to its end, and acts.
func (d *director) step() {
	d.stepCloud()
	now := time.Now()
	for i := 0; i < len(d.heals); i++ {
		if h := d.heals[i]; !h.at.After(now) {
			d.heals = slices.Delete(d.heals, i, i+1)
			i--
			h.do()
			d.note("healed: %s", h.what)
		}
	}
	if d.over || now.Before(d.next) || d.cur != nil && !d.cur.ended() {
		return
	}
	if d.cur != nil {
		d.after(d.cur)
	}
	if d.over || now.Before(d.next) {
		return
	}
	desk := d.l.desks[d.rnd.IntN(len(d.l.desks))]
	if err := d.resume(desk, d.rnd.IntN(3) == 0); err != nil {
		d.next = now.Add(time.Second)
	}
}

// after judges the end of a dispatcher.
func (d *director) after(life *life) {
	words := life.words()
	d.note("dispatcher %s ended with %d", life.name, life.code)
	d.cur = nil
	switch {
	case life.code == 0 || life.code == 1 || life.code == 130:
		d.over = true
	case life.code == -1 || life.code == 4 || life.code == 137:
		d.failed = 0
	case life.code == 125: // of env
		d.t.Fatalf("the lab: %s", words)
	default:
		// Nothing can be taken over while the disk is full or another dispatcher
		// is believed to be alive; that passes.
		if d.failed++; d.failed > 90 {
			d.t.Fatalf("no dispatcher gets to work any more; the last, %s, ended with %d:\n%s", life.name, life.code, tail(words, 20))
		}
		d.next = time.Now().Add(time.Second)
	}
}

// healAll ends every fault now.
func (d *director) healAll() {
	for len(d.heals) > 0 {
		h := d.heals[0]
		d.heals = d.heals[1:]
		h.do()
		d.note("healed: %s", h.what)
	}
}

// until steps until the condition holds.
func (d *director) until(what string, limit time.Duration, ok func() bool) {
	d.t.Helper()
	if !polltest.Within(limit, func() bool { d.step(); return ok() }) {
		d.t.Fatalf("%v passed without: %s\n%s", limit, what, d.last())
	}
}

// last is what the newest dispatcher said.
func (d *director) last() string {
	if len(d.lives) == 0 {
		return ""
	}
	life := d.lives[len(d.lives)-1]
	return life.name + " said:\n" + tail(life.words(), 30)
}

// upLine matches what a dispatcher says of hosts that have come up, alone or in a group.
var upLine = regexp.MustCompile(`(?:\((\d+) hosts\))?  is up`)

// hostsUp counts the hosts that the newest dispatcher has said to be up.
func (d *director) hostsUp() (n int) {
	for _, m := range upLine.FindAllStringSubmatch(d.last(), -1) {
		hosts, _ := strconv.Atoi(m[1]) // "": one
		n += max(1, hosts)
	}
	return n
}

// finish lets the run come to its end without further faults.
func (d *director) finish() {
	d.t.Helper()
	d.healAll()
	d.until("the end of the run", patience, func() bool { return d.over })
	d.until("the end of dispatchers that were taken over", patience, func() bool { return !d.others() })
}

// marks counts the attempts that have begun, by what the jobs wrote down.
func (d *director) marks() int {
	names, _ := os.ReadDir(d.l.hub.path(marksDir + "/" + d.name))
	n := 0
	for _, e := range names {
		if _, err := jobs.ParseAttemptID(e.Name()); err == nil {
			n++
		}
	}
	return n
}

// killed ends a dispatcher as its machine's kernel would.
func (life *life) killed() bool { return life.signal(syscall.SIGKILL) }

// keep saves what a person needs to understand a failure.
func (d *director) keep() {
	if *keepFlag == "" {
		return
	}
	to := filepath.Join(*keepFlag, strings.ReplaceAll(d.t.Name(), "/", "_")+"-"+d.name)
	os.MkdirAll(to, 0o700)
	command("cp", "-a", d.l.dir, filepath.Join(to, "said"))
	command("cp", "-a", d.l.hub.path(d.runDir()), filepath.Join(to, "run"))
	command("cp", "-a", d.l.hub.path(marksDir+"/"+d.name), filepath.Join(to, "marks"))
	for _, m := range d.l.hosts {
		command("cp", "-a", d.l.hub.path("/srv/"+m.name), filepath.Join(to, m.name))
	}
	d.t.Logf("kept in %s", to)
}

// tail is the last lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
