package cli

import (
	"os"
	"path/filepath"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
)

// workDir is where jobs run: the flag, else the directory we are in. $PWD is
// preferred to what the kernel says: on an automounted home only the former is a
// path that other machines have.
func workDir(flag string) (string, error) {
	if flag == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", exit.Usagef("where are we? %w", err)
		}
		return wd, nil
	}
	path, err := filepath.Abs(flag)
	if err != nil {
		return "", exit.Usagef("--cwd %s: %w", console.Shorten(flag), err)
	}
	return path, nil
}

// checkCwd refuses a directory that is not there when only this machine would
// use it; other hosts say themselves what they do not have.
func checkCwd(cwd string, hs []*hosts.Host) error {
	for _, h := range hs {
		if h.Link != "local" {
			return nil
		}
	}
	info, err := os.Stat(cwd)
	if err != nil {
		return exit.Usagef("the directory that the jobs shall run in: %w", err).WithAdvice("--cwd names another")
	}
	if !info.IsDir() {
		return exit.Usagef("%s is not a directory; the jobs cannot run in it", console.Shorten(cwd))
	}
	return nil
}

// cwdResolver makes a job's own relative cwd absolute, below the directory of
// the run. Options are shared between jobs, so each is copied once.
type cwdResolver struct {
	cwd  string
	done map[*jobs.Options]*jobs.Options
}

func (c *cwdResolver) resolve(s *jobs.Spec) {
	if s.Options == nil || s.Cwd == "" || filepath.IsAbs(s.Cwd) {
		return
	}
	o := c.done[s.Options]
	if o == nil {
		copied := *s.Options
		copied.Cwd = filepath.Join(c.cwd, s.Cwd)
		o = &copied
		if c.done == nil {
			c.done = map[*jobs.Options]*jobs.Options{}
		}
		c.done[s.Options] = o
	}
	s.Options = o
}
