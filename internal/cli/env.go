package cli

import (
	"os"
	"path/filepath"
	"slices"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
)

// workDir returns the absolute directory in which jobs run: the flag, or else the current
// directory. os.Getwd prefers $PWD, which on an automounted home is the path that other
// machines have.
func workDir(flag string) (string, error) {
	if flag == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", exit.Usagef("cannot determine the current directory: %w", err).WithAdvice("--cwd names another")
		}
		return wd, nil
	}
	path, err := filepath.Abs(flag)
	if err != nil {
		return "", exit.Usagef("--cwd %s: %w", console.Shorten(flag), err)
	}
	return path, nil
}

// checkFiles refuses files to send that are not there, and patterns that are none.
func checkFiles(cwd string, f *runFlags, hs []*hosts.Host) error {
	source := files.NewSource(cwd)
	if err := source.CheckItems(f.send); err != nil {
		return exit.Usagef("--send: %w", err)
	}
	for _, h := range hs {
		if err := source.CheckItems(h.Send); err != nil {
			return exit.Usagef("%s:%d: send of %s: %w", h.File, h.Line, h.Name, err)
		}
	}
	for _, p := range f.returns {
		if err := files.CheckPattern(p); err != nil {
			return exit.Usagef("--return: %w", err)
		}
	}
	return nil
}

// checkCwd refuses a directory that does not exist if only this machine uses it. Other
// hosts report what they do not have.
func checkCwd(cwd string, hs []*hosts.Host) error {
	if slices.ContainsFunc(hs, func(h *hosts.Host) bool { return h.Link != "local" }) {
		return nil
	}
	info, err := os.Stat(cwd)
	if err != nil {
		return exit.Usagef("the directory of the jobs: %w", err).WithAdvice("--cwd names another")
	}
	if !info.IsDir() {
		return exit.Usagef("%s is not a directory; the jobs cannot run in it", console.Shorten(cwd))
	}
	return nil
}
