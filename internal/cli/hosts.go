package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

func (a *app) hostsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "hosts",
		GroupID: groupHost,
		Short:   "The machines of the inventory, and of a run",
		Args:    cobra.ArbitraryArgs,
		RunE:    needsCommand,
	}
	cmd.AddCommand(a.hostsListCmd(), a.hostsCheckCmd(), a.hostsInitCmd(), a.instancesCmd())
	for _, c := range hostRequestCommands {
		cmd.AddCommand(a.requestCmd(c))
	}
	return cmd
}

func (a *app) hostsListCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:               "list [flags] [HOST...]",
		Short:             "List the hosts of the inventory, without connecting",
		ValidArgsFunction: completeMany(completeHosts),
		RunE: func(cmd *cobra.Command, args []string) error {
			inv, err := a.loadInventory(file)
			if err != nil {
				return err
			}
			list, err := chosenHosts(inv, args)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			for _, h := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", console.CleanLine(h.Name), console.CleanLine(h.Way()), console.CleanLine(h.Limits()))
			}
			if err := w.Flush(); err != nil || len(args) > 0 {
				return err
			}
			for _, p := range inv.Providers {
				what := jobs.Plural(p.Max, "instance")
				if s := p.Slurm; s != nil {
					what = fmt.Sprintf("%s of Slurm, %s for %s", jobs.Plural(p.Max, "allocation"), jobs.Plural(s.Nodes, "node"), results.HumanDuration(s.Time))
				}
				fmt.Fprintf(a.stdout, "provider %s: at most %s, each as %s, %s; startup about %s, terminated after %s without work\n", p.Name,
					what, console.CleanLine(p.Host.Way()), console.CleanLine(p.Host.Limits()), results.HumanDuration(p.Startup), results.HumanDuration(p.Idle))
			}
			return nil
		},
	}
	hostsFlag(cmd.Flags(), &file)
	return cmd
}

// chosenHosts returns the named hosts of the inventory, or all.
func chosenHosts(inv *loadedInventory, names []string) ([]*hosts.Host, error) {
	if len(names) == 0 {
		return inv.Hosts, nil
	}
	var list []*hosts.Host
	for _, name := range names {
		h := inv.Find(name)
		if h == nil {
			return nil, exit.Usagef("there is no host %q in the inventory %s", console.Shorten(name), inv.File).
				WithAdvice("dcs-tui hosts list shows them")
		}
		list = append(list, h)
	}
	return list, nil
}

// hostNames returns the names of some of the hosts.
func hostNames(hs []*hosts.Host) string {
	var names []string
	for _, h := range hs {
		names = append(names, console.CleanLine(h.Name))
	}
	return someNames(names, maxNamedHosts)
}
