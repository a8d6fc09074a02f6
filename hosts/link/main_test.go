package link

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

func TestMain(m *testing.M) {
	controlTimeout = polltest.Patience // ssh answers, though late on a busy machine
	os.Exit(polltest.RunWithoutLeaks(m))
}

// target returns the target that a configuration for the fixture would give.
func target(s *hosttest.SSHD) *Target {
	return &Target{
		Alias: "melon4", HostName: "127.0.0.1", Port: s.Port, User: s.User,
		IdentityFiles: []string{s.Identity}, Explicit: true, KnownHosts: []string{s.KnownHosts},
	}
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// program writes an executable file and returns its path.
func program(t *testing.T, name, text string) string {
	t.Helper()
	file := write(t, filepath.Join(t.TempDir(), name), text)
	must(t, os.Chmod(file, 0o700))
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	must(t, err)
	return string(b)
}

// contextUnlessStuck returns a context that ends only if the test is stuck.
func contextUnlessStuck(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), polltest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// dial opens a link to target. It is closed at the end of the test, if not before.
func dial(t testing.TB, o *SSHOpener, target *Target) hosts.Link {
	t.Helper()
	l, err := o.dialTarget(contextUnlessStuck(t), "melon4", target)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// dialAgain is dial that repeats itself while the host is unreachable. It returns nil after any
// other error.
func dialAgain(t *testing.T, o *SSHOpener, target *Target) hosts.Link {
	for {
		l, err := o.dialTarget(contextUnlessStuck(t), "melon4", target)
		if err == nil {
			t.Cleanup(func() { l.Close() })
			return l
		}
		if hosts.ClassOf(err) != hosts.Unreachable || t.Context().Err() != nil {
			t.Error(err)
			return nil
		}
	}
}

// dialMany opens n links to target at the same time, and closes them.
func dialMany(t *testing.T, n int, o *SSHOpener, target *Target) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			l, err := o.dialTarget(contextUnlessStuck(t), "melon4", target)
			if err != nil {
				t.Error(err)
				return
			}
			l.Close()
		})
	}
	wg.Wait()
}

// start starts a command.
func start(t testing.TB, l hosts.Link, command string) hosts.Stream {
	t.Helper()
	s, err := l.Start(contextUnlessStuck(t), command)
	must(t, err)
	return s
}

// mustRun opens a link to target, runs a command, and returns its output.
func mustRun(t *testing.T, o *SSHOpener, target *Target, command string) string {
	t.Helper()
	l := dial(t, o, target)
	defer l.Close()
	return run(t, l, command)
}

func run(t *testing.T, l hosts.Link, command string) string {
	t.Helper()
	s := start(t, l, command)
	defer s.Close()
	s.Stdin().Close()
	out, err := io.ReadAll(s)
	must(t, err)
	if err := s.Wait(); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// mustFail opens a link that must fail and checks the class and the words of the error.
func mustFail(t *testing.T, o *SSHOpener, target *Target, class hosts.Class, words ...string) {
	t.Helper()
	l, err := o.dialTarget(contextUnlessStuck(t), "melon4", target)
	if err == nil {
		l.Close()
		t.Fatal("the link was opened")
	}
	checkError(t, err, class, words...)
}

func checkError(t *testing.T, err error, class hosts.Class, words ...string) {
	t.Helper()
	if got := hosts.ClassOf(err); got != class {
		t.Errorf("class %v, want %v: %v", got, class, err)
	}
	for _, w := range append(words, "melon4: ") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
}

var must = polltest.Must
