//go:build linux

package remote

import (
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// A job never runs without its setup: when that fails, so does the job, with the
// setup's exit code and words. What the setup did lasts in the same shell.
func TestSetupComesFirst(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	missing := job("1.1", "echo ran")
	missing.Setup = "no-such-setup"
	fails := job("2.1", "echo ran")
	fails.Setup = "(exit 9)"
	lasts := job("3.1", `echo "$V $(pwd)"; false; exit 4`)
	lasts.Setup = "# a comment\nV=1\ncd / # and another"
	f.launch(missing, fails, lasts)
	for id, want := range map[string]int{"1.1": 127, "2.1": 9, "3.1": 4} {
		o := f.exit(id)
		if o.Exit != want {
			t.Errorf("%s: %+v, want exit %d", id, o, want)
		}
		if id == "1.1" && !strings.Contains(o.LastLine, "no-such-setup") {
			t.Errorf("%s: the last line is %q", id, o.LastLine)
		}
		if out := w.content(id, jobs.FileOut); id != "3.1" && out != "" || id == "3.1" && out != "1 /\n" {
			t.Errorf("%s printed %q", id, out)
		}
	}
	f.bye()
}
