package run

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"dcs-tui/dispatch"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/internal/account"
	"dcs-tui/jobs"
)

// filesOfRun returns which files are sent with jobs and returned. It removes the partial files of a
// killed dispatcher.
func (r *Run) filesOfRun(o *Owned) (dispatch.Files, error) {
	settings := r.dir.Settings
	f := dispatch.Files{
		Source: files.NewSource(settings.Cwd, r.dir.Dir), BaseDir: settings.Cwd,
		RecordDir: filepath.Join(r.dir.Dir, "returning"),
		Send:      settings.Send, Return: settings.Return, Protected: r.protected(o),
	}
	f.IsUsed = len(settings.Send)+len(settings.Return) > 0 ||
		slices.ContainsFunc(r.inventory.Hosts(), sendsFiles) ||
		anySpec(o.specsWithOptions(), hasFiles)
	counts := func(attempt string) bool {
		id, err := jobs.ParseAttemptID(attempt)
		if err != nil {
			return false
		}
		a := o.Table.Attempt(id)
		return a != nil && a.State == jobs.AttemptExited && a.Outcome != nil && a.Outcome.OK()
	}
	if err := files.Sweep(f.BaseDir, f.RecordDir, counts); err != nil {
		return f, fmt.Errorf("removing unfinished files of jobs below %s: %w", f.BaseDir, err)
	}
	return f, nil
}

// protected returns the files and directories that this machine trusts: whoever can write them runs
// commands here. No job may return them.
func (r *Run) protected(o *Owned) []string {
	settings := r.dir.Settings
	names := []string{r.dir.Dir, settings.InventoryFile, r.opts.InventoryFile, settings.JobsFile}
	for spec := range o.specsWithOptions() {
		if spec.File != names[len(names)-1] {
			names = append(names, spec.File)
		}
	}
	if exe, err := os.Executable(); err == nil {
		names = append(names, exe)
	}
	for _, home := range []string{os.Getenv("HOME"), account.Current().Home} { // ssh uses the second one
		if home != "" {
			names = append(names, filepath.Join(home, ".ssh"))
		}
	}
	here, err := os.Getwd()
	var paths []string
	for _, name := range names {
		switch {
		case name == "" || name == "-":
		case filepath.IsAbs(name):
			paths = append(paths, name)
		default: // the run may have been started in its cwd or here
			paths = append(paths, filepath.Join(settings.Cwd, name))
			if err == nil {
				paths = append(paths, filepath.Join(here, name))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// anySpec reports whether f returns true for one of the jobs.
func anySpec(specs iter.Seq[*jobs.Spec], f func(*jobs.Spec) bool) bool {
	for s := range specs {
		if f(s) {
			return true
		}
	}
	return false
}

// hasFiles reports whether a job gets or returns files of its own.
func hasFiles(s *jobs.Spec) bool { return s.Options != nil && len(s.Send)+len(s.Return) > 0 }

// sendsFiles reports whether each job on a host gets files.
func sendsFiles(h *hosts.Host) bool { return len(h.Send) > 0 }

var errFilesUsed = errors.New("jobs of the run get or return files (--send, --return), which a mirror lacks")

// refuseMirror ends the mirror, because it would lack files.
func (r *Run) refuseMirror() {
	if r.filesUsed.CompareAndSwap(false, true) {
		r.mirror.Refuse(errFilesUsed)
	}
}

// checkFiles returns a function that calls store for new jobs. It ends the mirror if one of them
// gets or returns files.
func (r *Run) checkFiles(store func([]*jobs.Spec) error) func([]*jobs.Spec) error {
	return func(specs []*jobs.Spec) error {
		if slices.ContainsFunc(specs, hasFiles) {
			r.refuseMirror()
		}
		return store(specs)
	}
}
