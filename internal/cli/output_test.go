package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// TestACommandFailsWhoseOutputIsNotWritten checks that each command that prints to standard output
// fails, and reports it once, if that cannot be written.
func TestACommandFailsWhoseOutputIsNotWritten(t *testing.T) {
	dir := tempDir(t)
	newGridRun(t, filepath.Join(dir, "dcs-runs"), 2)
	writeFile(t, dir, "jobs.txt", "echo a\n")
	t.Chdir(dir)
	unwritable, err := os.Open(os.DevNull) // for reading only
	must(t, err)
	defer unwritable.Close()
	for _, command := range []string{
		"--help", "--version", "version", "help", "help run", "help pages", "help jobs", "run --help",
		"runs --help", "hosts", "man", "completion", "completion bash", "__complete ru", "status",
		"status --json", "why 1", "why --json 1", "logs 1", "logs --json 1", "fetch --json", "results",
		"results --json", "results --format csv", "events", "events --json", "report -o -", "runs list",
		"runs list --json", "hosts list", "hosts check", "hosts check --json", "run --dry-run jobs.txt",
		"grid --count jobs.txt", "grid --dry-run jobs.txt",
	} {
		t.Run(command, func(t *testing.T) {
			var stderr bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &output{File: unwritable}, stderr: os.Stderr,
				con: consoleTo(&stderr), pages: fstest.MapFS{"docs/jobs.md": {Data: []byte("# Jobs\n")}}}
			if code := a.main(strings.Fields(command)); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
			if n := strings.Count(stderr.String(), "write "+os.DevNull+": "); n != 1 {
				t.Errorf("%d reports on stderr: %s", n, &stderr)
			}
		})
	}
}

// TestReasonsOfAFetchAreOfTheirAttempts checks that the reason why one attempt could not be copied is not
// given for those that were not tried because the disk was full.
func TestReasonsOfAFetchAreOfTheirAttempts(t *testing.T) {
	id := jobs.AttemptID{Job: 3, N: 1}
	f := new(fetchJSON)
	f.add([]files.HostResult{
		{Host: "ws01", NumIncomplete: 3, Failed: []files.FailedFetch{{Attempt: id, Err: errors.New("too large")}}},
		{Host: "ws02", NumIncomplete: 2, Err: errors.New("no route")},
	}, syscall.ENOSPC)
	var got []string
	for _, line := range f.lines(&rundir.Run{}) {
		if strings.HasPrefix(line, "outputs of ") {
			got = append(got, line)
		}
	}
	want := []string{"outputs of 3.1 were not copied from ws01: too large",
		"outputs of 2 attempts were not copied from ws02: no route"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
