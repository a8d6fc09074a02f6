package cli

import (
	"bytes"
	"errors"
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

// hungDisk answers after a while.
type hungDisk struct {
	rundir.Disk
	after time.Duration
}

func (d *hungDisk) Names(string) ([]string, error) {
	time.Sleep(d.after)
	return nil, nil
}

func (d *hungDisk) OpenFile(string, int, os.FileMode) (rundir.File, error) {
	return hungFile{nil, d}, nil
}

type hungFile struct {
	rundir.File
	d *hungDisk
}

func (f hungFile) ReadAt([]byte, int64) (int, error) {
	time.Sleep(f.d.after)
	return 0, errors.New("stale")
}

// X1: what a command waits for is said after 3 s, once, and nothing of a run directory that
// answers, or that a screen shows.
func TestASlowRunDirectoryIsSaidToBeSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		hung := &hungDisk{after: slowAfter - time.Millisecond}
		d := &slowDir{Disk: hung, dir: "dcs-runs/a\x1bb", con: console.To(&said)}
		f, err := d.OpenFile("owner", os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		both := func() {
			d.Names("dcs-runs/a")
			if _, err := f.ReadAt(nil, 0); err == nil {
				t.Error("its error is lost")
			}
			synctest.Wait()
		}
		both()
		hung.after = time.Minute
		d.con.Hold()
		both()
		d.con.Release()
		time.Sleep(time.Minute)
		if said.Len() > 0 {
			t.Errorf("it answers, and it is said: %q", said.String())
		}
		d.con.Hold()
		go func() {
			time.Sleep(30 * time.Second)
			d.con.Release()
		}()
		both()
		both()
		if got, want := said.String(), "the run directory dcs-runs/a␛b has not answered for 3 s; waiting\n"; got != want {
			t.Errorf("%q, want %q", got, want)
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
