//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// jobResult contains the fields that these tests read from a line of --json.
type jobResult struct {
	Job   int
	UID   string
	State string
	Host  string
	Round int
	Seq   int
}

// completeResults returns the results of the complete lines of an output. A killed program may have
// left an incomplete line.
func (l *lab) completeResults(out string) []jobResult {
	l.t.Helper()
	var rs []jobResult
	for text := range strings.Lines(out) {
		if !strings.HasSuffix(text, "\n") {
			break
		}
		var r jobResult
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			l.t.Fatalf("%v: %q", err, text)
		}
		rs = append(rs, r)
	}
	return rs
}

// hostsUsed returns how many of the results of an output are of each host.
func (l *lab) hostsUsed(out string) map[string]int {
	l.t.Helper()
	used := map[string]int{}
	for _, r := range l.completeResults(out) {
		used[r.Host]++
	}
	return used
}

// checkRun checks the promises for a finished run of n jobs, based on what any user can see: the
// results, the outputs of its dispatchers in order (shown), and the files that the jobs wrote.
//
//   - Each job has one result, numbered 1 to n without a gap.
//   - No number was shown for two different jobs or states, and every result was
//     shown at least once.
//   - Each job ran once: running jobs were adopted, and nothing was started again.
func (l *lab) checkRun(run string, n int, shown ...string) {
	l.t.Helper()
	l.checkRunTwice(nil, run, n, shown...)
}

// checkRunTwice is checkRun for a run in which the jobs in twice fail once and therefore run as
// two attempts.
func (l *lab) checkRunTwice(twice map[int]bool, run string, n int, shown ...string) {
	l.t.Helper()
	final := l.checkSucceeded(run, n)
	for i, r := range final {
		if r.Seq != i+1 {
			l.t.Errorf("result %d has number %d", i+1, r.Seq)
		}
	}
	if len(shown) > 0 {
		l.checkShown(final, shown)
	}
	l.checkRanOnce(n, twice)
	l.checkOver(run)
}

// checkDamagedRun is checkRun for a run whose journal was damaged: the result numbers
// increase and may have gaps.
func (l *lab) checkDamagedRun(run string, n int) {
	l.t.Helper()
	for i, r := range l.checkSucceeded(run, n) {
		if r.Seq <= i {
			l.t.Errorf("result %d has number %d", i+1, r.Seq)
		}
	}
	l.checkRanOnce(n, nil)
	l.checkOver(run)
}

// checkSucceeded returns the results of a run by number. It checks that each of its n jobs has one
// result and has succeeded.
func (l *lab) checkSucceeded(run string, n int) []jobResult {
	l.t.Helper()
	e := l.mustRun("results", "--json", run)
	final := l.completeResults(e.stdout)
	if len(final) != n {
		l.t.Errorf("%d results of %d jobs", len(final), n)
	}
	jobs, numbers := map[int]bool{}, map[int]bool{}
	for _, r := range final {
		if jobs[r.Job] || numbers[r.Seq] {
			l.t.Errorf("job %d or number %d has two results", r.Job, r.Seq)
		}
		jobs[r.Job], numbers[r.Seq] = true, true
		if r.State != "succeeded" {
			l.t.Errorf("job %d: %s", r.Job, r.State)
		}
	}
	return final
}

// checkOver checks that a run is recorded as ended and has no dispatcher.
func (l *lab) checkOver(run string) {
	l.t.Helper()
	status := l.run("status", "--json", run)
	var s struct {
		Ended bool
		Owner *string
	}
	if err := json.Unmarshal([]byte(status.stdout), &s); err != nil || !s.Ended || s.Owner != nil {
		l.t.Errorf("status of a run that is over: %v: %s%s", err, status.stdout, status.stderr)
	}
}

// checkShown compares the outputs of the dispatchers with the final results.
func (l *lab) checkShown(final []jobResult, shown []string) {
	l.t.Helper()
	had := make([]bool, len(final)+1)
	wrong := 0
	for life, out := range shown {
		for _, r := range l.completeResults(out) {
			if wrong == 10 {
				l.t.Fatal("and so on")
			}
			wrong++
			switch {
			case r.Seq < 1 || r.Seq > len(final):
				l.t.Errorf("dispatcher %d showed result %d of job %d, which there is not", life+1, r.Seq, r.Job)
			case r != final[r.Seq-1]:
				l.t.Errorf("dispatcher %d showed %+v, in the end it is %+v", life+1, r, final[r.Seq-1])
			default:
				had[r.Seq] = true
				wrong--
			}
		}
	}
	for seq, ok := range had[1:] {
		if !ok {
			l.t.Errorf("result %d was shown to nobody", seq+1)
		}
	}
}

// checkRanOnce checks, by the files that the jobs wrote, that each job ran exactly once, or twice
// if it is in twice.
func (l *lab) checkRanOnce(n int, twice map[int]bool) {
	l.t.Helper()
	for id := 1; id <= n; id++ {
		b, err := os.ReadFile(l.path(fmt.Sprintf("ran/%d", id)))
		ran := strings.Fields(string(b))
		switch {
		case err != nil:
			l.t.Errorf("job %d never ran", id)
		case twice[id] && (len(ran) != 2 || ran[0] == ran[1]), !twice[id] && len(ran) != 1:
			l.t.Errorf("job %d ran as attempts %v", id, ran)
		}
	}
}

// journalRecord contains the fields that these tests read from a line of the journal. The tests use
// their own parser.
type journalRecord struct {
	K     string
	H     string
	J, N  int
	Seq   int
	Epoch int
	Why   string
}

// journal returns the complete lines of all files of a run's journal.
func (l *lab) journal(run string) []journalRecord {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(run, "journal/*.jsonl"))
	must(l.t, err)
	slices.Sort(files)
	var facts []journalRecord
	for _, file := range files {
		for text := range strings.Lines(l.readFile(file)) {
			_, body, _ := strings.Cut(text, " ")
			var f journalRecord
			if !strings.HasSuffix(text, "\n") || json.Unmarshal([]byte(body), &f) != nil {
				continue
			}
			facts = append(facts, f)
		}
	}
	return facts
}
