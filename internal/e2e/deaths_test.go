package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// long says whether the long forms of the sweeps are wanted (DCS_LONG=1).
var long = os.Getenv("DCS_LONG") == "1"

// pick chooses between the plain and the long form.
func pick[T any](plain, inLong T) T {
	if long {
		return inLong
	}
	return plain
}

// seed is that of a test's random choices: DCS_SEED repeats an earlier one.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("DCS_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("DCS_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// killAfter lets the program run so long, then kills it as nothing can be
// caught; died is false when it had ended by itself.
func (p *process) killAfter(d time.Duration) (e ended, died bool) {
	p.l.t.Helper()
	timer := time.AfterFunc(d, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	e = p.wait()
	return e, e.code == -1
}

// instant is when to kill: often early, while the run is made and taken, and
// sometimes late.
func instant(r *rand.Rand) time.Duration {
	ms := []int{10, 60, 250, 1200}
	k := r.IntN(len(ms) - 1)
	return time.Duration(ms[k]+r.IntN(ms[k+1]-ms[k])) * time.Millisecond
}

// begun says whether what a killed `run` left is a run that resume carries on;
// if not, resume says so in words, and the directory is to be removed.
func begun(e ended) bool {
	return !strings.Contains(e.err, "not a whole run") && !strings.Contains(e.err, "there is no run") &&
		!strings.Contains(e.err, "was cut off while")
}

// lives runs the program again and again, killing each dispatcher at a random
// instant, for that many deaths. It returns what each had shown.
func (l *lab) lives(r *rand.Rand, deaths int, first, again []string) (shown []string) {
	l.t.Helper()
	there := false
	for n := 0; n < deaths; {
		args := first
		if there {
			args = again
		}
		e, died := l.start(args...).killAfter(instant(r))
		switch {
		case died:
			n++
			there = true // or resume will tell
		case !there || begun(e):
			if e.code != 0 {
				l.t.Fatalf("%v: exit %d\n%s", args, e.code, e.err)
			}
			return append(shown, e.out) // it was quicker than its killer
		default:
			if e.code != 2 || l.count("ran/*") > 0 {
				l.t.Fatalf("not a run yet, with exit %d and %d jobs that ran:\n%s", e.code, l.count("ran/*"), e.err)
			}
			if err := os.RemoveAll(l.path("run")); err != nil {
				l.t.Fatal(err)
			}
			there = false
		}
		shown = append(shown, e.out)
	}
	return shown
}

// Issue 3.1, promises 1, 2 and 4: the dispatcher is killed at random instants,
// from the making of the run directory to the leaving of the hosts, and the run
// carried on each time.
func TestDeathsAtAnyInstant(t *testing.T) {
	t.Parallel()
	r := seed(t)
	l := newLab(t, 3)
	jobs, deaths := pick(200, 2000), pick(25, 300)
	gate := l.path("gate")
	var b strings.Builder
	for i := range jobs {
		rest := fmt.Sprintf("sleep 0.0%d", r.IntN(10))
		switch {
		case i%40 == 5: // running all the time
			rest = fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", gate)
		case i%10 == 7:
			rest = fmt.Sprintf("sleep %.1f", r.Float64())
		}
		fmt.Fprintf(&b, "echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID; %s\n", l.path("ran"), rest)
	}
	l.mkdir("ran")
	file := l.file("jobs.txt", b.String())
	again := []string{"resume", "--no-tui", "--json", "--ssh-config", l.sshd[0].ConfigFile, l.path("run")}
	shown := l.lives(r, deaths, l.args(4, "--json", file), again)
	l.file("gate", "")
	// The rest, and its end, with some deaths more.
	for n := 0; ; n++ {
		after := time.Minute
		if n < pick(8, 40) {
			after = time.Duration(30+r.IntN(600)) * time.Millisecond
		}
		e, died := l.start(again...).killAfter(after)
		shown = append(shown, e.out)
		if !died {
			if e.code != 0 {
				t.Fatalf("exit %d\n%s", e.code, e.err)
			}
			break
		}
	}
	t.Logf("%d dispatchers", len(shown))
	l.accounted(l.path("run"), jobs, shown...)
}

// mkdir makes a directory in the lab's.
func (l *lab) mkdir(name string) {
	l.t.Helper()
	if err := os.MkdirAll(l.path(name), 0o700); err != nil {
		l.t.Fatal(err)
	}
}
