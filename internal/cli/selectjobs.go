package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// selection says which jobs of a run a command is about. The jobs named by number and
// the rules are to be met both.
type selection struct {
	named  jobs.Ranges // nil: all
	all    bool        // --all
	failed bool        // --failed
	where  []string    // filters, as results --where has them
}

const whereHelp = "only jobs for which this holds, such as: exit=137 and host=ws*, or: state=timed_out or state=skipped; as results --where finds them"

// parseNamed reads the arguments behind RUN: "3", "3-17", "3,9-12".
func (s *selection) parseNamed(args []string) error {
	if len(args) == 0 {
		return nil
	}
	named, err := jobs.ParseRanges(strings.Join(args, ","))
	if err != nil {
		return exit.Usagef("%w", err)
	}
	s.named = named
	return nil
}

// pick returns the jobs that are meant. Those named by number are taken whatever
// state they are in: whoever carries the request out counts those it leaves alone.
// Others only if fit says so.
func (a *app) pick(ctx context.Context, run *rundir.Run, t *jobs.Table, s *selection, fit func(jobs.JobState) bool) ([]jobs.ID, error) {
	filters, err := parseWhere(s.where)
	if err != nil {
		return nil, err
	}
	if last := s.named.Last(); int(last) > len(t.Jobs) {
		return nil, exit.Usagef("there is no job %d: the run has %s", last, jobs.Plural(len(t.Jobs), "job"))
	}
	if s.named != nil && len(filters) == 0 && !s.failed {
		return s.named.IDs(jobs.ID(len(t.Jobs))), nil
	}
	var which map[jobs.ID]bool
	if len(filters) > 0 {
		if which, err = a.jobsWhere(ctx, run, t, filters); err != nil {
			return nil, err
		}
	}
	var ids []jobs.ID
	for i := range t.Jobs {
		j, id := &t.Jobs[i], jobs.ID(i+1)
		switch {
		case s.named != nil && !s.named.Has(id), !fit(j.State):
		case s.failed && j.State != jobs.Failed && j.State != jobs.TimedOut:
		case which == nil || which[id]:
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// whereWords are offered for --where; parameters, figures and other facts can be used, too.
var whereWords = []string{"state", "exit", "signal", "host", "name", "queue"}

// completeWhere completes the commonest columns, and the states.
func completeWhere(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	i := strings.LastIndexAny(prefix, ", (") + 1
	before, last := prefix[:i], prefix[i:]
	var words []string
	for _, w := range whereWords {
		if w != "state" || !strings.HasPrefix(last, "state=") {
			words = append(words, w+"=")
			continue
		}
		for st := jobs.Queued; st <= jobs.Skipped; st++ {
			words = append(words, "state="+st.String())
		}
	}
	var fit []string
	for _, w := range words {
		if strings.HasPrefix(w, last) {
			fit = append(fit, before+w)
		}
	}
	return fit, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
