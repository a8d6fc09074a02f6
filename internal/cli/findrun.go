package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/rundir"
)

// runHelp says what RUN means to a command for which it is optional.
const runHelp = "RUN is a name in ./dcs-runs or a run directory; without it the newest run is meant. HOST:RUN is one on another machine, where the command then runs, through your ssh."

// openRun finds the run that the arguments name, or the newest.
func (a *app) openRun(args []string) (*rundir.Run, error) {
	name := ""
	if len(args) > 0 {
		if name = args[0]; name == "" { // a shell's variable that was not set: the newest is not meant
			return nil, exit.Usagef("the name of the run is empty").WithAdvice("dcs-tui runs list shows them")
		}
	}
	found := a.reportSlow(cmp.Or(name, rundir.Base))
	dir, err := rundir.Find(rundir.Base, name)
	found()
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return a.openDir(dir)
}

// openDir opens a run directory. From then on it is reported if the directory does not answer.
func (a *app) openDir(dir string) (*rundir.Run, error) {
	opened := a.reportSlow(dir)
	run, err := rundir.Open(dir)
	opened()
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	go func() {
		for ; ; time.Sleep(time.Second) {
			answered := a.reportSlow(dir)
			if f, err := os.Open(run.Path(rundir.AskedFile)); err == nil { // asks the server, whatever a client of NFS has cached
				f.Close()
			}
			answered()
		}
	}()
	return run, nil
}

// slowDelay is when a person is told what a command waits for: a file system whose server is
// gone lets it hang for as long as that takes.
const slowDelay = 3 * time.Second

// reportSlow reports, once for a command, that a directory does not answer, unless it is
// called off before. While a screen is shown, which reports it itself, nothing is reported.
func (a *app) reportSlow(dir string) (answered func()) {
	over := new(atomic.Bool)
	var tell func()
	tell = func() {
		switch {
		case over.Load():
		case a.con.Held():
			time.AfterFunc(slowDelay, tell)
		default:
			a.slow.Do(func() {
				a.con.Line(fmt.Sprintf("the run directory %s has not answered for %.0f s; waiting", console.CleanLine(dir), slowDelay.Seconds()))
			})
		}
	}
	t := time.AfterFunc(slowDelay, tell)
	return func() {
		over.Store(true)
		t.Stop()
	}
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
