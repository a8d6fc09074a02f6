package cli

import (
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"dcs-tui/dispatch"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// TestProgressIsErased checks that the progress line is below all other lines and is erased before
// anything else is written, so that no part of it remains on the screen.
func TestProgressIsErased(t *testing.T) {
	var b strings.Builder
	c := &console{w: &b, fd: -1, tty: true}
	c.Status("1/2")
	c.Line("one", "two")
	c.Status("2/2")
	c.Suspend(func() error { b.WriteString("|from a job|"); return nil })
	c.Line("three")
	c.Status("")
	want := "1/2" + "\r\x1b[K" + "one\ntwo\n1/2" + "\r\x1b[K" + "2/2" + "\r\x1b[K" + "|from a job|" + "three\n2/2" +
		"\r\x1b[K"
	same(t, "output", b.String(), want)
}

// TestNoProgressWithoutATerminal checks that the console shows neither progress nor color without a
// terminal. On a terminal, a progress line that is too long is cut, because a wrapped line could
// not be erased.
func TestNoProgressWithoutATerminal(t *testing.T) {
	var b strings.Builder
	c := &console{w: &b, fd: -1, tty: true, color: true}
	c.Status(strings.Repeat("x", 200))
	same(t, "columns of 80", b.Len(), 79)
	c.Detach(&b)
	for _, c := range []*console{c, consoleTo(&b)} {
		b.Reset()
		c.Status("progress")
		c.Line(c.Paint(red, "text"))
		same(t, "output", b.String(), "text\n")
	}
}

// TestUTF8IsReadFromTheLocale checks that the first of LC_ALL, LC_CTYPE, and LANG that is set
// decides whether the terminal shows UTF-8.
func TestUTF8IsReadFromTheLocale(t *testing.T) {
	for _, test := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "en_US.UTF-8", true},
		{"", "", "de_AT.utf8", true},
		{"", "", "", false},
		{"C", "", "en_US.UTF-8", false},
		{"", "C.UTF-8", "C", true},
	} {
		env := map[string]string{"LC_ALL": test.all, "LC_CTYPE": test.ctype, "LANG": test.lang}
		same(t, test, utf8Locale(func(k string) string { return env[k] }), test.want)
	}
}

// TestNothingOfAJobMovesTheCursor checks that texts of jobs and hosts reach the terminal without
// control sequences.
func TestNothingOfAJobMovesTheCursor(t *testing.T) {
	c := &console{ascii: true}
	evil := "a\x1b[2Jb\r\nc\x9bd"
	r := &results.Result{Job: 1, State: jobs.Failed, Command: evil, Host: evil, Reason: evil,
		Outcome: &jobs.Outcome{Exit: 1, Started: 1, Ended: 2, LastLine: evil, LeftChildren: 2}}
	for what, line := range map[string]string{
		"job": c.JobLine(r), "notice": c.NoticeLine(dispatch.Notice{Host: evil, Text: evil}), "error": text.Line(evil),
	} {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%s: %q", what, line)
		}
	}
	checkContains(t, c.JobLine(r), "left 2 processes behind")
}

// TestTablesInFilesAreNotCutLikeThoseOfANarrowTerminal checks that the last line of a failed job is
// printed into a file or pipe far beyond 80 columns.
func TestTablesInFilesAreNotCutLikeThoseOfANarrowTerminal(t *testing.T) {
	last := strings.Repeat("long ", 30) + "end"
	failures := []results.Group{{Count: 1, Cause: "exit 1", LastLine: last, Examples: []results.Example{{Job: 1}}}}
	lines := (&results.Summary{Jobs: 1, Failures: failures}).Lines(consoleTo(io.Discard).TextWidth())
	checkContains(t, strings.Join(lines, "\n"), last)
}

// TestANoticeNamesItsHostOnce checks that a notice about a job begins with its host only if the text
// does not name the host itself.
func TestANoticeNamesItsHostOnce(t *testing.T) {
	for text, want := range map[string]string{
		"attempt 3.1 lost: its host ws1 is lost: no heartbeat for 60 s": "- job 3  attempt 3.1 lost: its host ws1 is " +
			"lost: no heartbeat for 60 s",
		"job 3 runs on ws1 too: it is late": "- job 3  runs on ws1 too: it is late",
		"its record was found on ws1":       "- job 3  its record was found on ws1",
		"job 3 was found on ws12":           "- job 3  ws1  was found on ws12",
		"ws1 cannot start it":               "- job 3  ws1  cannot start it",
		"a person asked for ws1x":           "- job 3  ws1  a person asked for ws1x",
	} {
		same(t, text, (&console{ascii: true}).NoticeLine(dispatch.Notice{Host: "ws1", Job: 3, Text: text}), want)
	}
}

// The line of a failed job does not say that it failed as often as it used up tries if there were
// more attempts: those that used up none have failed, too.
func TestAJobsLineTellsAttemptsFromTries(t *testing.T) {
	for _, test := range []struct {
		attempts, failures int
		want               string
	}{
		{1, 1, "exit 3  job"},
		{3, 3, "exit 3, failed 3 times  job"},
		{6, 2, "exit 3, attempts: 6, tries used: 2  job"},
	} {
		r := &results.Result{Job: 1, State: jobs.Failed, Host: "ws03", Name: "job", Attempts: test.attempts,
			Failures: test.failures, Outcome: &jobs.Outcome{Started: 1, Ended: 2, Exit: 3}}
		checkContains(t, (&console{fd: -1}).JobLine(r), test.want)
	}
}

// TestAJobsLineFitsTheTerminal checks that a job's line fits one row of a terminal: long parts are
// cut, but the cause is not. In a file the line is complete.
func TestAJobsLineFitsTheTerminal(t *testing.T) {
	long := strings.Repeat("word ", 60)
	for _, test := range []struct {
		state        jobs.JobState
		exit         int
		title, words string
		want         []string
	}{
		{jobs.Succeeded, 0, long, "", nil},
		{jobs.Failed, 3, long, long, []string{"exit 3"}},
		{jobs.Failed, 3, "short", long, []string{"exit 3"}},
		{jobs.Failed, 3, long, "short", []string{"exit 3", "“short”"}},
	} {
		r := &results.Result{Job: 1234, State: test.state, Host: "ws03", Command: test.title,
			Outcome: &jobs.Outcome{Started: 1, Ended: 2, Exit: test.exit, LastLine: test.words}}
		line := (&console{fd: -1, tty: true}).JobLine(r)
		if n := utf8.RuneCountInString(line); n > 80 || n < 60 {
			t.Errorf("%d columns: %s", n, line)
		}
		checkContains(t, line, test.want...)
		if file := (&console{fd: -1}).JobLine(r); utf8.RuneCountInString(file) <= utf8.RuneCountInString(line) {
			t.Errorf("in a file: %s", file)
		}
	}
}
