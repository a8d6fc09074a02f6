package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

var must = polltest.Must

// TestUnrecordedAttemptsAreFoundInTheFiles checks that after damage to the journal the attempts
// without a record and the open ones are found in the files. Attempts whose end is recorded are not
// examined again (X1).
func TestUnrecordedAttemptsAreFoundInTheFiles(t *testing.T) {
	run := disktest.NewRun(t)
	table := &jobs.Table{Damaged: true, Epoch: 2, Specs: jobstest.Specs(2)}
	for _, r := range []jobs.Record{
		{Kind: jobs.KindAccepted, Job: 1, Count: 2},
		{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"},
		{Kind: jobs.KindExited, Job: 1, N: 1, Host: "a", Outcome: &jobs.Outcome{Exit: 1}},
		{Kind: jobs.KindLaunching, Job: 1, N: 2, Host: "a"},
	} {
		must(t, jobs.Fold(table, &r))
	}
	claim := func(id jobs.AttemptID, host string) {
		t.Helper()
		path := jobs.AttemptFile(run.Dir, id, jobs.FileStatus)
		c := attempts.Claim{Run: run.UID(), Attempt: id, Host: host, By: "1.2.3", Boot: "x", At: 1}
		must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, c.Encode(), 0o600)))
	}
	for _, id := range []jobs.AttemptID{{Job: 1, N: 1}, {Job: 1, N: 2}, {Job: 2, N: 1}} {
		claim(id, "a")
	}
	o := &Owned{Run: run, Table: table}
	found, err := o.foundAttempts(nil)
	if err != nil || len(found) != 2 || found[0].Attempt.String() != "1.2" || found[1].Attempt.String() != "2.1" {
		t.Errorf("foundAttempts: got %+v, %v; want 1.2 and 2.1", found, err)
	}
	table.Damaged = false
	if found, _ := o.foundAttempts(nil); len(found) != 1 || found[0].Attempt.String() != "2.1" {
		t.Errorf("without damage: %+v, want the attempt that has no record", found)
	}
	claim(jobs.AttemptID{Job: 1, N: 2}, "b")
	if found, _ := o.foundAttempts(nil); len(found) != 2 || found[0].Host != "b" {
		t.Errorf("with a claim of another host than the record names: %+v", found)
	}
}

// packedAttempt returns a run whose only attempt is in a pack, and the path of its status file.
func packedAttempt(t *testing.T) (*rundir.Run, string) {
	t.Helper()
	run := disktest.NewRun(t)
	id := jobs.AttemptID{Job: 1, N: 1}
	path := jobs.AttemptFile(run.Dir, id, jobs.FileStatus)
	c := attempts.Claim{Run: run.UID(), Attempt: id, Host: "a", By: "1.2.3", Boot: "x", At: 1}
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
		os.WriteFile(path, c.EncodeFinished(1, jobs.Outcome{}), 0o600)))
	p := attempts.Packer{Disk: run.Disk, Dir: run.Dir, Run: run.UID(), May: func(jobs.AttemptID) bool { return true }}
	if n, err := p.Pack("000"); n != 1 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	return run, path
}

// TestNothingRunsTwiceWithAnUnreadablePack checks that after damage to the journal no dispatcher begins
// while a pack cannot be opened or read, that the error names the pack and what to do, and that there is only
// a warning if the journal is whole, and nothing once the pack can be read.
func TestNothingRunsTwiceWithAnUnreadablePack(t *testing.T) {
	run, path := packedAttempt(t)
	packs, err := filepath.Glob(filepath.Join(run.Dir, rundir.AttemptsDir, "*"+rundir.PackSuffix))
	must(t, err)
	for name, fails := range map[string]struct {
		op    string
		err   error
		later bool // when the directory of the pack was read
	}{"open": {"open", syscall.EACCES, false}, "read": {"read", syscall.EIO, false}, "none": {"", nil, false},
		"open again": {"open", syscall.EACCES, true}, "read again": {"read", syscall.EIO, true}} {
		t.Run(name, func(t *testing.T) {
			isBad := !fails.later
			run.Disk = rundir.WithCalls(run.Dir, func(op, path string, do func() error) error {
				if isBad && path == packs[0] && op == fails.op {
					do = func() error { return fails.err }
				}
				return rundir.Call(op, path, do)
			})
			if fails.later {
				_, err := run.Disk.Names(filepath.Dir(path))
				must(t, err)
				isBad = true
			}
			warnings := 0
			o := &Owned{Run: run, Table: &jobs.Table{Damaged: true, Epoch: 2, Specs: jobstest.Specs(1)}}
			must(t, jobs.Fold(o.Table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 1}))
			found, err := o.foundAttempts(func(string) { warnings++ })
			switch {
			case fails.err == nil:
				if len(found) != 1 || err != nil {
					t.Errorf("found %v, %v", found, err)
				}
			case !errors.Is(err, fails.err) || !strings.Contains(err.Error(), packs[0]) ||
				!strings.Contains(err.Error(), "move it away"):
				t.Errorf("got %v", err)
			}
			o.Table.Damaged = false
			_, err = o.foundAttempts(func(string) { warnings++ })
			if err != nil || (warnings == 1) != (fails.err != nil) {
				t.Errorf("with a whole journal: %d warnings, %v", warnings, err)
			}
		})
	}
}

// TestPacksInAnUnreadableDirectoryCount checks the same for directories that cannot be listed: what is in
// packs is found without the directory of their attempts, and no dispatcher begins without that of the packs.
func TestPacksInAnUnreadableDirectoryCount(t *testing.T) {
	run, path := packedAttempt(t)
	shard, above := filepath.Dir(path), run.Path(rundir.AttemptsDir)
	for _, op := range []string{"open", "readdir"} {
		for _, dir := range []string{shard, above} {
			run.Disk = rundir.WithCalls(run.Dir, func(o, path string, do func() error) error {
				if o == op && filepath.Clean(path) == dir {
					do = func() error { return syscall.EIO }
				}
				return rundir.Call(o, path, do)
			})
			o := &Owned{Run: run, Table: &jobs.Table{Damaged: true, Epoch: 2, Specs: jobstest.Specs(1)}}
			must(t, jobs.Fold(o.Table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 1}))
			found, err := o.foundAttempts(func(string) {})
			if dir == shard && (len(found) != 1 || err != nil) || dir == above && !errors.Is(err, syscall.EIO) {
				t.Errorf("%s of %s fails: found %v, %v", op, dir, found, err)
			}
		}
	}
}

// TestJobsOfADeadDispatcher checks that a dispatcher may die at any instant. Jobs that it had
// stored but not submitted are submitted by resume. A run whose jobs were not all stored is
// refused.
func TestJobsOfADeadDispatcher(t *testing.T) {
	for _, test := range []struct {
		asked, stored, accepted int
		refused                 bool
	}{{3, 3, 0, false}, {3, 3, 2, false}, {3, 2, 0, true}, {3, 0, 0, true}} {
		run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Settings{
			Cwd: "/", JobsFile: "jobs.txt", Options: map[string]any{rundir.OptionJobs: int64(test.asked)}})
		must(t, err)
		o, err := Take(t.Context(), run, journal.TakeOptions{})
		must(t, err)
		err = run.AppendSpecs(jobstest.Specs(test.stored))
		if test.accepted > 0 {
			err = errors.Join(err, o.journal.Append([]jobs.Record{{Kind: jobs.KindAccepted, Job: 1,
				Count: test.accepted}}))
		}
		must(t, errors.Join(err, o.journal.Close()))
		if run, err = rundir.Open(run.Dir); err != nil {
			t.Fatal(err)
		}
		if o, err = Take(t.Context(), run, journal.TakeOptions{}); err != nil {
			t.Fatal(err)
		}
		if o.Table.NumSpecs() != test.stored || o.Table.NumJobs() != test.accepted {
			t.Errorf("%+v: %d jobs are stored, %d accepted", test, o.Table.NumSpecs(), o.Table.NumJobs())
		}
		err = o.CheckComplete()
		if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "none of them was started") {
			t.Errorf("%+v: %v", test, err)
		}
		if err := o.journal.Close(); err != nil {
			t.Error(err)
		}
	}
}
