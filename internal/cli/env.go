package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strings"
	"unicode/utf8"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// parseEnv reads the --env flags. The last setting of a name wins, as in a shell.
func parseEnv(flags []string, lookup func(string) (string, bool)) ([]rundir.EnvRef, []jobs.EnvVar, error) {
	settings := map[string]rundir.EnvRef{}
	for _, f := range flags {
		name, value, given := strings.Cut(f, "=")
		if !envName(name) {
			return nil, nil, exit.Usagef("--env %s: %q is not a variable name", console.Shorten(f), console.Shorten(name)).
				WithAdvice("write --env NAME=VALUE, or --env NAME to hand the present value on")
		}
		if strings.HasPrefix(name, "DCS_") {
			return nil, nil, exit.Usagef("--env %s: names that begin with DCS_ are set by dcs-tui itself", name)
		}
		if !utf8.ValidString(value) {
			return nil, nil, exit.Usagef("--env %s: the value is not valid UTF-8 and cannot be stored", name).
				WithAdvice("export it and hand it on with --env %s", name)
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
	list := make([]rundir.EnvRef, 0, len(settings))
	for _, s := range settings {
		list = append(list, s)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	vars, err := resolveEnv(list, lookup)
	return list, vars, err
}

// resolveEnv gives each setting its value. One that was stored as a hash takes
// the value of today's environment, which must still be the same: half of a run
// with another token or path would be worse than no run.
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

// envName says whether a shell would take it as a variable's name.
func envName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
