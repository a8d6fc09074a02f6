package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// LostError is the error of a run that was started in Dir and has lost its run.toml.
// The first line of its message says what is wrong, the others what can be done.
type LostError struct{ Dir string }

func (e *LostError) Error() string {
	return fmt.Sprintf(`the run in %[1]s has lost its file %[2]s; keep the directory: it holds the results of its jobs
no command can open the run without that file: restore it from a backup (it is never changed after the start), then resume, cancel and results work again
outputs are in %[3]s, jobs in %[4]s, the journal in %[5]s
a live dispatcher goes on without it: create a file %[6]s in the directory to drain the run, or %[7]s to cancel it`,
		e.Dir, AskedFile, filepath.Join(e.Dir, AttemptsDir, "*", "JOB.ATTEMPT.out and .err"), SpecsFile, JournalDir, StopFile, StopNowFile)
}

// lost returns a *LostError if dir lists no run.toml and something shows that a run was
// started there, otherwise nil. A journal or attempts that cannot be listed count as
// showing it: nobody should remove a directory because it could not be read.
func lost(d Disk, dir string) error {
	names, err := namesOf(d, dir)
	if err != nil {
		return nil
	}
	return lostAmong(d, dir, names)
}

// lostAmong is lost for a directory that contains these names.
func lostAmong(d Disk, dir string, names []string) error {
	if slices.Contains(names, AskedFile) {
		return nil
	}
	begun := slices.Contains(names, OwnerFile) && slices.Contains(names, JournalDir)
	for _, sub := range []string{JournalDir, AttemptsDir} {
		if !slices.Contains(names, sub) || !slices.Contains(names, NonceFile) && !slices.Contains(names, SpecsFile) {
			continue // a directory of that name may belong to anything
		}
		list, err := d.Names(filepath.Join(dir, sub))
		begun = begun || len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
	}
	if !begun {
		return nil
	}
	return &LostError{Dir: dir}
}

// HasAttempts reports whether the run directory has files of any attempt. If it cannot
// be listed, HasAttempts returns true.
func (r *Run) HasAttempts() bool {
	list, err := r.Disk.Names(r.Path(AttemptsDir))
	return len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}
