package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
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
