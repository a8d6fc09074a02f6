package attempts_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

const run = "abcdefghijkl"

// place is a directory that holds attempts/.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place { return place{t, t.TempDir()} }

var must = polltest.Must

func (p place) path(id jobs.AttemptID, f jobs.File) string {
	p.t.Helper()
	path := jobs.AttemptFile(p.dir, id, f)
	must(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	return path
}

func (p place) put(id jobs.AttemptID, f jobs.File, content []byte) {
	p.t.Helper()
	must(p.t, os.WriteFile(p.path(id, f), content, 0o600))
}

func (p place) claim(id jobs.AttemptID, host string, tombstone bool) attempts.Claim {
	c := claim(id, host)
	c.Tombstone = tombstone
	p.put(id, jobs.FileStatus, c.Encode())
	return c
}

func (p place) exit(id jobs.AttemptID, host string, o jobs.Outcome) {
	p.put(id, jobs.FileStatus, finished(id, host, o))
}

func claim(id jobs.AttemptID, host string) attempts.Claim {
	return attempts.Claim{Run: run, Attempt: id, Host: host, By: "3.4711.88123", Boot: "b", At: 5}
}

func finished(id jobs.AttemptID, host string, o jobs.Outcome) []byte {
	c := claim(id, host)
	return c.EncodeFinished(2, o)
}

func attemptID(job, n int) jobs.AttemptID { return jobs.AttemptID{Job: jobs.ID(job), N: n} }

// disk counts listings and opened names.
type disk struct {
	rundir.Disk
	listed []string
	opened []string
}

func (d *disk) Names(dir string) ([]string, error) {
	d.listed = append(d.listed, filepath.Base(dir))
	return d.Disk.Names(dir)
}

func (d *disk) OpenFile(path string, flag int, perm os.FileMode) (rundir.File, error) {
	d.opened = append(d.opened, filepath.Base(path))
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC) != 0 {
		return nil, fmt.Errorf("%s is opened to be written", path)
	}
	return d.Disk.OpenFile(path, flag, perm)
}

// TestDamagedStatusIsNoOutcome checks promise 3: whatever a job puts in place of its status file is
// not an outcome. It neither hides the outcomes of other attempts nor blocks the reader.
func TestDamagedStatusIsNoOutcome(t *testing.T) {
	good := finished(attemptID(1, 1), "h", jobs.Outcome{})
	unfinished, other := claim(attemptID(1, 1), "h"), claim(attemptID(1, 1), "h")
	other.Run = "other"
	file := func(content []byte) func(path string) error {
		return func(path string) error { return os.WriteFile(path, content, 0o600) }
	}
	for name, put := range map[string]func(path string) error{
		"empty":      file(nil),
		"cut":        file(good[:800]),
		"zeros":      file(make([]byte, len(good))),
		"unfinished": file(unfinished.Encode()),
		"longer":     file(append(good[:len(good):len(good)], 'x')),
		"another's":  file(finished(attemptID(1, 2), "h", jobs.Outcome{})),
		"other run":  file(other.EncodeFinished(1, jobs.Outcome{})),
		"huge":       func(path string) error { return os.Truncate(path, 1<<50) },
		"pipe":       func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":       func(path string) error { return os.Symlink("/dev/zero", path) },
		"to a whole": func(path string) error { return os.Symlink("whole", path) },
		"loop":       func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"directory":  func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		p := newPlace(t)
		p.exit(attemptID(2, 1), "h", jobs.Outcome{})
		path := p.path(attemptID(1, 1), jobs.FileStatus)
		must(t, os.WriteFile(filepath.Join(filepath.Dir(path), "whole"), good, 0o600))
		if name == "huge" {
			p.put(attemptID(1, 1), jobs.FileStatus, good)
		}
		// Not every file system supports a hole of this size.
		if err := put(path); err != nil && name != "huge" {
			t.Fatalf("%s: %v", name, err)
		} else if err != nil {
			continue
		}
		got, err := attempts.ReadHostAttempts(rundir.OS, p.dir, run, "h",
			[]jobs.AttemptID{attemptID(1, 1), attemptID(2, 1)})
		if err != nil || len(got.Finished) != 1 || got.Finished[0].Attempt != attemptID(2, 1) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestFailedOperationIsReported checks that a failure of any one operation is reported and never
// becomes another answer. The other attempts are still found.
func TestFailedOperationIsReported(t *testing.T) {
	p := newPlace(t)
	p.exit(attemptID(1, 1), "h", jobs.Outcome{Exit: 1})
	p.put(attemptID(1, 1), jobs.FileErr, []byte("text\n"))
	p.claim(attemptID(1500, 1), "h", true)
	ids := []jobs.AttemptID{attemptID(1, 1), attemptID(1500, 1)}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EACCES, syscall.EINTR} {
		said := 0
		for n := 1; ; n++ {
			d := &disktest.Disk{}
			d.FailAt(n, errno, false)
			seen, err := attempts.ReadHostAttempts(d, p.dir, run, "h", ids)
			got := seen.Finished
			if d.Failed == "" {
				break
			}
			if err != nil {
				said++
			}
			if err != nil && !errors.Is(err, errno) {
				t.Errorf("%v at %s: %v", errno, d.Failed, err)
			}
			for _, f := range got {
				if f.Attempt != attemptID(1, 1) || f.Outcome.Exit != 1 {
					t.Errorf("%v at %s: %+v", errno, d.Failed, f)
				}
			}
			if len(got) == 0 && err == nil {
				t.Errorf("%v at %s: nothing is found and nothing is said", errno, d.Failed)
			}
		}
		if said < 5 {
			t.Errorf("%v: only %d failures were said", errno, said)
		}
	}
}

// TestStatusFilesSufficeToRebuildOutcomes checks that status files alone suffice to rebuild the
// outcomes.
func TestStatusFilesSufficeToRebuildOutcomes(t *testing.T) {
	p := newPlace(t)
	mine := claim(attemptID(3, 1), "melon1")
	p.exit(attemptID(3, 1), "melon1", jobs.Outcome{Exit: 7})
	p.claim(attemptID(3, 2), "melon2", false)
	p.claim(attemptID(10, 1), "melon3", true)
	p.put(attemptID(11, 1), jobs.FileStatus, nil)
	other := attempts.Claim{Run: "another", Attempt: attemptID(12, 1), Host: "x", By: "1.2.3", Boot: "b", At: 1}
	p.put(attemptID(12, 1), jobs.FileStatus, other.Encode())
	spoiled := finished(attemptID(1_000_001, 1), "melon4", jobs.Outcome{})
	p.put(attemptID(1_000_001, 1), jobs.FileStatus,
		append(make([]byte, attempts.SentinelAt), spoiled[attempts.SentinelAt:]...))
	torn := finished(attemptID(2001, 4), "melon1", jobs.Outcome{})
	p.put(attemptID(2001, 4), jobs.FileStatus, append(torn[:800], make([]byte, attempts.StatusBytes-800)...))
	p.put(attemptID(7, 1), jobs.FileOut, []byte("output only"))
	p.put(attemptID(8, 1), jobs.File("status.44.1.1"), []byte("on its way"))
	for _, odd := range []string{"0", "00", "abc", "-01", "0001"} {
		must(t, os.MkdirAll(filepath.Join(p.dir, "attempts", odd), 0o700))
		must(t, os.WriteFile(filepath.Join(p.dir, "attempts", odd, "9.1.status"), nil, 0o600))
	}
	var got []string
	d := &disk{Disk: rundir.OS}
	err := attempts.EachFate(d, p.dir, run, "", nil, func(f attempts.Fate) error {
		got = append(got, fmt.Sprintf("%s %d %s", f.Attempt, f.State, f.Host))
		if f.Attempt == attemptID(3, 1) && (f.Claim != mine || f.Outcome.Exit != 7 || f.Slot != 2) {
			t.Errorf("the fate of 3.1: got %+v, want its claim, exit code 7, and slot 2", f)
		}
		return nil
	})
	want := []string{
		fmt.Sprintf("3.1 %d melon1", attempts.Finished), fmt.Sprintf("3.2 %d melon2", attempts.Claimed),
		fmt.Sprintf("10.1 %d melon3", attempts.NeverStarts), fmt.Sprintf("11.1 %d ", attempts.Unreadable),
		fmt.Sprintf("12.1 %d ", attempts.Unreadable), fmt.Sprintf("2001.4 %d melon1", attempts.Claimed),
		fmt.Sprintf("1000001.1 %d melon4", attempts.Finished),
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %v\nwant %v", err, got, want)
	}
	got = nil
	err = attempts.EachFate(d, p.dir, run, "melon1", nil, func(f attempts.Fate) error {
		got = append(got, f.Attempt.String())
		return nil
	})
	if want := []string{"3.1", "2001.4"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("of melon1: got %v, %v, want %v", got, err, want)
	}
	stop, calls := errors.New("enough"), 0
	err = attempts.EachFate(rundir.OS, p.dir, run, "", nil, func(attempts.Fate) error {
		calls++
		return stop
	})
	if err != stop || calls != 1 {
		t.Errorf("after an error: %d calls, %v", calls, err)
	}
}

// TestOnlyFilesOfAHostCountForIt checks that only files that a host wrote count for it. Each shard
// is listed once, and only listed files are opened (X2).
func TestOnlyFilesOfAHostCountForIt(t *testing.T) {
	p := newPlace(t)
	p.exit(attemptID(1, 1), "melon4", jobs.Outcome{Exit: 3, Started: 1, Ended: 2})
	p.put(attemptID(1, 1), jobs.FileErr, []byte("first\nlast words\n\n"))
	p.exit(attemptID(2, 1), "melon5", jobs.Outcome{})
	p.claim(attemptID(3, 1), "melon4", false)
	p.claim(attemptID(4, 1), "melon4", true)
	p.claim(attemptID(5, 1), "melon5", false)
	p.put(attemptID(6, 1), jobs.FileStatus, nil)
	// An earlier dispatcher ran it on melon5, which proves nothing about melon4.
	p.claim(attemptID(7, 1), "melon5", true)
	p.exit(attemptID(2500, 1), "melon4", jobs.Outcome{Signal: "SIGKILL", Started: 1, Ended: 2})
	must(t, os.WriteFile(attempts.HeartbeatFile(p.dir, "melon4"), []byte("17 b\n"), 0o600))
	ids := []jobs.AttemptID{attemptID(1, 1), attemptID(1, 2)}
	for i := 2; i <= 7; i++ {
		ids = append(ids, attemptID(i, 1))
	}
	d := &disk{Disk: rundir.OS}
	s, err := attempts.ReadHostAttempts(d, p.dir, run, "melon4", append(ids, attemptID(2500, 1), attemptID(5000, 1)))
	if err != nil || len(s.Finished) != 2 {
		t.Fatalf("finished: %+v, %v", s.Finished, err)
	}
	if f := s.Finished[0]; f.Attempt != attemptID(1, 1) || f.Slot != 2 || f.Outcome.Exit != 3 ||
		f.Outcome.LastLine != "last words" {
		t.Errorf("the first finished attempt: got %+v, want 1.1 on slot 2 with exit code 3", f)
	}
	if f := s.Finished[1]; f.Attempt != attemptID(2500, 1) || f.Outcome.Signal != "SIGKILL" {
		t.Errorf("the second finished attempt: got %+v, want 2500.1, ended by SIGKILL", f)
	}
	if !slices.Equal(s.Claimed, []jobs.AttemptID{attemptID(3, 1)}) ||
		!slices.Equal(s.Never, []jobs.AttemptID{attemptID(4, 1)}) || s.Heartbeat != "17 b" {
		t.Errorf("claimed %v, never %v, heartbeat %q", s.Claimed, s.Never, s.Heartbeat)
	}
	if want := []string{"attempts", "000", "002"}; !slices.Equal(d.listed, want) {
		t.Errorf("listed %v, want %v", d.listed, want)
	}
	if want := "heartbeat.melon4 1.1.status 1.1.err 2.1.status 3.1.status 4.1.status 5.1.status 6.1.status " +
		"7.1.status 2500.1.status"; strings.Join(d.opened, " ") != want {
		t.Errorf("opened %v, want %s", d.opened, want)
	}
}

// TestHeartbeatFileIsRead checks reading the heartbeat file of a host that cannot be queried.
func TestHeartbeatFileIsRead(t *testing.T) {
	p := newPlace(t)
	wants := func(what, want string, opens int) {
		t.Helper()
		d := &disk{Disk: rundir.OS}
		if s, err := attempts.ReadHostAttempts(d, p.dir, run, "melon4", nil); s.Heartbeat != want || err != nil ||
			len(d.opened) != opens {
			t.Errorf("%s: %q, %v, opened %v, want %q", what, s.Heartbeat, err, d.opened, want)
		}
	}
	wants("without a directory", "", 0)
	p.path(attemptID(1, 1), jobs.FileStatus)
	wants("without a file", "", 0)
	for text, want := range map[string]string{"0000000000000000017 boot\n": "0000000000000000017 boot",
		strings.Repeat("x", 1000): strings.Repeat("x", 128)} {
		t.Run(text, func(t *testing.T) {
			must(t, os.WriteFile(attempts.HeartbeatFile(p.dir, "melon4"), []byte(text), 0o600))
			wants(text, want, 1)
		})
	}
}
