package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs/rundir"
)

// X1: what a command waits for is reported after 3 s, once, and nothing of a run directory
// that answers, or that a screen shows.
func TestSlowRunDirectoryIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		a := &app{con: console.To(&said)}
		takes := func(d time.Duration) {
			answered := a.reportSlow("dcs-runs/a\x1bb")
			time.Sleep(d)
			answered()
			synctest.Wait()
		}
		takes(slowDelay - time.Millisecond)
		a.con.Hold()
		takes(time.Minute)
		a.con.Release()
		time.Sleep(time.Minute)
		if said.Len() > 0 {
			t.Errorf("got %q of a directory that answers", said.String())
		}
		a.con.Hold()
		time.AfterFunc(30*time.Second, a.con.Release)
		takes(time.Minute)
		takes(time.Minute)
		if got, want := said.String(), "the run directory dcs-runs/a␛b has not answered for 3 s; waiting\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// So it is for each command that opens a run, from its first look on: a fifo lets the
// opening of a file hang.
func TestOpeningARunThatHangs(t *testing.T) {
	t.Parallel()
	run := emptyRun(t)
	if err := os.Remove(run.Path(rundir.AskedFile)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(run.Path(rundir.AskedFile), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := make(lineChan, 10)
	a := newApp()
	a.con = console.To(lines)
	opened := make(chan error)
	go func() {
		_, err := a.openRun([]string{filepath.Clean(run.Dir)})
		opened <- err
	}()
	if want := "the run directory " + run.Dir + " has not answered for 3 s; waiting"; strings.TrimSpace(<-lines) != want {
		t.Error("it says something else")
	}
	w, err := os.OpenFile(run.Path(rundir.AskedFile), os.O_WRONLY, 0) // what lets it go on
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-opened; err == nil {
		t.Error("an empty file was read as what was asked")
	}
}

// lineChan hands on what is written.
type lineChan chan string

func (c lineChan) Write(b []byte) (int, error) {
	c <- string(b)
	return len(b), nil
}
