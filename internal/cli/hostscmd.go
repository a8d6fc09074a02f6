package cli

import (
	"fmt"
	"strconv"
	"strings"
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
		Short:   "The machines of the inventory",
		Args:    cobra.ArbitraryArgs,
		RunE:    needsCommand,
	}
	cmd.AddCommand(a.hostsListCmd(), a.hostsCheckCmd())
	return cmd
}

func (a *app) hostsListCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:               "list [flags] [HOST...]",
		Short:             "List the hosts of the inventory, without connecting",
		ValidArgsFunction: completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, list, err := a.chosenHosts(file, args)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			for _, h := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", console.CleanLine(h.Name), wayText(h), hostText(h))
			}
			return w.Flush()
		},
	}
	hostsFlag(cmd.Flags(), &file)
	return cmd
}

// chosenHosts reads the inventory and picks the named hosts, or all.
func (a *app) chosenHosts(file string, names []string) (*loadedInventory, []*hosts.Host, error) {
	inv, err := a.loadInventory(file)
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return inv, inv.Hosts, nil
	}
	var list []*hosts.Host
	for _, name := range names {
		h := inv.Find(name)
		if h == nil {
			return nil, nil, exit.Usagef("there is no host %q in the inventory %s", console.Shorten(name), inv.File).
				WithAdvice("dcs-tui hosts list shows them")
		}
		list = append(list, h)
	}
	return inv, list, nil
}

// wayText is how a host is reached.
func wayText(h *hosts.Host) string {
	switch h.Link {
	case "local":
		return "this machine"
	case "command":
		return console.CleanLine(strings.Join(h.Command, " "))
	}
	text := strings.Join(h.Addresses, ", ")
	if h.User != "" {
		text = h.User + "@" + text
	}
	if h.Port != 0 {
		text += " port " + strconv.Itoa(h.Port)
	}
	if len(h.Jump) > 0 {
		text += " through " + strings.Join(h.Jump, ", ")
	}
	return "ssh " + console.CleanLine(text)
}

// hostText is what the inventory says of a host's slots and limits.
func hostText(h *hosts.Host) string {
	parts := []string{slotsText(h)}
	if len(h.Tags) > 0 {
		parts = append(parts, "tags "+console.CleanLine(strings.Join(h.Tags, ",")))
	}
	if h.GPUs > 0 {
		parts = append(parts, jobs.Plural(h.GPUs, "GPU"))
	}
	if h.Weight != 1 {
		parts = append(parts, fmt.Sprintf("weight %g", h.Weight))
	}
	if !h.Yield {
		parts = append(parts, "does not yield")
	}
	if h.MaxLoad > 0 {
		parts = append(parts, fmt.Sprintf("load at most %g", h.MaxLoad))
	}
	if h.MinMemFree > 0 {
		parts = append(parts, results.HumanBytes(h.MinMemFree)+" of memory left free")
	}
	if h.MinDiskFree > 0 {
		parts = append(parts, results.HumanBytes(h.MinDiskFree)+" of disk left free")
	}
	for _, q := range h.Quiet {
		parts = append(parts, fmt.Sprintf("quiet %02d:%02d-%02d:%02d", int(q.From.Hours()), int(q.From.Minutes())%60,
			int(q.To.Hours()), int(q.To.Minutes())%60))
	}
	return strings.Join(parts, ", ")
}
