package run

import (
	"path/filepath"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// Create creates the directory of a new run: dir, or rundir.Base/name if dir is "". If a run in use
// has that directory, the error names its dispatcher.
func Create(dir, name string, settings rundir.Settings) (r *rundir.Run, err error) {
	if dir != "" {
		r, err = rundir.CreateAt(dir, name, settings)
	} else {
		r, err = rundir.Create(rundir.Base, name, settings)
		dir = filepath.Join(rundir.Base, name)
	}
	if err == nil {
		return r, nil
	}
	if old, openErr := rundir.Open(dir); openErr == nil {
		if owner, ownerErr := journal.ReadOwner(old); ownerErr == nil && owner != nil && !owner.Left &&
			owner.Liveness() != journal.Dead {
			return nil, text.Errorf("the run %s in %s is in use by %s; choose another --name or --run-dir, "+
				"or look at it with dcs-tui status %s",
				old.Name(), dir, owner, text.ShellWord(old.Ref()))
		}
	}
	return nil, text.Errorf("%w", err)
}
