package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// ParseEnv parses the values of --env. The last value of a name counts, as in a shell. lookup
// returns the current value of a variable.
func ParseEnv(flags []string, lookup func(string) (string, bool)) ([]rundir.EnvRef, []jobs.EnvVar, error) {
	settings := map[string]rundir.EnvRef{}
	for _, f := range flags {
		name, value, given := strings.Cut(f, "=")
		if name == "_" {
			return nil, nil, text.Errorf("--env _: all variables, as in GNU parallel, are not passed").
				WithAdvice("give --env NAME for each variable that the jobs need")
		}
		if !IsEnvName(name) {
			return nil, nil, text.Errorf("--env %s: %q is not a variable name", text.Shorten(f), text.Shorten(name)).
				WithAdvice("write --env NAME=VALUE, or --env NAME to pass the current value; a second name needs " +
					"another --env")
		}
		if strings.HasPrefix(name, "DCS_") {
			return nil, nil, text.Errorf("--env %s: names that begin with DCS_ are set by dcs-tui itself", name)
		}
		if !utf8.ValidString(value) {
			return nil, nil, text.Errorf("--env %s: the value is not valid UTF-8 and cannot be stored", name).
				WithAdvice("export it and pass it with --env %s", name)
		}
		s := rundir.EnvRef{Name: name, Value: value, Stored: given}
		if !given {
			present, ok := lookup(name)
			if !ok && IsFunction(name, lookup) {
				return nil, nil, text.Errorf("--env %s: it is an exported function, "+
					"and functions are not passed to jobs", name).
					WithAdvice("write it to a file that the hosts have, and read it before each job: " +
						"--shell bash --setup '. ./functions.sh'")
			}
			if !ok {
				return nil, nil, text.Errorf("--env %s: it is not set here", name).
					WithAdvice("export it first, or give a value: --env %s=VALUE", name)
			}
			s.Hash = hashOf(present)
		}
		settings[name] = s
	}
	list := slices.SortedFunc(maps.Values(settings),
		func(a, b rundir.EnvRef) int { return cmp.Compare(a.Name, b.Name) })
	vars, err := ResolveEnv(list, lookup)
	return list, vars, err
}

// IsFunction reports whether bash has exported a function of this name (export -f). lookup returns
// the current value of a variable.
func IsFunction(name string, lookup func(string) (string, bool)) bool {
	_, ok := lookup("BASH_FUNC_" + name + "%%")
	return ok
}

// ResolveEnv returns the variables of the settings. A setting that is stored as a hash
// takes its value from the environment, which must not have changed.
func ResolveEnv(settings []rundir.EnvRef, lookup func(string) (string, bool)) ([]jobs.EnvVar, error) {
	vars := make([]jobs.EnvVar, 0, len(settings))
	for _, s := range settings {
		if s.Stored {
			vars = append(vars, jobs.EnvVar{Name: s.Name, Value: s.Value})
			continue
		}
		value, ok := lookup(s.Name)
		if !ok {
			return nil, text.Errorf("the run was started with --env %s, which is not set here", s.Name).
				WithAdvice("export %s with the value it had then", s.Name)
		}
		if hashOf(value) != s.Hash {
			return nil, text.Errorf("the run was started with another value of %s than it has here", s.Name).
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

var envNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// IsEnvName reports whether s can be the name of a variable in a shell.
func IsEnvName(s string) bool { return envNamePattern().MatchString(s) }
