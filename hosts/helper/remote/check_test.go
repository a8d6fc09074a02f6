//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

var finalFile = regexp.MustCompile(`^run/attempts/[0-9]{3}/[0-9]+\.[0-9]+\.(status|out|err)$`)

// kills says that the plan ends a process of the given role ("" for any).
func (p *plan) kills(role string) bool {
	return (p.How == howKill || p.How == howKilled) && strings.HasPrefix(p.Call.Role, role)
}

// check holds promises 1 to 5 against what was said and what is there.
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
	// Promise 5: what went wrong once costs one attempt; a death, what it held.
	if spent > 1 && d.p.How != howFull && !d.p.kills("host") && d.ends == 0 { // with a helper the launch may have been lost
		d.wrong("%d attempts were lost", spent)
	}
	litter := d.litter()
	if clean := d.clean(); !clean {
		switch {
		case d.p.How == howFull:
		case fired == "":
			d.wrong("nothing went wrong, and yet:%s", d.trace())
		case d.p.How == howShort || d.p.How == "EINTR" && d.p.Call.Op != "close":
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
		if runs != 1 && !r.outcome.Stopped || !k.want(&r.outcome) { // one that is stopped may not have come to note anything
			d.wrong("%s ran %d times and is said to have ended with %+v", r.id, runs, r.outcome)
		}
		b, err := os.ReadFile(jobs.AttemptFile(d.w.runDir, r.id, jobs.FileStatus))
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

// names says whether some line names the fault's file, or its attempt or
// directory, and the reason.
func (d *driver) names(fired string) bool {
	_, path, _ := strings.Cut(fired, " ")
	reason := errnos[d.p.How].Error()
	words := []string{path, filepath.Base(path)}
	for _, s := range d.said {
		for _, w := range words {
			if strings.Contains(s, reason) && strings.Contains(s, w) {
				return true
			}
		}
	}
	return false
}

func (d *driver) trace() string {
	return fmt.Sprintf("\n\tafter %d broken channels, fired at ", d.ends) + d.p.fired() + "\n\tsaid " + strings.Join(d.said, "\n\tsaid ") +
		"\n\tleft " + strings.Join(d.litter(), "\n\tleft ") + "\n" + d.state()
}
