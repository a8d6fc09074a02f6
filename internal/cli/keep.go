package cli

import (
	"path/filepath"
	"sort"

	"github.com/spf13/pflag"

	"dcs-tui/internal/cli/exit"
)

// keptFlags are the flags of run that resume uses again unless they are given anew. The other
// settings of a run have places of their own in run.toml.
var keptFlags = []string{
	"tries", "retry-delay", "timeout", "retry-timeouts", "retry-on", "no-retry-on", "timeout-growth", "mem-growth",
	"max-postpone", "warn-signal", "on-lost", "speculate", "copies", "keep-children", "half-life", "run-share", "max-slots", "tokens", "give-up",
	"jobs", "standby-on", "delay", "backoff-cap", "host", "buffer", "halt", "on-interrupt", "on-done", "keep-open", "ssh-config", "accept-new", "joblog",
}

// pathFlags name files; they are kept as absolute paths, because resume may be
// called from another directory.
var pathFlags = []string{"ssh-config", "joblog"}

// keepFlags returns the flags that were given, as run.toml keeps them.
func keepFlags(fs *pflag.FlagSet) map[string]any {
	kept := map[string]any{}
	for _, name := range keptFlags {
		if f := fs.Lookup(name); f != nil && f.Changed {
			kept[name] = f.Value.String()
		}
	}
	return kept
}

// restoreFlags sets the flags that run.toml has kept, except those that this command line
// gives. It ignores flags of another version.
func restoreFlags(fs *pflag.FlagSet, kept map[string]any) error {
	names := make([]string, 0, len(kept))
	for name := range kept {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		f := fs.Lookup(name)
		text, isText := kept[name].(string)
		if f == nil || f.Changed || !isText { // a number of jobs was kept as jobs once
			continue
		}
		if err := fs.Set(name, text); err != nil {
			return exit.Usagef("run.toml has --%s %v: %w", name, kept[name], err)
		}
	}
	return nil
}

// absoluteFlags makes the paths among the given flags absolute.
func absoluteFlags(fs *pflag.FlagSet) error {
	for _, name := range pathFlags {
		f := fs.Lookup(name)
		if f == nil || !f.Changed || f.Value.String() == "" {
			continue
		}
		path, err := filepath.Abs(f.Value.String())
		if err != nil {
			return exit.Usagef("--%s: %w", name, err)
		}
		fs.Set(name, path)
	}
	return nil
}
