package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestRunOfANewerProgramIsRefused checks that a run is opened if its version is that of this program
// or an older one. The error for a newer one names both versions and the newer program. It comes
// before anything else is read, because a newer program may have another run.toml.
func TestRunOfANewerProgramIsRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "it is damaged"},
		{"x", "it is damaged"},
		{fmt.Sprintf("%d v0.1.0\n", jobs.FormatRun.Version), ""},
		{fmt.Sprintf("%d\n", jobs.FormatRun.Version), ""},
		{fmt.Sprintf("%d v9.8.7 (abc)\n", jobs.FormatRun.Version+1),
			fmt.Sprintf("(v9.8.7 (abc)) uses the run: it has version %d, and this dcs-tui knows version %d: use",
				jobs.FormatRun.Version+1, jobs.FormatRun.Version)},
		{fmt.Sprintf("%d\n", jobs.FormatRun.Version+1), "a newer dcs-tui uses the run: it has version"},
	} {
		r := newRun(t)
		must(t, os.WriteFile(r.Path(FormatFile), []byte(c.text), 0o600))
		if strings.HasPrefix(c.want, "a newer") {
			must(t, os.WriteFile(r.Path(SettingsFile), []byte("[something else]"), 0o600))
		}
		_, err := Open(r.Dir)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
		if strings.Contains(c.want, "uses the run") != errors.As(err, new(*jobs.VersionError)) {
			t.Errorf("%q: got %v of another type", c.text, err)
		}
	}
	r := newRun(t)
	must(t, os.Remove(r.Path(FormatFile))) // as the first programs made it
	reopen(t, r)
}

// TestSettingsOfANewerProgramAreRefused checks that a key of run.toml that this program does not know
// is not ignored.
func TestSettingsOfANewerProgramAreRefused(t *testing.T) {
	r := newRun(t)
	b, err := os.ReadFile(r.Path(SettingsFile))
	must(t, err)
	_, b, _ = bytes.Cut(b, []byte("\n")) // the checksum
	must(t, os.WriteFile(r.Path(SettingsFile), append([]byte("container = \"x\"\n"), b...), 0o600))
	if _, err := Open(r.Dir); err == nil || !strings.Contains(err.Error(), `unknown key "container"`) {
		t.Errorf("got %v, want an error that names the key", err)
	}
}
