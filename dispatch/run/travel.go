package run

import (
	"fmt"
	"path/filepath"
	"slices"

	"dcs-tui/dispatch"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
)

// travel returns which files are sent with jobs and returned. It removes the partial files of a
// killed dispatcher.
func (r *Run) travel(o *Owned) (dispatch.Files, error) {
	asked := r.dir.Asked
	f := dispatch.Files{
		Source: files.NewSource(asked.Cwd, r.dir.Dir), Base: asked.Cwd, Notes: filepath.Join(r.dir.Dir, "returning"),
		Send: asked.Send, Return: asked.Return,
	}
	f.Any = len(asked.Send)+len(asked.Return) > 0 ||
		slices.ContainsFunc(r.opts.Hosts, func(h *hosts.Host) bool { return len(h.Send) > 0 }) ||
		slices.ContainsFunc(o.Specs(), func(s *jobs.Spec) bool {
			return s.Options != nil && len(s.Send)+len(s.Return) > 0
		})
	counts := func(attempt string) bool {
		id, err := jobs.ParseAttemptID(attempt)
		if err != nil {
			return false
		}
		a := o.Table.Attempt(id)
		return a != nil && a.State == jobs.AttemptExited && a.Outcome != nil && a.Outcome.OK()
	}
	if err := files.Sweep(f.Base, f.Notes, counts); err != nil {
		return f, fmt.Errorf("removing unfinished files of jobs below %s: %w", f.Base, err)
	}
	return f, nil
}
