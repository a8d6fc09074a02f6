package link

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target returns the target that a configuration for the fixture would give.
func target(s *hosttest.SSHD) *Target {
	return &Target{
		Alias: "melon4", HostName: "127.0.0.1", Port: s.Port, User: s.User,
		IdentityFiles: []string{s.Identity}, Explicit: true, KnownHosts: []string{s.KnownHosts},
	}
}

// patient returns a context that ends only if the test is stuck.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// mustRun opens a link to target, runs a command, and returns its output.
func mustRun(t *testing.T, o *SSHOpener, target *Target, command string) string {
	t.Helper()
	l, err := o.dialTarget(patient(t), "melon4", target)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return run(t, l, command)
}

func run(t *testing.T, l hosts.Link, command string) string {
	t.Helper()
	s, err := l.Start(patient(t), command)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Stdin().Close()
	out, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// mustFail opens a link that must fail and checks the class and the words of the error.
func mustFail(t *testing.T, o *SSHOpener, target *Target, class hosts.Class, words ...string) {
	t.Helper()
	l, err := o.dialTarget(patient(t), "melon4", target)
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
