package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// minGroupedFlags is the number of flags from which the help of a command arranges them in
// groups.
const minGroupedFlags = 20

// flagGroups arranges the flags of the commands that dispatch a run. A flag in no group is
// shown at the end.
var flagGroups = []struct{ title, names string }{
	{"Choose combinations", "count search ask trials minimize maximize limit"},
	{"Hosts", "hosts host ssh-config accept-new standby-on backoff-cap give-up"},
	{"How much runs at once", "jobs max-slots tokens queue-slots share queue-priority half-life run-share delay buffer"},
	{"Jobs and their files", "env setup cwd shell send return keep-files timeout warn-signal keep-children shuf"},
	{"When something fails", "tries retry-delay retry-timeouts retry-on no-retry-on timeout-growth mem-growth max-postpone on-lost speculate copies halt"},
	{"The run", "name run-dir dry-run keep-open on-interrupt on-done force standby background"},
	{"Output and screen", "no-tui json output keep-order tag joblog ascii mouse"},
}

// flagUsages returns the lines of help for flags, wrapped to width columns (0: not
// wrapped), in groups if there are many.
func flagUsages(fs *pflag.FlagSet, width int) string {
	n := 0
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			n++
		}
	})
	if n < minGroupedFlags {
		return fs.FlagUsagesWrapped(width)
	}
	var b strings.Builder
	rest := map[string]bool{}
	fs.VisitAll(func(f *pflag.Flag) { rest[f.Name] = true })
	group := func(title string, has func(name string) bool) {
		part := pflag.NewFlagSet("", pflag.ContinueOnError)
		part.SortFlags = fs.SortFlags
		fs.VisitAll(func(f *pflag.Flag) {
			if rest[f.Name] && has(f.Name) {
				part.AddFlag(f)
			}
		})
		part.VisitAll(func(f *pflag.Flag) { delete(rest, f.Name) })
		if part.HasAvailableFlags() {
			b.WriteString(title + part.FlagUsagesWrapped(width))
		}
	}
	for _, g := range flagGroups {
		names := strings.Fields(g.names)
		group("\n "+g.title+":\n", func(name string) bool { return slices.Contains(names, name) })
	}
	group("\n", func(string) bool { return true })
	return b.String()
}
