package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/rundir"
)

// runHelp says what RUN means to a command for which it is optional.
const runHelp = "RUN is a name in ./dcs-runs or a run directory; without it the newest run is meant. HOST:RUN is one on another machine, where the command then runs, through your ssh."

// openRun finds the run that the arguments name, or the newest. While its directory does
// not answer that is said, also of what is read there later.
func (a *app) openRun(args []string) (*rundir.Run, error) {
	name := ""
	if len(args) > 0 {
		if name = args[0]; name == "" { // a shell's variable that was not set: the newest is not meant
			return nil, exit.Usagef("the name of the run is empty").WithAdvice("dcs-tui runs list shows them")
		}
	}
	disk := a.slowDir("")
	found := disk.begin(cmp.Or(name, rundir.Base))
	dir, err := rundir.Find(rundir.Base, name)
	found()
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	disk.dir = dir
	run, err := rundir.OpenOn(disk, dir)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return run, nil
}

// completeRuns completes the first argument with the names of runs, newest first.
func completeRuns(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	runs, err := rundir.List(rundir.Base)
	if err != nil || strings.Contains(prefix, "/") {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	var names []string
	for _, r := range runs {
		if strings.HasPrefix(r.Name, prefix) {
			names = append(names, r.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
