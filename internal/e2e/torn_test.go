//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// TestJournalCutByAPowerLoss truncates the newest file of the journal after the dispatcher's death,
// as a power loss can do: some bytes of its last line, that line, some lines, or everything. It
// checks that the content of the lost lines is recovered from claims and sentinels, and that no
// attempt id starts twice.
func TestJournalCutByAPowerLoss(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	r := newRand(t)
	l := newLab(t, 2)
	const jobs = 40
	file := l.writeTaggedJobs(jobs, "[ $DCS_JOB_ID -lt 4 ] && "+l.gateWait()+"; sleep 0.0$((DCS_JOB_ID % 10))")
	p := l.start(l.runArgs(3, file)...)
	l.until("some have ended", func() bool { return l.numEnded("run/attempts/*/*.status") >= 3 })
	for round := range polltest.Scale(10, 10, 60) {
		p.kill()
		cut := l.truncateJournal(round, r.IntN)
		p = l.start(l.resumeArgs()...)
		want := min(jobs, 4+3*round)
		l.until(fmt.Sprintf("%d have started after %s", want, cut), func() bool {
			return l.numFiles("ran/*") >= want && !p.hasNoHost()
		})
	}
	l.writeFile("gate", "")
	p.mustSucceed()
	l.checkDamagedRun(l.path("run"), jobs)
}

// hasNoHost reports whether no host is up yet.
func (p *process) hasNoHost() bool { return !strings.Contains(p.stderr.String(), "is up") }

// truncateJournal truncates the newest file of the journal: in the first rounds within its last
// line, later by some lines or completely.
func (l *lab) truncateJournal(round int, random func(n int) int) string {
	l.t.Helper()
	files, err := filepath.Glob(l.path("run/journal/*.jsonl"))
	if err != nil || len(files) == 0 {
		l.t.Fatal("no journal: ", err)
	}
	slices.Sort(files)
	file := files[len(files)-1]
	text := l.readFile(file)
	last := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	keep := last + random(len(text)-last+1)
	switch {
	case round%10 == 9:
		keep = 0
	case round%2 == 1:
		keep = random(len(text) + 1)
	}
	must(l.t, os.Truncate(file, int64(keep)))
	what := fmt.Sprintf("%s was cut to %d of %d bytes", filepath.Base(file), keep, len(text))
	l.t.Log(what)
	return what
}
