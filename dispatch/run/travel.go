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

// travel says which files travel, and removes what a dispatcher that was killed left of
// files under way.
func (r *Run) travel(o *Owned) (dispatch.Files, error) {
	asked := r.dir.Asked
	f := dispatch.Files{
		Source: files.NewSource(asked.Cwd, r.dir.Dir), Base: asked.Cwd, Notes: filepath.Join(r.dir.Dir, "returning"),
		Send: asked.Send, Return: asked.Return,
	}
	f.Any = len(asked.Send)+len(asked.Return) > 0 ||
		slices.ContainsFunc(r.opts.Hosts, func(h *hosts.Host) bool { return len(h.Send) > 0 }) ||
		slices.ContainsFunc(slices.Concat(o.Table.Specs, o.stored), func(s *jobs.Spec) bool {
			return s.Options != nil && len(s.Send)+len(s.Return) > 0
		})
	if err := files.Sweep(f.Base, f.Notes); err != nil {
		return f, fmt.Errorf("removing unfinished files of jobs below %s: %w", f.Base, err)
	}
	return f, nil
}
