package cli

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/rundir"
)

func (a *app) packCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "pack RUN...",
		Short: "Move the small outputs of finished runs into archives",
		Long: `Move the outputs and status files of the jobs of finished runs into archives, one for up to 1,000 jobs,
because many file systems limit the number of files of a user. All commands read the outputs there, and
unzip extracts them. Hosts that do not see the run directory pack the files of large runs themselves, when
such a run ends.`,
		Example:           "dcs-tui runs pack sweep-20260314-1502",
		Args:              requireRuns,
		ValidArgsFunction: completeMany(completeAnyRun),
		RunE:              func(_ *cobra.Command, args []string) error { return a.runPack(args) },
	}
}

func (a *app) runPack(args []string) error {
	dirs, err := new(pruneFlags).candidates(args)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		name := text.Line(filepath.Base(dir))
		runDir, err := rundir.Open(dir)
		packed := 0
		if err == nil {
			packed, err = run.Pack(runDir)
		}
		if err != nil {
			a.warn("%s: %v", name, err)
			a.exitCode = exitFailed
			continue
		}
		a.con.Line(name + ": the files of " + text.Plural(packed, "attempt") + " were packed")
		if apart := slices.Sorted(maps.Keys(runDir.HostDirs())); len(apart) > 0 {
			a.con.Line(name + ": the files of other attempts are on " + text.Line(text.List(apart, 4)) +
				", and this command does not pack them there")
		}
	}
	return nil
}
