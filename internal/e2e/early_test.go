//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// TestJournalsThatEndEarly checks that, if a journal ends early for any reason, no job begins again
// (promises 1 and 2). The two hosts share no directory with the dispatcher, so only they know what ran:
// from packs, if their files were packed. Both answer.
func TestJournalsThatEndEarly(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	const n = 12
	rounds := polltest.Scale(50, 50, 400)
	r := newRand(t)
	l := newLab(t, 2)
	var script strings.Builder
	script.WriteString(`
# Files of a live run come and go.
copy() { until cp -a $1 $2 2>> said.err; do rm -rf $2; done; }
newest() { ls apart/$1/journal/*.jsonl | tail -n 1; }
begin() {
	mkdir -p ran/$1
	sed "s/RUN/$1/" jobs.txt > $1.txt
	$RUN --pack-files 4 --run-dir apart/$1 $1.txt 2>> said.err & pid=$!
	until [ $(ls ran/$1 | wc -l) -ge $2 ] || ! kill -0 $pid; do sleep 0.02; done
}
again() { $DCS resume --no-tui apart/$1 2>> said.err; }
`)
	for i := range rounds {
		run := fmt.Sprintf("run%d", i)
		fmt.Fprintf(&script, "begin %s %d\n", run, 1+r.IntN(n))
		damage := map[string]string{
			"empty": fmt.Sprintf(": > $(newest %s)\n", run),
			"cut": fmt.Sprintf("f=$(newest %s); truncate -s $(($(stat -c %%s $f) * %d / 100)) $f\n", run,
				r.IntN(100)),
			"lines": fmt.Sprintf("f=$(newest %s); head -n %d $f > kept; cat kept > $f\n", run, 1+r.IntN(60)),
		}
		kind := []string{"copy", "snapshot", "empty", "cut", "cut", "lines", "lines"}[r.IntN(7)]
		switch kind {
		case "copy": // a copy of a live run; the original runs to its end
			fmt.Fprintf(&script, "copy apart/%s apart/copy; wait $pid; rm -r apart/%s; mv apart/copy apart/%s\n", run,
				run, run)
		case "snapshot": // an earlier journal in the same directory
			fmt.Fprintf(&script, "copy apart/%s apart/old; wait $pid; for f in journal owner; "+
				"do rm -r apart/%s/$f; mv apart/old/$f apart/%s; done; rm -r apart/old\n", run, run, run)
		default:
			if r.IntN(2) == 0 {
				script.WriteString("kill -9 $pid || true\n")
			}
			script.WriteString("wait $pid || true\n" + damage[kind])
		}
		fmt.Fprintf(&script, "again %s\n", run)
		if again := damage[kind]; again != "" && r.IntN(2) == 0 {
			script.WriteString(again + "again " + run + "\n")
		}
	}
	var text strings.Builder
	for range n {
		fmt.Fprintf(&text, "echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID; sleep 0.%d\n", l.path("ran/RUN"), r.IntN(4))
	}
	l.writeFile("jobs.txt", text.String())
	l.runApart(script.String())
	for i := range rounds {
		for job := 1; job <= n; job++ {
			b, err := os.ReadFile(l.path(fmt.Sprintf("ran/run%d/%d", i, job)))
			if ran := strings.Fields(string(b)); err != nil || len(ran) != 1 {
				t.Errorf("job %d of run %d ran as attempts %v, want one (%v)", job, i, ran, err)
			}
		}
	}
	if t.Failed() {
		t.Logf("the script was\n%s", script.String())
	}
}

// TestOldCopyOfARun resumes an old copy of a run directory. The hosts know later dispatchers than
// the copy does. The first resume reports that. The second one continues the run, and no job runs
// again (promises 1 and 2).
func TestOldCopyOfARun(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	const n = 24
	l := newLab(t, 2)
	jobs := l.writeTaggedJobs(n, "[ $DCS_JOB_ID -le 8 ] || until [ -e "+l.path("gate")+" ]; do sleep 0.05; done")
	l.runApart(`
$RUN --run-dir apart/run ` + jobs + ` & pid=$!
until [ $(ls ran | wc -l) -ge 2 ]; do sleep 0.02; done
until cp -a apart/run apart/copy; do rm -rf apart/copy; done # files of a live run come and go
kill -9 $pid; wait $pid || true
$DCS resume --no-tui apart/run & pid=$!
until [ -s apart/run/journal/000002.jsonl ] && [ $(ls ran | wc -l) -ge 6 ]; do sleep 0.02; done
kill -9 $pid; wait $pid || true
touch gate
$DCS resume --no-tui apart/run
code=0; $DCS resume --no-tui apart/copy 2> first || code=$?
[ $code -ne 0 ]
$DCS resume --no-tui apart/copy 2> second
$DCS results --json apart/copy > results`)
	if text := l.readFile(l.path("first")); !strings.Contains(text, "is a copy, or was restored") ||
		!strings.Contains(text, "dcs-tui resume") {
		t.Errorf("the first resume of the copy says\n%s", text)
	}
	l.checkRanOnce(n, nil)
	if got := strings.Count(l.readFile(l.path("results")), `"succeeded"`); got != n {
		t.Errorf("%d jobs of the copy have succeeded, want %d\n%s", got, n, l.readFile(l.path("second")))
	}
}
