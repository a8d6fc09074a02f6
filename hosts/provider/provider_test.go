package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

func cloud(create, list, terminate string) *hosts.Provider {
	return &hosts.Provider{Name: "cloud", Create: create, List: list, Terminate: terminate, Startup: time.Minute, Idle: 90 * time.Second,
		Host: hosts.Host{Link: "ssh", Addresses: []string{"{name}"}}}
}

// Names, the prefix and idle reach the command as one word each, whatever is in them.
func TestPlaceholders(t *testing.T) {
	for name, want := range map[string]string{
		"dcs-a-1":        "<dcs-a-1><dcs-a><90>",
		"a b":            "<a b><dcs-a><90>",
		"$(echo no);'x'": "<$(echo no);'x'><dcs-a><90>",
	} {
		file := filepath.Join(t.TempDir(), "out")
		p := cloud("printf '<%s>' {name} {run} {idle} > "+quote(file), "", "")
		if err := Create(context.Background(), p, "dcs-a", name); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(file); string(got) != want {
			t.Errorf("%q: the command got %s, want %s", name, got, want)
		}
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct{ name, command, want string }{
		{"names", "echo dcs-a-1; echo; echo ' dcs-a-2 '", "dcs-a-1=[dcs-a-1]:0 dcs-a-2=[dcs-a-2]:0"},
		{"addresses and ports", "echo dcs-a-1 10.0.0.1; echo dcs-a-2 h.example.org 2222", "dcs-a-1=[10.0.0.1]:0 dcs-a-2=[h.example.org]:2222"},
		{"others are left out", "echo dcs-b-1; echo other; echo dcs-a; echo dcs-a-1", "dcs-a-1=[dcs-a-1]:0"},
		{"a name twice", "echo dcs-a-1; echo dcs-a-1 x", "dcs-a-1=[dcs-a-1]:0"},
		{"nothing", "true", ""},
		{"noise on standard error", "echo warning >&2; echo dcs-a-1", "dcs-a-1=[dcs-a-1]:0"},
		{"prefix", "echo {run}-7", "dcs-a-7=[dcs-a-7]:0"},
		{"garbage", `printf 'dcs-a-1\n\033[2J{"x": 1}\n'`, `error: provider cloud: the list command printed a line that is not an instance`},
		{"binary", `printf 'dcs-a-1\n\000\377\n'`, "error: provider cloud: the list command printed a line that is not an instance"},
		{"a name with spaces", "echo 'my old instance 4'", "error: provider cloud: the list command printed a line that is not an instance"},
		{"a bad port", "echo dcs-a-1 x 99999", "error: provider cloud: the list command printed a line that is not an instance"},
		{"an option as address", "echo dcs-a-1 -oProxyCommand=x", "error: provider cloud: the list command printed a line that is not an instance"},
		{"fails", "echo dcs-a-1; echo 'no token' >&2; exit 3", "error: provider cloud: the list command failed (exit status 3): no token"},
		{"fails with its message on standard output", "echo 'no token'; exit 3", "error: provider cloud: the list command failed (exit status 3): no token"},
		{"no such program", "no-such-program-1", "error: provider cloud: the list command failed (exit status 127): "},
		{"a million lines", "yes dcs-a-1 | head -1000000", "error: provider cloud: the list command printed more than 1 MiB"},
		{"escapes in the message", `printf '\033[2Jbad\n' >&2; exit 1`, "error: provider cloud: the list command failed (exit status 1): "},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := List(context.Background(), cloud("", c.command, ""), "dcs-a")
			var got []string
			for _, h := range list {
				got = append(got, fmt.Sprintf("%s=%v:%d", h.Name, h.Hosts[0].Addresses, h.Hosts[0].Port))
			}
			text := strings.Join(got, " ")
			if err != nil {
				text = "error: " + err.Error()
			}
			if text != c.want && (err == nil || !strings.HasPrefix(text, c.want)) || strings.ContainsRune(text, '\x1b') {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// A command that hangs is killed with all that it has started; one that has succeeded may
// leave something running that keeps its output open.
func TestHangingCommands(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	fifo := filepath.Join(t.TempDir(), "started")
	p := cloud("", "", "touch "+quote(fifo)+"; sleep 1000 & sleep 1000; true")
	done := make(chan error, 1)
	go func() { done <- Terminate(ctx, p, "dcs-a", "dcs-a-1") }()
	polltest.Until(t, time.Minute, "the command to start", func() bool {
		_, err := os.Stat(fifo)
		return err == nil
	})
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "the terminate command of dcs-a-1 was killed") {
		t.Errorf("got %v, want an error that says that it was killed", err)
	}
	p = cloud("", "", "")
	_, err := run(context.Background(), p, "create", "exec sleep 1000", "dcs-a", "dcs-a-1", time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "has not ended within 1ms and was killed") {
		t.Errorf("got %v, want an error about the time", err)
	}
	p = cloud("sleep 3 & echo made", "", "")
	if err := Create(context.Background(), p, "dcs-a", "dcs-a-1"); err != nil {
		t.Errorf("a command that leaves a daemon behind: %v", err)
	}
}

// A command that has made an instance has made it, however much it prints.
func TestCreatePrintsMuch(t *testing.T) {
	if err := Create(context.Background(), cloud("yes | head -1000000", "", ""), "dcs-a", "dcs-a-1"); err != nil {
		t.Error(err)
	}
}
