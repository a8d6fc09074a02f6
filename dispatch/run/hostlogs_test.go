package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dcs-tui/jobs/rundir"
)

// TestHostLogsDoNotWait checks that the lines about a host are logged in order. A log that hangs,
// here a pipe without a reader, blocks neither the writer nor other hosts' lines. Lines beyond the
// limit are dropped (D9).
func TestHostLogsDoNotWait(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, rundir.HostsDir), 0o700))
	path := func(host string) string { return filepath.Join(dir, rundir.HostsDir, host+".log") }
	l := newHostLogs(&rundir.Run{Dir: dir})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { l.Write("a", fmt.Sprintf("first %d\nsecond %d\n", i, i)) })
	}
	all.Wait()
	l.Close()
	l.Write("a", "after the end")
	l.Close()
	b, err := os.ReadFile(path("a"))
	if text := string(b); err != nil || strings.Count(text, "\n") != 8 || strings.Count(text, "first") != 4 ||
		strings.Contains(text, "after") {
		t.Errorf("the log: want 4 lines of each kind, got error %v and\n%s", err, text)
	}

	must(t, syscall.Mkfifo(path("hung"), 0o600))
	l = newHostLogs(&rundir.Run{Dir: dir})
	l.open = func(int, ...string) (*os.File, error) { return os.OpenFile(path("hung"), os.O_WRONLY, 0) }
	for range 2 * maxHostTexts { // opening the pipe waits for a reader
		l.Write("hung", "nobody reads it")
	}
	r, err := os.Open(path("hung"))
	must(t, err)
	defer r.Close()
	ended := make(chan struct{})
	go func() { l.Close(); close(ended) }()
	b, err = io.ReadAll(r)
	if n := strings.Count(string(b), "\n"); err != nil || n < maxHostTexts || n > maxHostTexts+1 {
		t.Errorf("%d lines: %v", n, err)
	}
	<-ended
}

// TestHostLogsUnused checks that logs in which nothing was written leave no files.
func TestHostLogsUnused(t *testing.T) {
	dir := t.TempDir()
	l := newHostLogs(&rundir.Run{Dir: dir})
	l.Close()
	l.Write("a", "late")
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("a write after Close: got files %v, want none", names)
	}
}
