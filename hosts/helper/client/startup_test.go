package client

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
)

// startingWith returns a host whose bash reads rc as its startup file, and a counter of
// the bytes sent to it.
func startingWith(t *testing.T, rc string) (*far, *counter) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("LEFT OUT: ", err)
	}
	f, sent := newFar(t), &counter{}
	f.shell = `BASH_ENV="$HOME/rc" exec bash -c "$3"`
	f.wrap = func(s hosts.Stream) hosts.Stream { return tapped{s, sent} }
	if err := os.WriteFile(filepath.Join(f.home, "rc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	return f, sent
}

// A startup file that reads standard input takes nothing that is meant for the
// bootstrap, because nothing has been sent yet.
func TestStartupFileThatLooksAtItsInput(t *testing.T) {
	for name, rc := range map[string]string{
		"a line":     "read -r -t 0.3 x && echo \"$x\" > \"$HOME/taken\"",
		"many bytes": "timeout 0.3 cat > \"$HOME/taken\"",
		"a shell":    "timeout 0.3 sh -c 'while read -r x; do echo \"$x\"; done' > \"$HOME/taken\"",
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := startingWith(t, rc)
			f.mustServe(f.connector())
			if taken, err := os.ReadFile(filepath.Join(f.home, "taken")); err == nil && len(taken) > 0 {
				t.Errorf("it took %q", taken)
			}
		})
	}
}

// A startup file that waits for input gets none, and the error names the cause.
func TestStartupFileThatWaitsForInput(t *testing.T) {
	for name, rc := range map[string]string{
		"asks":      `printf 'Which project? '; read -r x`,
		"a shell":   `exec sh`,
		"all of it": `cat > "$HOME/taken"`,
	} {
		t.Run(name, func(t *testing.T) {
			f, sent := startingWith(t, rc)
			c := f.connector()
			c.opt.ConnectTimeout = time.Second
			_, err := f.connect(c)
			if hosts.ClassOf(err) != hosts.Unreachable || !strings.Contains(err.Error(), "while waiting for the login shell") ||
				!strings.Contains(err.Error(), "a startup file there, such as .bashrc, may read standard input") {
				t.Errorf("got %v", err)
			}
			if name == "asks" && !strings.Contains(err.Error(), `it printed "Which project?"`) {
				t.Errorf("its question is not quoted: %v", err)
			}
			if sent.n != 0 {
				t.Errorf("%d bytes were sent to it", sent.n)
			}
		})
	}
}

// A terminal on the way would change our bytes. It is recognized by its line endings.
func TestTerminalOnTheWay(t *testing.T) {
	f := newFar(t)
	f.shell = `printf '%s sys Linux x86_64\r\n' "${3##* }"; exec cat`
	_, err := f.connect(f.connector())
	if hosts.ClassOf(err) != hosts.Misconfigured || !strings.Contains(err.Error(), "runs on a terminal of the far end (take -t out of the link") {
		t.Errorf("got %v", err)
	}
}

// If uname is not in PATH, the error shows PATH and says what it must contain.
func TestUnameIsNotInPath(t *testing.T) {
	f := newFar(t)
	f.shell = `PATH=/opt/none:/opt/nothing; export PATH; exec "$@"`
	_, err := f.connect(f.connector())
	if hosts.ClassOf(err) != hosts.Misconfigured || !strings.Contains(err.Error(), `uname cannot be run there: PATH is "/opt/none:/opt/nothing"`) ||
		!strings.Contains(err.Error(), "it must contain the directories of the usual programs") {
		t.Errorf("got %v", err)
	}
}
