package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// TestLongRunPacksItsFiles checks that a run with enough jobs packs the files of those that have
// ended long enough ago while others run, here or on a host that keeps them itself; that every output can
// be read before, meanwhile, and after that; and that a run with fewer jobs packs nothing.
func TestLongRunPacksItsFiles(t *testing.T) {
	for name, apart := range map[string]bool{"run directory": false, "host": true} {
		t.Run(name, func(t *testing.T) { testLongRun(t, apart) })
	}
}

func testLongRun(t *testing.T, apart bool) {
	const numJobs = 300
	dir := t.TempDir()
	place := filepath.Join(dir, "run") // has the outputs
	made, r := startNew(t, dir, func(o *run.Options) {
		o.PackFiles, o.PackInterval = numJobs, 50*time.Millisecond
		if apart {
			place = keepOnHost(t, o, place)
		}
	})
	submit := func(command string) {
		t.Helper()
		polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: command}))
	}
	for i := range numJobs - 1 {
		submit(fmt.Sprintf("echo output %d", i+1))
	}
	ack := func() {
		result, err := r.Next(t.Context())
		polltest.Must(t, err)
		r.Ack(result.Seq)
	}
	for range numJobs - 1 {
		ack()
	}
	if attempts.HasPacks(made.Disk, place) {
		t.Error("files were packed before there were enough jobs")
	}
	read := func(id int) {
		t.Helper()
		want := fmt.Sprintf("output %d\n", id)
		out, _, err := r.Output(t.Context(), jobs.AttemptID{Job: jobs.ID(id), N: 1}, jobs.FileOut, 0, 100)
		if err != nil || string(out) != want {
			t.Fatalf("output of job %d: %q, %v", id, out, err)
		}
	}
	gate := filepath.Join(dir, "gate") // a job that opens it would wait for another slot of a busy host
	submit("while [ ! -e " + gate + " ]; do sleep 0.02; done; echo output 300")
	numRead := 0
	polltest.Until(t, "files are in packs", func() bool {
		read(numRead%(numJobs-1) + 1)
		numRead++
		return attempts.HasPacks(made.Disk, place)
	})
	polltest.Must(t, os.WriteFile(gate, nil, 0o600))
	ack()
	for id := 1; id <= numJobs; id += 13 {
		read(id)
	}
	read(numJobs)
	r.CloseInput()
	outcome, err := r.Close()
	if err != nil || len(outcome.Warnings) > 0 {
		t.Fatalf("%v %v", outcome, err)
	}
	if n, err := run.Pack(made); (n == 0) != apart || err != nil {
		t.Errorf("packed %d attempts after the end, %v", n, err)
	}
	files, err := filepath.Glob(filepath.Join(place, "attempts", "*", "*.status"))
	if err != nil || len(files) > 3 { // a host makes no pack of three
		t.Errorf("%d attempts are not in packs, %v", len(files), err)
	}
}

// TestPacksAreWrittenAtOnce checks that a dispatcher writes the packs of two directories at the same time:
// each waits until the other has begun.
func TestPacksAreWrittenAtOnce(t *testing.T) {
	var begun atomic.Int32
	var isReserved atomic.Bool
	both, quiet := make(chan struct{}), make(chan struct{})
	await := func(event <-chan struct{}) {
		select {
		case <-event:
		case <-t.Context().Done():
		}
	}
	_, r := packTwoDirectories(t, func(op, path string, do func() error) error {
		switch isPack := strings.HasPrefix(filepath.Base(path), ".new."); {
		case isPack && op == "open" && isReserved.CompareAndSwap(false, true):
			await(quiet) // then no record is made any more, so both directories are due in the same turn
		case isPack && op == "write":
			if begun.Add(1) == 2 {
				close(both)
			}
			await(both)
		}
		return rundir.Call(op, path, do)
	})
	_, err := r.Next(t.Context())
	polltest.Must(t, err)
	close(quiet)
	polltest.Until(t, "two packs are written", func() bool { return begun.Load() >= 2 })
	r.CloseInput()
	_, err = r.Close()
	polltest.Must(t, err)
}

// TestAPackThatFreesFilesLetsTheOthersBeWritten checks that on a disk on which no file can be created, all
// files are packed without a wait: the first pack is written into the file that was reserved for it, and frees
// others.
func TestAPackThatFreesFilesLetsTheOthersBeWritten(t *testing.T) {
	run.SetPackRetryInterval(t, 24*time.Hour)
	var mu sync.Mutex
	reserved, isFreed := "", false
	made, r := packTwoDirectories(t, func(op, path string, do func() error) error {
		name := filepath.Base(path)
		mu.Lock()
		isFreed = isFreed || op == "remove" && strings.HasSuffix(name, "."+string(jobs.FileStatus))
		if isPack := strings.HasPrefix(name, ".new."); isPack && reserved == "" {
			reserved = name
		} else if isPack && op == "open" && name != reserved && !isFreed {
			mu.Unlock()
			return syscall.ENOSPC
		}
		mu.Unlock()
		return rundir.Call(op, path, do)
	})
	polltest.Until(t, "the files of both directories are packed", func() bool {
		packs, _ := filepath.Glob(filepath.Join(made.Dir, rundir.AttemptsDir, "[0-9]*.zip"))
		return len(packs) >= 2
	})
	r.CloseInput()
	_, err := r.Next(t.Context())
	polltest.Must(t, err)
	_, err = r.Close()
	polltest.Must(t, err)
}

// packTwoDirectories runs jobs with attempts in two directories, which are to be packed when the last job is
// accepted. calls makes the calls of the disk.
func packTwoDirectories(t *testing.T, calls func(op, path string, do func() error) error,
	change ...func(*run.Options),
) (*rundir.Run, *run.Run) {
	t.Helper()
	const numJobs = jobs.ShardSize + 255
	dir := t.TempDir()
	made, err := rundir.CreateAt(filepath.Join(dir, "run"), "r", rundir.Settings{Version: "test", Cwd: dir})
	polltest.Must(t, err)
	made.Disk = rundir.WithCalls(made.Dir, calls)
	r := startHere(t, made, filepath.Join(dir, "base"), append(change, func(o *run.Options) {
		o.PackFiles, o.PackInterval = numJobs, 50*time.Millisecond
	})...)
	submit := func() { polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: ":"})) }
	for range numJobs - 1 {
		submit()
	}
	for range numJobs - 1 {
		_, err := r.Next(t.Context())
		polltest.Must(t, err)
	}
	submit()
	return made, r
}

// TestLaunchesWaitUntilFilesArePacked checks that a run whose jobs end faster than their files are packed has
// no more attempts with files of their own than it may have, besides those that its host has already: what one
// report of the host ends, and what was sent to the host before that.
func TestLaunchesWaitUntilFilesArePacked(t *testing.T) {
	const numJobs, limit, maxOnHost = 1000, 50, 256 + 2
	maxFiles := 0
	made, r := boundedRun(t, numJobs, limit, new(warningPrinter), func(op, path string, do func() error) error {
		if op == "open" && strings.HasPrefix(filepath.Base(path), ".new.") {
			files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*", "*.status"))
			maxFiles = max(maxFiles, len(files))
		}
		return rundir.Call(op, path, do)
	})
	finishBounded(t, r, numJobs)
	if !attempts.HasPacks(made.Disk, made.Dir) || maxFiles < limit || maxFiles > limit+2*maxOnHost {
		t.Errorf("%d attempts had files of their own", maxFiles)
	}
}

// TestFailedPacksKeepNoLaunchWaiting checks that a run whose files cannot be packed continues, with one warning.
func TestFailedPacksKeepNoLaunchWaiting(t *testing.T) {
	const numJobs, limit = 300, 50
	for _, err := range []error{syscall.EIO, syscall.ENOSPC} {
		t.Run(err.Error(), func(t *testing.T) {
			var warnings warningPrinter
			_, r := boundedRun(t, numJobs, limit, &warnings, func(op, path string, do func() error) error {
				if op == "write" && strings.HasPrefix(filepath.Base(path), ".new.") {
					return err
				}
				return rundir.Call(op, path, do)
			})
			finishBounded(t, r, numJobs)
			if len(warnings) != 1 || !strings.Contains(warnings[0], "outputs stay in files of their own") {
				t.Errorf("warnings: %q", warnings)
			}
		})
	}
}

// TestFullDiskKeepsNoLaunchWaitingBesideOtherErrors checks that a run continues while packs wait for space on a
// full disk, although another pack failed for another reason at the same time.
func TestFullDiskKeepsNoLaunchWaitingBesideOtherErrors(t *testing.T) {
	const limit = 50
	run.SetPackRetryInterval(t, 24*time.Hour)
	_, r := packTwoDirectories(t, func(op, path string, do func() error) error {
		switch name := filepath.Base(path); {
		case op == "write" && strings.HasPrefix(name, ".new.000."):
			return syscall.ENOSPC
		case op == "write" && strings.HasPrefix(name, ".new.001."):
			return syscall.EIO
		}
		return rundir.Call(op, path, do)
	}, func(o *run.Options) { o.MaxUnpacked = limit })
	for range 2 * limit {
		polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: ":"}))
	}
	r.CloseInput()
	finishBounded(t, r, 1+2*limit)
}

// boundedRun starts a run whose launches wait while the files of limit attempts wait for a pack, and submits
// jobs. It adds its warnings to warnings. calls makes the calls of the disk.
func boundedRun(t *testing.T, numJobs, limit int, warnings *warningPrinter,
	calls func(op, path string, do func() error) error,
) (*rundir.Run, *run.Run) {
	t.Helper()
	dir := t.TempDir()
	made, err := rundir.CreateAt(filepath.Join(dir, "run"), "r", rundir.Settings{Version: "test", Cwd: dir})
	polltest.Must(t, err)
	made.Disk = rundir.WithCalls(made.Dir, calls)
	r := startHere(t, made, filepath.Join(dir, "base"), func(o *run.Options) {
		o.PackFiles, o.MaxUnpacked, o.Printer = limit, limit, warnings
	})
	for range numJobs {
		polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: ":"}))
	}
	r.CloseInput()
	return made, r
}

// warningPrinter keeps the warnings that it gets.
type warningPrinter []string

func (w *warningPrinter) Warning(text string)       { *w = append(*w, text) }
func (*warningPrinter) Line(string)                 {}
func (*warningPrinter) Notice(dispatch.Notice)      {}
func (*warningPrinter) Progress(*dispatch.Snapshot) {}
func (*warningPrinter) Interval() time.Duration     { return time.Hour }

// finishBounded reads all results of a run.
func finishBounded(t *testing.T, r *run.Run, numJobs int) {
	t.Helper()
	for range numJobs {
		result, err := r.Next(t.Context())
		polltest.Must(t, err)
		r.Ack(result.Seq)
	}
	_, err := r.Close()
	polltest.Must(t, err)
}

// keepOnHost makes the host of a new run keep the outputs in its own directory, which it returns, as if
// it did not see the run directory.
func keepOnHost(t *testing.T, o *run.Options, runDir string) (place string) {
	t.Helper()
	made, err := rundir.Open(runDir)
	polltest.Must(t, err)
	host := o.Inventory.Hosts[0]
	host.WorkDir = filepath.Join(filepath.Dir(runDir), "work")
	place = filepath.Join(host.WorkDir, made.UID())
	polltest.Must(t, os.MkdirAll(place, 0o700))
	polltest.Must(t, os.WriteFile(filepath.Join(place, "place."+host.Name), []byte("work_dir\n"), 0o600))
	return place
}

// TestEndOfRunPacksItsNewestFiles checks that a run with enough jobs packs the files of the jobs
// that ended last when it ends, and that a run with fewer jobs does not.
func TestEndOfRunPacksItsNewestFiles(t *testing.T) {
	const numJobs = 300
	for least, want := range map[int]bool{numJobs: true, numJobs + 1: false, 0: false} {
		t.Run(fmt.Sprint(least), func(t *testing.T) {
			made, r := startNew(t, t.TempDir(), func(o *run.Options) { o.PackFiles = least })
			for range numJobs {
				polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: "echo output"}))
			}
			r.CloseInput()
			for range numJobs {
				result, err := r.Next(t.Context())
				polltest.Must(t, err)
				r.Ack(result.Seq)
			}
			if outcome, err := r.Close(); err != nil || len(outcome.Warnings) > 0 {
				t.Fatalf("%v %v", outcome, err)
			}
			r.PackRest()
			files, err := filepath.Glob(made.Path("attempts", "*", "*.out"))
			if err != nil || attempts.HasPacks(made.Disk, made.Dir) != want || (len(files) == 0) != want {
				t.Errorf("%d outputs are in files of their own, %v", len(files), err)
			}
			out, err := rundir.ReadFile(rundir.WithPacks(made.Disk), jobs.AttemptFile(made.Dir,
				jobs.AttemptID{Job: numJobs, N: 1}, jobs.FileOut))
			if err != nil || string(out) != "output\n" {
				t.Errorf("the output of the last job is %q, %v", out, err)
			}
		})
	}
}

// TestAStopEndsThePackingAtTheEnd checks that a person who requests a stop does not wait until all
// files of a run that has ended are packed.
func TestAStopEndsThePackingAtTheEnd(t *testing.T) {
	const numJobs = 300
	signals := make(chan os.Signal)
	made, r := startNew(t, t.TempDir(), func(o *run.Options) {
		o.PackFiles, o.PackInterval = numJobs, time.Hour
		o.Signals = func() <-chan os.Signal { return signals }
	})
	for range numJobs {
		polltest.Must(t, r.Submit(t.Context(), &jobs.Spec{Command: "echo output"}))
	}
	r.CloseInput()
	for result, err := r.Next(t.Context()); err == nil; result, err = r.Next(t.Context()) {
		r.Ack(result.Seq)
	}
	signals <- syscall.SIGTERM
	signals <- syscall.SIGHUP // when it is received, the first one has been handled
	if _, err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.PackRest()
	if _, err := os.Stat(made.Path(rundir.CountsFile)); err != nil || attempts.HasPacks(made.Disk, made.Dir) {
		t.Errorf("the run has ended: %v; it has packs: %t", err, attempts.HasPacks(made.Disk, made.Dir))
	}
}
