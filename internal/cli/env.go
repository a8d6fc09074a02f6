package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// parseEnv reads the --env flags. The last one of a name wins, as in a shell.
func parseEnv(flags []string, lookup func(string) (string, bool)) ([]rundir.EnvRef, []jobs.EnvVar, error) {
	settings := map[string]rundir.EnvRef{}
	for _, f := range flags {
		name, value, given := strings.Cut(f, "=")
		if !envName(name) {
			return nil, nil, exit.Usagef("--env %s: %q is not a variable name", console.Shorten(f), console.Shorten(name)).
				WithAdvice("write --env NAME=VALUE, or --env NAME to pass the current value")
		}
		if strings.HasPrefix(name, "DCS_") {
			return nil, nil, exit.Usagef("--env %s: names that begin with DCS_ are set by dcs-tui itself", name)
		}
		if !utf8.ValidString(value) {
			return nil, nil, exit.Usagef("--env %s: the value is not valid UTF-8 and cannot be stored", name).
				WithAdvice("export it and pass it with --env %s", name)
		}
		s := rundir.EnvRef{Name: name, Value: value, Stored: given}
		if !given {
			present, ok := lookup(name)
			if !ok {
				return nil, nil, exit.Usagef("--env %s: it is not set here", name).
					WithAdvice("export it first, or give a value: --env %s=VALUE", name)
			}
			s.Hash = hashOf(present)
		}
		settings[name] = s
	}
	list := slices.SortedFunc(maps.Values(settings), func(a, b rundir.EnvRef) int { return cmp.Compare(a.Name, b.Name) })
	vars, err := resolveEnv(list, lookup)
	return list, vars, err
}

// resolveEnv returns the variables of the settings. A setting that is stored as a hash
// takes its value from the environment, which must not have changed.
func resolveEnv(settings []rundir.EnvRef, lookup func(string) (string, bool)) ([]jobs.EnvVar, error) {
	vars := make([]jobs.EnvVar, 0, len(settings))
	for _, s := range settings {
		if s.Stored {
			vars = append(vars, jobs.EnvVar{Name: s.Name, Value: s.Value})
			continue
		}
		value, ok := lookup(s.Name)
		if !ok {
			return nil, exit.Usagef("the run was started with --env %s, which is not set here", s.Name).
				WithAdvice("export %s with the value it had then", s.Name)
		}
		if hashOf(value) != s.Hash {
			return nil, exit.Usagef("the run was started with another value of %s than it has here", s.Name).
				WithAdvice("export %s with the value it had then, or start a new run", s.Name)
		}
		vars = append(vars, jobs.EnvVar{Name: s.Name, Value: value})
	}
	return vars, nil
}

func hashOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

var envNamePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// envName reports whether s can be the name of a variable in a shell.
func envName(s string) bool { return envNamePattern.MatchString(s) }

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
