package runview

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// keyNames are the words before a colon; keys says what each makes.
var keyNames = []string{"state", "host", "queue", "tag", "exit", "try", "prio", "id"}

var keys = map[string]func(string) (match, error){
	"state": stateMatch,
	"host": func(v string) (match, error) {
		g, err := newGlob("host", v)
		return func(l *list, _ uint32, r *row) bool { return r.host != 0 && g.fits(l.names[r.host]) }, err
	},
	"queue": func(v string) (match, error) {
		g, err := newGlob("queue", v)
		return func(l *list, _ uint32, r *row) bool { return g.fits(l.options[r.options].Queue) }, err
	},
	"tag": func(v string) (match, error) {
		g, err := newGlob("tag", v)
		return func(l *list, _ uint32, r *row) bool {
			for _, tag := range l.options[r.options].Tags {
				if g.fits(tag) {
					return true
				}
			}
			return false
		}, err
	},
	"exit": exitMatch,
	"try":  tryMatch,
	"prio": func(v string) (match, error) {
		c, err := numbers("prio", v)
		return func(_ *list, _ uint32, r *row) bool { return c.fits(float64(r.priority)) }, err
	},
	"id": idMatch,
}

var examples = map[string]string{"state": "state:failed", "host": "host:ws01", "queue": "queue:night", "tag": "tag:gpu",
	"exit": "exit:137", "try": "try:2", "prio": "prio:5", "id": "id:3-9,12"}

// groupsOfPhases are words for several phases.
var groupsOfPhases = map[string][]Phase{
	"open":      {Ending, Running, Away, Handed, Retry, Queued, Waits},
	"done":      {Failed, TimedOut, Succeeded, Cancelled, Skipped},
	"bad":       {Failed, TimedOut, Skipped},
	"running":   {Ending, Running, Away, Handed},
	"queued":    {Queued, Waits, Retry},
	"succeeded": {Succeeded},
	"failed":    {Failed},
	"timed_out": {TimedOut},
	"cancelled": {Cancelled},
	"skipped":   {Skipped},
}

func stateMatch(v string) (match, error) {
	var set [Phases]bool
	for w := range strings.SplitSeq(strings.ToLower(v), ",") {
		found := false
		for p := range Phases {
			if w == p.String() {
				set[p], found = true, true
			}
		}
		for _, p := range groupsOfPhases[w] {
			set[p], found = true, true
		}
		if !found {
			return nil, fmt.Errorf("there is no state %s; there are %s, and open, done, bad", shorten(w), phaseWords())
		}
	}
	return func(_ *list, _ uint32, r *row) bool { return set[r.phase] }, nil
}

func phaseWords() string {
	var words []string
	for p := range Phases {
		words = append(words, p.String())
	}
	return strings.Join(words, ", ")
}

func exitMatch(v string) (match, error) {
	not := strings.HasPrefix(v, "!")
	text := strings.TrimPrefix(v, "!")
	var want, killed uint16 // whoever looks for 137 means a job that SIGKILL ended, too
	if n, err := strconv.Atoi(text); err == nil {
		if n < 0 || n > 255 {
			return nil, fmt.Errorf("exit:%s: an exit code is a number from 0 to 255", jobs.Clean(v, 40))
		}
		if want = 1 + uint16(n); n > 128 {
			killed = bySignal + uint16(n-128)
		}
	} else {
		name := strings.ToUpper(text)
		if !strings.HasPrefix(name, "SIG") {
			name = "SIG" + name
		}
		n := jobs.SignalNumber(name)
		if n == 0 {
			return nil, fmt.Errorf("exit:%s: neither an exit code nor a signal such as SIGKILL", jobs.Clean(v, 40))
		}
		want = bySignal + uint16(n)
	}
	return func(_ *list, _ uint32, r *row) bool {
		return r.exit != 0 && (r.exit == want || r.exit == killed) != not
	}, nil
}

func tryMatch(v string) (match, error) {
	if v == "retried" {
		return func(_ *list, _ uint32, r *row) bool { return r.try() > 1 }, nil
	}
	c, err := numbers("try", v)
	return func(_ *list, _ uint32, r *row) bool { return c.fits(float64(r.try())) }, err
}

// try is the number of the try that a job is at or ended with; 0: it had none.
func (r *row) try() int {
	switch {
	case r.phase == Retry || r.phase <= Handed || r.phase == Succeeded:
		return int(r.failures) + 1
	}
	return int(r.failures)
}

func idMatch(v string) (match, error) {
	type part struct{ first, last uint32 }
	var parts []part
	for text := range strings.SplitSeq(v, ",") {
		a, b, ranged := strings.Cut(text, "-")
		if !ranged {
			b = a
		}
		first, err1 := strconv.ParseUint(a, 10, 32)
		last, err2 := strconv.ParseUint(b, 10, 32)
		if err1 != nil || err2 != nil || first > last {
			return nil, fmt.Errorf("id:%s: numbers and ranges are wanted, such as id:3-9,12", jobs.Clean(v, 40))
		}
		parts = append(parts, part{uint32(first), uint32(last)})
	}
	return func(_ *list, id uint32, _ *row) bool {
		for _, p := range parts {
			if id >= p.first && id <= p.last {
				return true
			}
		}
		return false
	}, nil
}

// glob is a pattern; a name may hold slashes, which path.Match keeps apart.
type glob struct {
	pattern string
	plain   bool
}

func newGlob(key, v string) (glob, error) {
	g := glob{strings.ReplaceAll(v, "/", "\x00"), !strings.ContainsAny(v, `*?[\`)}
	if _, err := path.Match(g.pattern, ""); err != nil {
		return g, fmt.Errorf("%s: the pattern %s is not whole: [ wants a ], and \\ a character after it", jobs.Clean(key, 40), shorten(v))
	}
	if g.plain {
		g.pattern = v
	}
	return g, nil
}

func (g glob) fits(s string) bool {
	if g.plain {
		return s == g.pattern
	}
	ok, _ := path.Match(g.pattern, strings.ReplaceAll(s, "/", "\x00"))
	return ok
}
