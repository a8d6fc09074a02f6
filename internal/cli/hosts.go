package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/hosts/check"
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
	cmd.AddCommand(a.hostsListCmd(), a.hostsCheckCmd(), a.instancesCmd())
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

func (a *app) hostsCheckCmd() *cobra.Command {
	var o options
	var file string
	cmd := &cobra.Command{
		Use:   "check [flags] [HOST...]",
		Short: "Connect to the hosts and say what is wrong with them",
		Long: `Connect to the hosts, all at once, and say of each in a line what it has, or what is
wrong with it and how to correct it. Nothing is left there but the copy of the program
that the next run needs.

Exit code 0 when all are usable, 1 when one is not.`,
		ValidArgsFunction: completeMany(completeHosts),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runHostsCheck(&o, file, args)
		},
	}
	hostsFlag(cmd.Flags(), &file)
	sshFlags(cmd.Flags(), &o.SSHConfig, &o.AcceptNew)
	return cmd
}

func (a *app) runHostsCheck(o *options, file string, names []string) error {
	inv, err := a.loadInventory(file)
	if err != nil {
		return err
	}
	list, err := chosenHosts(inv, names)
	if err != nil {
		return err
	}
	connector, err := a.connector(o, list, func(string, string) {})
	if err != nil {
		return err
	}
	cwd, err := workDir("")
	if err != nil {
		return err
	}
	dir, nonce := check.MakeProbe(cwd)
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), check.Timeout)
	defer cancel()
	interrupted := make(chan os.Signal, 1)
	go firstSignal(a.listen(), interrupted, func() {
		os.RemoveAll(dir)
		os.Exit(exit.Cancelled)
	})
	width := 0
	for _, h := range list {
		width = min(max(width, len(h.Name)), 30)
	}
	found := check.Hosts(ctx, connector, list, cwd, dir, nonce)
	out := console.New(a.stdout)
	n, bad, shared, own := 0, 0, false, false
	for {
		if len(list)-n > 1 {
			a.con.Status(fmt.Sprintf("%d of %d hosts have answered", n, len(list)))
		}
		var c *check.Result
		select {
		case c = <-found:
		case sig := <-interrupted:
			return exit.WithCode(exit.Cancelled, fmt.Errorf("%s: the check was not finished", run.SignalName(sig)))
		}
		a.con.Status("")
		switch {
		case c == nil:
			if bad > 0 {
				a.code = exit.Failed
			}
			return nil
		case !c.Usable():
			bad++
		case c.Hello.Shared:
			shared = true
		default:
			own = true
		}
		out.Line(checkLines(out, c, width)...)
		if n++; n < len(list) {
			continue
		}
		if shared {
			out.Line("shared directory: the host sees this directory, and outputs are written here")
		}
		if own {
			out.Line("own directory: outputs stay on the host, below its work_dir, and are read through the link")
		}
		if n > 1 {
			out.Line(fmt.Sprintf("%d of %s usable", n-bad, jobs.Plural(n, "host")))
		}
	}
}

// firstSignal passes the first signal on. If a second one comes before the first was
// received, the output hangs, and quit ends the program.
func firstSignal(signals <-chan os.Signal, first chan<- os.Signal, quit func()) {
	for sig := range signals {
		select {
		case first <- sig:
		default:
			quit()
			return
		}
	}
}

// checkLines describes the result of a check. The first line says whether the host can be used.
func checkLines(out *console.Console, c *check.Result, width int) []string {
	name := fmt.Sprintf("%-*s", width, console.CleanLine(c.Host.Name))
	var lines []string
	bad := func(problem, advice string) {
		lines = append(lines, out.Paint(console.Red, out.Glyph("✗", "x")+" "+name+"  BAD")+"  "+console.CleanLine(problem))
		if advice != "" {
			lines = append(lines, console.CleanLine(advice))
		}
	}
	switch h, b := c.Hello, c.Beat; {
	case c.Err != nil:
		advice := ""
		if e := (*hosts.Error)(nil); errors.As(c.Err, &e) {
			advice = e.Advice
		}
		bad(withoutName(c.Err, c.Host.Name), advice)
	case h.CwdError != "":
		bad(h.CwdError, "start dcs-tui in a directory that the host has too, or use --cwd")
	default:
		text := fmt.Sprintf("%s of %s, %.1f busy, load %.2f", jobs.Plural(h.Slots, "slot"), jobs.Plural(h.Cores, "core"), b.Busy, b.Load[0])
		if b.MemFree >= 0 {
			text += fmt.Sprintf(", memory %s of %s free", results.HumanBytes(b.MemFree), results.HumanBytes(h.MemBytes))
		}
		if b.DiskFree >= 0 {
			text += ", disk " + results.HumanBytes(b.DiskFree) + " free"
		}
		text += map[bool]string{true: ", shared directory", false: ", own directory"}[h.Shared]
		text += ", answered in " + results.HumanDuration(c.Connect)
		if h.GPUs > 0 {
			text += ", " + jobs.Plural(h.GPUs, "GPU")
		}
		rows := out.Fill(text, width+9)
		rows[0] = out.Paint(console.Green, out.Glyph("✓", "+")+" "+name+"  up ") + "  " + rows[0]
		lines = rows
	}
	if c.Err == nil {
		for _, w := range c.Hello.Warnings {
			lines = append(lines, console.CleanLine(w))
		}
	}
	for i := range lines[1:] {
		lines[i+1] = strings.Repeat(" ", width+9) + lines[i+1]
	}
	return lines
}

// withoutName returns the text of an error without the host's name and the advice, which
// are printed in their own places.
func withoutName(err error, name string) string {
	var e *hosts.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), name+": ")
}
