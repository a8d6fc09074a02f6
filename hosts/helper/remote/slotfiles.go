//go:build linux

package remote

import (
	"errors"
	"fmt"
	"path/filepath"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
)

// enter makes the directory of an attempt that has one of its own.
func (s *slot) enter(job *hosts.LaunchJob, id string) error {
	if job.Files == nil {
		return nil
	}
	dir, err := s.store().Make(id, s.cfg.Sends, job.Files.Own)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(job.Cwd) {
		job.Cwd = filepath.Join(dir, job.Cwd)
	}
	return nil
}

func (s *slot) store() files.Store { return files.Store{Dir: s.cfg.Files} }

// notSent completes the outcome of a job that cannot get its files.
func notSent(err *files.SendError, o *jobs.Outcome) {
	o.Started = wall()
	o.Ended, o.Exit, o.Error = o.Started, 126, "its files cannot be sent: "+err.Text
}

// collect notes what a job returns that has succeeded. Without anything to return, its
// directory is removed.
func (s *slot) collect(job *hosts.LaunchJob, id string, o *jobs.Outcome) {
	if job.Files == nil {
		return
	}
	if o.OK() && len(job.Files.Return) > 0 {
		n, missing, err := s.store().Collect(id, s.cfg.Sends, job.Files.Own, job.Files.Return)
		switch {
		case errors.Is(err, files.ErrLeadsOut):
			o.Unreturned, o.Error = true, err.Error()
		case err != nil:
			o.Unreturned, o.Error = true, fmt.Sprintf("its files cannot be returned from %s: %v", s.cfg.Host, err)
		case missing != "":
			o.Unreturned, o.Error = true, fmt.Sprintf("it made no file %q, which it returns", missing)
		}
		o.Files = n
	}
	if o.Files == 0 && !s.cfg.KeepFiles {
		if err := s.store().Drop(id); err != nil {
			s.report(&report{kind: repTrouble, attempt: job.Attempt, why: fmt.Sprintf("removing the directory of %s: %v", id, err)})
		}
	}
}
