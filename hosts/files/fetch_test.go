package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// lab is a run and the files that its hosts have of it, by "HOST ATTEMPT.FILE".
type lab struct {
	t     *testing.T
	run   *rundir.Run
	mu    sync.Mutex
	has   map[string]string
	errs  map[string]error // by file or by host
	reads []string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	run := disktest.NewRun(t)
	return &lab{t: t, run: run, has: map[string]string{}, errs: map[string]error{}}
}

func attempt(t *testing.T, text string) jobs.AttemptID {
	t.Helper()
	id, err := jobs.ParseAttemptID(text)
	must(t, err)
	return id
}

// addEnded gives a host the files of an attempt that ended.
func (l *lab) addEnded(host, id, out, stderr string) {
	l.has[host+" "+id+".out"], l.has[host+" "+id+".err"] = out, stderr
	c := l.claim(host, id)
	l.has[host+" "+id+".status"] = string(c.EncodeFinished(1, jobs.Outcome{}))
}

func (l *lab) claim(host, id string) attempts.Claim {
	return attempts.Claim{Run: l.run.UID(), Attempt: attempt(l.t, id), Host: host, By: "1.2.3", Boot: "b", At: 1}
}

func (l *lab) read(ctx context.Context, host string, p hosts.Read) ([]byte, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := l.errs[host]; err != nil {
		return nil, 0, err
	}
	name := fmt.Sprintf("%s %s.%s", host, p.Attempt, p.File)
	l.reads = append(l.reads, name)
	if err := l.errs[name]; err != nil {
		return nil, 0, err
	}
	text, ok := l.has[name]
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	from := min(p.Offset, int64(len(text)))
	return []byte(text[from:min(int64(len(text)), from+int64(p.Limit))]), int64(len(text)), nil
}

// split returns the parts of "HOST ATTEMPT.FILE".
func (l *lab) split(name string) (host string, id jobs.AttemptID, file jobs.File) {
	l.t.Helper()
	host, rest, _ := strings.Cut(name, " ")
	dot := strings.LastIndexByte(rest, '.')
	return host, attempt(l.t, rest[:dot]), jobs.File(rest[dot+1:])
}

// plan returns a plan for all attempts of which a host has files.
func (l *lab) plan() *FetchPlan {
	here := attempts.NewLocalFiles(rundir.OS, l.run.Dir)
	of, copied := map[string]map[jobs.AttemptID]bool{}, map[jobs.AttemptID]bool{}
	for name := range l.has {
		host, id, _ := l.split(name)
		if of[host] == nil {
			of[host] = map[jobs.AttemptID]bool{}
		}
		if here.Has(id) {
			copied[id] = true
		} else {
			of[host][id] = true
		}
	}
	p := &FetchPlan{Copied: slices.Collect(maps.Keys(copied))}
	slices.SortFunc(p.Copied, jobs.AttemptID.Compare)
	for _, host := range slices.Sorted(maps.Keys(of)) {
		p.Hosts = append(p.Hosts, HostPlan{host, slices.Collect(maps.Keys(of[host]))})
	}
	return p
}

// here reports whether the files of an attempt count as fetched.
func (l *lab) here(id string) bool {
	return attempts.NewLocalFiles(rundir.OS, l.run.Dir).Has(attempt(l.t, id))
}

func (l *lab) fetch(b *Fetcher) ([]HostResult, error) {
	b.Run, b.Read = l.run, l.read
	return b.Fetch(l.t.Context(), l.plan())
}

// same fails the test for each file of a host whose local copy differs.
func (l *lab) same(names ...string) {
	l.t.Helper()
	for _, name := range names {
		_, id, file := l.split(name)
		path := jobs.AttemptFile(l.run.Dir, id, file)
		b, err := os.ReadFile(path)
		if err != nil || string(b) != l.has[name] {
			l.t.Errorf("%s is here with %d bytes, want %d: %v", name, len(b), len(l.has[name]), err)
			continue
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
			l.t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

// files returns the names of all files below attempts/.
func (l *lab) files() (names []string) {
	filepath.WalkDir(l.run.Path(rundir.AttemptsDir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, d.Name())
		}
		return err
	})
	return names
}

// TestOutputsAreCopiedOnce checks that outputs of all sizes are copied completely from several
// hosts, and that local files are not requested again (X2).
func TestOutputsAreCopiedOnce(t *testing.T) {
	l := newLab(t)
	l.addEnded("far", "1.1", "acc=0.5\n", "")
	l.addEnded("far", "2.1", strings.Repeat("0123456789abcde\n", 3*hosts.MaxChunk/16)+"end", "x")
	l.addEnded("far2", "1.2", strings.Repeat("z", hosts.MaxChunk), "warning\n")
	l.addEnded("far2", "5000.1", "", "")
	b := &Fetcher{}
	results, err := l.fetch(b)
	if err != nil || len(results) != 2 || results[0].NumFetched != 2 || results[1].NumFetched != 2 ||
		results[0].NumIncomplete+results[1].NumIncomplete+results[0].NumMissing != 0 {
		t.Fatalf("Fetch: got %+v, %v; want 2 files of each host", results, err)
	}
	l.same(slices.Collect(maps.Keys(l.has))...)
	total := 0
	for _, text := range l.has {
		total += len(text)
	}
	if n, files, bytes := b.Done(); n != 4 || files != 12 || bytes != int64(total) {
		t.Errorf("%d attempts, %d files, %d bytes, want 4, 12, %d", n, files, bytes, total)
	}
	if names := l.files(); len(names) != 12 {
		t.Errorf("files: %v", names)
	}
	l.reads = nil
	if results, err := l.fetch(&Fetcher{}); err != nil || len(l.reads) > 0 || results[0].NumFetched != 0 {
		t.Errorf("again: %+v, %v, read %v", results, err, l.reads)
	}
}

// TestKilledFetchIsResumed checks that a fetch that was killed is resumed: a complete file is not
// copied again, and an incomplete file is.
func TestKilledFetchIsResumed(t *testing.T) {
	l := newLab(t)
	l.addEnded("far", "1.1", "whole\n", "longer\n")
	write(t, l.run.Path(rundir.AttemptsDir, "000"), map[string]string{"1.1.out": "whole\n", "1.1.err": "long"})
	b := &Fetcher{}
	results, err := l.fetch(b)
	if err != nil || results[0].NumFetched != 1 {
		t.Fatalf("Fetch: got %+v, %v; want the incomplete file", results, err)
	}
	l.same(slices.Collect(maps.Keys(l.has))...)
	if _, files, _ := b.Done(); files != 2 {
		t.Errorf("%d files were fetched, want 2", files)
	}
}

// TestFaultsOfAHostAffectOnlyIt checks that an unreachable host, an inconsistent file, and a lost
// attempt affect only themselves, and that an attempt with a missing file does not count as fetched
// (promise 5).
func TestFaultsOfAHostAffectOnlyIt(t *testing.T) {
	l := newLab(t)
	l.addEnded("far", "1.1", "good\n", "")
	l.addEnded("far", "2.1", "removed\n", "")
	delete(l.has, "far 2.1.out")
	l.addEnded("far", "3.1", "odd\n", "")
	l.errs["far 3.1.err"] = errors.New("far: not an ordinary file")
	l.addEnded("far", "4.1", "lost\n", "")
	lost, other := l.claim("far", "4.1"), l.claim("far2", "6.1")
	l.has["far 4.1.status"] = string(lost.Encode())
	l.addEnded("far", "5.1", "damaged\n", "")
	l.has["far 5.1.status"] = strings.Repeat("x", attempts.StatusBytes)
	l.addEnded("far", "6.1", "another's\n", "")
	l.has["far 6.1.status"] = string(other.EncodeFinished(1, jobs.Outcome{}))
	l.addEnded("gone", "7.1", "unreachable\n", "")
	l.errs["gone"] = &hosts.Error{Host: "gone", Class: hosts.Unreachable, Err: errors.New("no route")}
	results, err := l.fetch(&Fetcher{})
	if err != nil || len(results) != 2 {
		t.Fatalf("Fetch: got %+v, %v; want 2 results", results, err)
	}
	if r := results[0]; r.NumFetched != 3 || r.NumIncomplete != 3 || r.NumMissing != 1 || r.Err != nil {
		t.Errorf("the first host: got %+v, want 3 files fetched, 3 left, one missing, and no error of the host", r)
	}
	var reasons []string
	for _, f := range results[0].Failed {
		reasons = append(reasons, fmt.Sprintf("%s: %v", f.Attempt, f.Err))
	}
	want := []string{"3.1: far: not an ordinary file", "5.1: far: 5.1.status: " + attempts.ErrStatus.Error(),
		"6.1: far: 6.1.status: " + attempts.ErrStatus.Error() + `: it belongs to the host "far2"`}
	if !slices.Equal(reasons, want) {
		t.Errorf("the first host: got the reasons %q, want %q", reasons, want)
	}
	if r := results[1]; r.NumFetched != 0 || r.NumIncomplete != 1 || !strings.Contains(r.Err.Error(), "no route") {
		t.Errorf("the second host: got %+v, want nothing fetched and \"no route\"", r)
	}
	l.same("far 1.1.out", "far 1.1.status", "far 2.1.status", "far 4.1.out")
	for id, want := range map[string]bool{"1.1": true, "2.1": true, "3.1": false, "4.1": false, "5.1": false,
		"6.1": false, "7.1": false} {
		t.Run(id, func(t *testing.T) {
			if l.here(id) != want {
				t.Errorf("%s is here: %v", id, !want)
			}
		})
	}
	// The lost attempt is read again, and none of its files is counted twice.
	results, err = l.fetch(&Fetcher{})
	if r := results[0]; err != nil || r.NumFetched != 0 || r.NumUnchanged != 1 || r.NumIncomplete != 3 {
		t.Errorf("again: %+v, %v", r, err)
	}
}

// TestCopiedFilesArePacked checks that the files of attempts with a recorded outcome are packed, also those
// of a directory of which a host cannot be read, and that a further fetch finds them. The claim of a host
// that shares the run directory stays, as it guards against a second start.
func TestCopiedFilesArePacked(t *testing.T) {
	l := newLab(t)
	for job := 1; job <= 6; job++ {
		l.addEnded([]string{"far", "far2"}[job%2], fmt.Sprint(job, ".1"), "text\n", "")
		l.addEnded("far", fmt.Sprint(1000+job, ".1"), "text\n", "")
	}
	l.addEnded("gone", "1007.1", "unreachable\n", "")
	l.errs["gone"] = &hosts.Error{Host: "gone", Class: hosts.Unreachable, Err: errors.New("no route")}
	open, near := attempt(t, "6.1"), l.claim("near", "7.1")
	must(t, os.MkdirAll(l.run.Path(rundir.AttemptsDir, "000"), 0o700))
	must(t, os.WriteFile(jobs.AttemptFile(l.run.Dir, near.Attempt, jobs.FileStatus),
		near.EncodeFinished(1, jobs.Outcome{}), 0o600))
	b := &Fetcher{Packs: func(id jobs.AttemptID) bool { return id != open }}
	results, err := l.fetch(b)
	if err != nil || len(results) != 3 {
		t.Fatalf("Fetch: got %+v, %v; want 3 results", results, err)
	}
	var names []string
	for _, name := range l.files() {
		if !strings.HasSuffix(name, rundir.PackSuffix) {
			names = append(names, filepath.Base(name))
		}
	}
	if want := []string{"6.1.err", "6.1.out", "6.1.status", "7.1.status"}; !slices.Equal(names, want) {
		t.Errorf("got %q outside of packs, want %q", names, want)
	}
	for job := 1; job <= 6; job++ {
		if !l.here(fmt.Sprint(job, ".1")) || !l.here(fmt.Sprint(1000+job, ".1")) {
			t.Errorf("the files of job %d or %d are not found", job, 1000+job)
		}
	}
}

// TestRepeatedFetchPacksWhatAnInterruptedOneCopied checks that a fetch packs the files that an interrupted one
// has copied and not packed, in a directory of which more is copied and in one that was complete.
func TestRepeatedFetchPacksWhatAnInterruptedOneCopied(t *testing.T) {
	l := newLab(t)
	for job := 1; job <= 6; job++ {
		l.addEnded("far", fmt.Sprint(job, ".1"), "text\n", "")
		l.addEnded("far", fmt.Sprint(1000+job, ".1"), "text\n", "")
	}
	if _, err := l.fetch(&Fetcher{}); err != nil {
		t.Fatal(err)
	}
	l.addEnded("far", "1007.1", "text\n", "")
	if _, err := l.fetch(&Fetcher{Packs: func(jobs.AttemptID) bool { return true }}); err != nil {
		t.Fatal(err)
	}
	names := l.files()
	if isLoose := func(name string) bool { return !strings.HasSuffix(name, rundir.PackSuffix) }; len(names) != 2 ||
		slices.ContainsFunc(names, isLoose) {
		t.Errorf("got the files %q, want 2 packs", names)
	}
}

// TestFalseSizesDoNotFillTheDisk checks that a host cannot fill the disk with a false size, or with
// a file that grows or shrinks. A file that is too large affects only itself.
func TestFalseSizesDoNotFillTheDisk(t *testing.T) {
	l := newLab(t)
	l.addEnded("far", "1.1", "small", "")
	l.addEnded("far", "2.1", strings.Repeat("x", 5000), "")
	l.addEnded("grows", "3.1", strings.Repeat("g", hosts.MaxChunk+10), "")
	l.addEnded("shrinks", "4.1", strings.Repeat("s", 2*hosts.MaxChunk), "")
	size := map[string]int64{}
	b := &Fetcher{Run: l.run, space: Space{Free: func() (int64, error) { return 4 * hosts.MaxChunk, nil }}}
	b.Read = func(ctx context.Context, host string, p hosts.Read) ([]byte, int64, error) {
		data, n, err := l.read(ctx, host, p)
		switch {
		case host == "far" && p.Attempt.Job == 2 && p.File == jobs.FileOut:
			n = 1 << 60
		case host == "grows" && p.File == jobs.FileOut:
			l.mu.Lock()
			l.has["grows 3.1.out"] += strings.Repeat("G", 100)
			l.mu.Unlock()
		case host == "shrinks" && p.File == jobs.FileOut && p.Offset > 0:
			data = nil
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		size[host] += int64(len(data))
		return data, n, err
	}
	results, err := b.Fetch(t.Context(), l.plan())
	must(t, err)
	for i, want := range []HostResult{{Host: "far", NumFetched: 1, NumIncomplete: 1}, {Host: "grows", NumFetched: 1},
		{Host: "shrinks", NumIncomplete: 1}} {
		got := results[i]
		if len(got.Failed) != want.NumIncomplete {
			t.Errorf("%s: %v", got.Host, got.Failed)
		}
		if got.Failed = nil; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, files, bytes := b.Done(); files != 6 ||
		bytes != int64(len("small")+hosts.MaxChunk+10+2*attempts.StatusBytes) {
		t.Errorf("%d files, %d bytes: what was not kept is counted", files, bytes)
	}
	b2, err := os.ReadFile(jobs.AttemptFile(l.run.Dir, attempt(t, "3.1"), jobs.FileOut))
	if want := strings.Repeat("g", hosts.MaxChunk+10); err != nil || string(b2) != want {
		t.Errorf("%d bytes, want the %d that were there first: %v", len(b2), len(want), err)
	}
	for _, name := range l.files() {
		if strings.Contains(name, tempMark) {
			t.Errorf("%s was left", name)
		}
	}
}

// TestFilesThatAreGoneAreNamed checks that attempts whose outputs neither the host nor the run directory
// has are listed, and that one of which nothing is left counts neither as fetched nor as here.
func TestFilesThatAreGoneAreNamed(t *testing.T) {
	l := newLab(t)
	for _, id := range []string{"1.1", "2.1", "3.1"} {
		l.addEnded("far", id, "text", "")
	}
	plan := l.plan()
	for _, file := range []string{"2.1.out", "2.1.err", "2.1.status", "1.1.err", "3.1.err"} {
		delete(l.has, "far "+file)
	}
	write(t, l.run.Path(rundir.AttemptsDir, "000"), map[string]string{"3.1.err": "copied before"})
	results, err := (&Fetcher{Run: l.run, Read: l.read}).Fetch(t.Context(), plan)
	must(t, err)
	want := HostResult{Host: "far", NumFetched: 2, NumMissing: 3, NumGone: 1,
		Missing: []jobs.AttemptID{attempt(t, "1.1"), attempt(t, "2.1")}}
	if !reflect.DeepEqual(results, []HostResult{want}) {
		t.Errorf("got %+v, want %+v", results, want)
	}
}

// TestPartialCopyOfARunningAttempt checks an attempt that was given up but may still run. If its
// output and its sentinel are written while its output is read, the partial copy does not count as
// complete.
func TestPartialCopyOfARunningAttempt(t *testing.T) {
	l := newLab(t)
	l.has["far 1.1.out"], l.has["far 1.1.err"] = "half\n", ""
	b := &Fetcher{Run: l.run}
	b.Read = func(ctx context.Context, host string, p hosts.Read) ([]byte, int64, error) {
		data, n, err := l.read(ctx, host, p)
		if p.File == jobs.FileOut {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.addEnded("far", "1.1", "half\nand all\n", "")
		}
		return data, n, err
	}
	if _, err := b.Fetch(t.Context(), l.plan()); err != nil || l.here("1.1") {
		t.Errorf("a half passes for the whole: %v", err)
	}
	if _, err := l.fetch(&Fetcher{}); err != nil || !l.here("1.1") {
		t.Errorf("the next fetch: %v", err)
	}
	l.same("far 1.1.out", "far 1.1.err", "far 1.1.status")
}

// TestFetchReservesSpace checks that files that are written at the same time reserve their disk
// space separately, so that the reserve for other users of the disk is kept.
func TestFetchReservesSpace(t *testing.T) {
	l := newLab(t)
	l.addEnded("far", "1.1", strings.Repeat("x", 3*hosts.MaxChunk), "")
	l.addEnded("far2", "2.1", strings.Repeat("y", 3*hosts.MaxChunk), "")
	plan := l.plan()
	synctest.Test(t, func(t *testing.T) {
		b := &Fetcher{Run: l.run, space: Space{Free: func() (int64, error) { return 4 * hosts.MaxChunk, nil }}}
		b.Read = func(ctx context.Context, host string, p hosts.Read) ([]byte, int64, error) {
			switch {
			case host == "far" && p.Offset == hosts.MaxChunk:
				time.Sleep(2 * time.Second)
			case host == "far2" && p.File == jobs.FileOut && p.Offset == 0:
				time.Sleep(time.Second) // the first file has begun
			}
			return l.read(ctx, host, p)
		}
		results, err := b.Fetch(t.Context(), plan)
		if err != nil || results[0].NumFetched != 1 || results[1].NumIncomplete != 1 ||
			!strings.Contains(fmt.Sprint(results[1].Failed), "no space") {
			t.Errorf("Fetch: got %+v, %v; want one file fetched, and one left for lack of space", results, err)
		}
		results, err = b.Fetch(t.Context(), &FetchPlan{Hosts: plan.Hosts[1:]})
		if err != nil || results[0].NumFetched != 1 {
			t.Errorf("when the first is written: %+v, %v", results, err)
		}
	})
}

// TestFewLargeFilesAreCopiedAtATime checks that at most two large files of a host are copied at a
// time, so that an interrupt keeps the files that are complete by then, and that many small files
// are.
func TestFewLargeFilesAreCopiedAtATime(t *testing.T) {
	l := newLab(t)
	for i := 1; i <= 10; i++ {
		l.addEnded("far", fmt.Sprintf("%d.1", i), strings.Repeat("x", largeBytes+1), "")
		l.addEnded("far2", fmt.Sprintf("%d.1", 20+i), strings.Repeat("y", largeBytes), "")
	}
	plan := l.plan()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(15*time.Second, cancel) // a large file takes 4 s, a small one 3
		begun, most := map[string]int{}, map[string]int{}
		b := &Fetcher{Run: l.run}
		b.Read = func(ctx context.Context, host string, p hosts.Read) ([]byte, int64, error) {
			if p.File == jobs.FileOut && p.Offset > 0 {
				l.mu.Lock()
				if p.Offset == hosts.MaxChunk {
					begun[host]++
					most[host] = max(most[host], begun[host])
				}
				l.mu.Unlock()
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				l.mu.Lock()
				if size := len(l.has[fmt.Sprintf("%s %s.out", host, p.Attempt)]); p.Offset+
					hosts.MaxChunk >= int64(size) {
					begun[host]--
				}
				l.mu.Unlock()
			}
			return l.read(ctx, host, p)
		}
		results, err := b.Fetch(ctx, plan)
		if !errors.Is(err, context.Canceled) || results[0].NumFetched != 6 || results[0].NumIncomplete != 4 ||
			results[1].NumFetched != 10 {
			t.Errorf("Fetch: got %+v, %v; want context.Canceled, and 6 and 10 files", results, err)
		}
		if most["far"] != maxLarge || most["far2"] != hosts.MaxReads {
			t.Errorf("at a time: %v", most)
		}
	})
}

// TestFullDiskLeavesNoPartialFile checks that, when others fill the disk, a file that is being
// copied keeps its reserved space and is completed. No other file is begun, no partial file is
// left, and the error names the disk.
func TestFullDiskLeavesNoPartialFile(t *testing.T) {
	l := newLab(t)
	l.addEnded("far", "1.1", strings.Repeat("x", 3*hosts.MaxChunk), "")
	for i := 2; i < 40; i++ {
		l.addEnded("far2", fmt.Sprintf("%d.1", i), "y", "")
	}
	plan := l.plan()
	synctest.Test(t, func(t *testing.T) {
		var has atomic.Int64
		has.Store(4 * hosts.MaxChunk)
		b := &Fetcher{Run: l.run, space: Space{Free: func() (int64, error) { return has.Load(), nil }}}
		b.Read = func(ctx context.Context, host string, p hosts.Read) ([]byte, int64, error) {
			switch {
			case host == "far" && p.Offset == hosts.MaxChunk:
				time.Sleep(2 * time.Second)
			case host == "far2" && p.File == jobs.FileOut:
				time.Sleep(time.Second) // the first file has begun
				has.Store(0)
			}
			return l.read(ctx, host, p)
		}
		results, err := b.Fetch(t.Context(), plan)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "full") ||
			results[1].NumIncomplete != 38 || results[0].Err != nil || results[1].Err != nil {
			t.Errorf("Fetch: got %+v, %v; want ENOSPC, and 38 files left", results, err)
		}
		l.same("far 1.1.out")
		for _, name := range l.files() {
			if strings.Contains(name, tempMark) {
				t.Errorf("%s was left", name)
			}
		}
		if len(l.reads) > 5+2*hosts.MaxReads {
			t.Errorf("%d reads went on", len(l.reads))
		}
	})
}

// TestFileIsCompleteOrMissing checks that, after any single failed disk operation, every file is
// either complete or missing. No attempt with a missing file counts as fetched, and the next fetch
// completes it.
func TestFileIsCompleteOrMissing(t *testing.T) {
	for n := 1; ; n++ {
		errno := []syscall.Errno{syscall.EIO, syscall.ENOSPC}[n%2]
		l := newLab(t)
		l.addEnded("far", "1.1", "output\n", "error\n")
		d := &disktest.Disk{}
		l.run.Disk = d
		d.FailAt(n, errno, true)
		_, err := l.fetch(&Fetcher{})
		if d.Failed == "" {
			if n < 10 || err != nil {
				t.Fatalf("after %d operations: %v", n, err)
			}
			break
		}
		// A file that is not seen here is copied again.
		if err == nil && !strings.HasPrefix(d.Failed, "remove") && !strings.HasPrefix(d.Failed, "lstat") {
			t.Errorf("%v at %s: nobody is told", errno, d.Failed)
		}
		for _, name := range l.files() {
			if b, _ := os.ReadFile(l.run.Path(rundir.AttemptsDir, "000", name)); !strings.Contains(name, tempMark) &&
				!bytes.Equal(b, []byte(l.has["far "+name])) {
				t.Errorf("%v at %s: %s holds %q", errno, d.Failed, name, b)
			}
		}
		if l.here("1.1") {
			l.same("far 1.1.out", "far 1.1.err", "far 1.1.status")
		}
		l.run.Disk = rundir.OS
		if results, err := l.fetch(&Fetcher{}); err != nil {
			t.Errorf("%v at %s: the next: %+v, %v", errno, d.Failed, results, err)
		}
		l.same("far 1.1.out", "far 1.1.err", "far 1.1.status")
	}
}

// TestInterruptEndsAFetchAtOnce checks that an interrupt ends a fetch at once with an error.
func TestInterruptEndsAFetchAtOnce(t *testing.T) {
	l := newLab(t)
	l.addEnded("far", "1.1", "output\n", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, err := (&Fetcher{Run: l.run, Read: l.read}).Fetch(ctx, l.plan())
	if !errors.Is(err, context.Canceled) || results[0].NumIncomplete != 1 || results[0].Err != nil || len(l.reads) > 0 {
		t.Errorf("Fetch: got %+v, %v, reads %v; want context.Canceled and no reads", results, err, l.reads)
	}
}
