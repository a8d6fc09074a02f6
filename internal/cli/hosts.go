package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

func (a *app) hostsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "hosts",
		GroupID: groupHost,
		Short:   "List and check hosts, and change the hosts of a run",
		Long: `List and check the hosts of the inventory, or change the hosts of a run: add and remove hosts, drain them, and set
their slots.`,
		Example: `dcs-tui hosts init ws[01-30]
dcs-tui hosts check
dcs-tui hosts drain sweep-20260314-1502 ws03`,
		Args: cobra.ArbitraryArgs,
		RunE: needsCommand,
	}
	cmd.AddCommand(a.hostsListCmd(), a.hostsCheckCmd(), a.hostsInitCmd(), a.instancesCmd())
	for _, c := range hostRequestCommands {
		cmd.AddCommand(a.requestCmd(c))
	}
	return cmd
}

func (a *app) hostsListCmd() *cobra.Command {
	var o options
	var file string
	var now bool
	cmd := &cobra.Command{
		Use:   "list [flags] [HOST...]",
		Short: "List the hosts of the inventory",
		Long: `List the hosts of the inventory and what dcs-tui may use of them. With --now, connect to each host and print its
load, and which runs and users have slots there.`,
		Example: `dcs-tui hosts list
dcs-tui hosts list --now ws01 ws02`,
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
			if now {
				return a.listUse(&o, list)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			for _, h := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", text.Line(h.Name), text.Line(h.Way()), text.Line(h.Limits()))
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
					what, text.Line(p.Host.Way()), text.Line(p.Host.Limits()), results.HumanDuration(p.Startup), results.HumanDuration(p.Idle))
			}
			return nil
		},
	}
	hostsFlag(cmd.Flags(), &file)
	sshFlags(cmd.Flags(), &o.SSHConfig, &o.AcceptNew)
	cmd.Flags().BoolVar(&now, "now", false, "connect to the hosts, and print their load and users")
	return cmd
}

// listUse prints what is used of each host, and by whom, in the order of the list.
func (a *app) listUse(o *options, list []*hosts.Host) error {
	found := map[*hosts.Host]*hosts.CheckResult{}
	err := a.checkHosts(o, list, func(c *hosts.CheckResult) error {
		found[c.Host] = c
		return nil
	})
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, h := range list {
		switch c := found[h]; {
		case c == nil: // interrupted
		case c.Hello == nil || c.Beat == nil:
			problem, _ := problemOf(c)
			fmt.Fprintf(w, "%s\t-\t-\t%s\n", text.Line(h.Name), text.Line(problem))
			a.code = exitFailed
		default:
			use := cmp.Or(c.Hello.Sharing.Text(), "no runs")
			if who := c.Hello.Owner.Who; who != "" {
				use += "; starts nothing now: " + who
			}
			fmt.Fprintf(w, "%s\t%.1f of %s busy\tload %.2f\t%s\n", text.Line(h.Name), c.Beat.Busy, jobs.Plural(c.Hello.Cores, "core"),
				c.Beat.Load[0], text.Line(use))
		}
	}
	return errors.Join(w.Flush(), err)
}

// chosenHosts returns the named hosts of the inventory, or all.
func chosenHosts(inv *hosts.Inventory, names []string) ([]*hosts.Host, error) {
	if len(names) == 0 {
		return inv.Hosts, nil
	}
	var list []*hosts.Host
	for _, name := range names {
		h := inv.Find(name)
		if h == nil {
			return nil, text.Errorf("there is no host %q in the inventory %s", text.Shorten(name), inv.File).
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
		names = append(names, text.Line(h.Name))
	}
	return someNames(names, maxNamedHosts)
}

// reached returns the hosts of an inventory, and for each provider an instance, which stands for all of them
// where it matters how hosts are reached.
func reached(inv *hosts.Inventory) []*hosts.Host {
	list := slices.Clone(inv.Hosts)
	for _, p := range inv.Providers {
		if h, err := p.Instance(p.Name, "", 0); err == nil {
			list = append(list, h)
		}
	}
	return list
}

// loadInventory reads the inventory that the flag names or, without it, the one that
// hosts.FindInventory finds. If there is none, it returns this machine.
func (a *app) loadInventory(flag string) (*hosts.Inventory, error) {
	file, err := hosts.FindInventory(flag)
	if err != nil {
		return nil, err
	}
	if file == "" {
		return hosts.Local(), nil
	}
	inv, warnings, err := hosts.Load(file)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		a.warn("%s", w)
	}
	return inv, nil
}

// selectInventory returns the hosts of --host, which yields to --hosts in a resume, or the
// inventory of loadInventory.
func (a *app) selectInventory(f *runFlags) (*hosts.Inventory, error) {
	if f.HostList == "" || f.hosts != "" {
		return a.loadInventory(f.hosts)
	}
	inv, warnings, err := hosts.ParseLogins([]byte(strings.ReplaceAll(f.HostList, ",", "\n")+"\n"), "--host")
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		a.warn("%s", w)
	}
	return inv, nil
}

// storedInventory returns the inventory of a run's start or of its last resume.
func (a *app) storedInventory(run *rundir.Run) (*hosts.Inventory, error) {
	content, file, err := run.Inventory()
	if err != nil {
		return nil, err
	}
	if content == "" {
		return hosts.Local(), nil
	}
	inv, _, err := hosts.Parse([]byte(content), file)
	if err != nil {
		return nil, text.Errorf("the inventory of the run: %w", err)
	}
	return inv, nil
}

// maxNamedHosts is the number of hosts that a message names.
const maxNamedHosts = 4

func (a *app) instancesCmd() *cobra.Command {
	var file string
	var end bool
	cmd := &cobra.Command{
		Use:   "instances [flags] [RUN...]",
		Short: "List the instances of providers, and terminate dangling ones",
		Long: `List the instances of the providers in the inventory, and the run in ./dcs-runs, or of RUNs, that each belongs to. An
instance is dangling if the dispatcher of its run is gone. To keep its jobs and outputs, resume the run instead of
terminating the instance. docs/providers.md explains more. The exit code is 1 if instances could not be listed or
terminated.`,
		Example: `dcs-tui hosts instances
dcs-tui hosts instances --terminate`,
		ValidArgsFunction: completeRuns,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runInstances(file, args, end)
		},
	}
	hostsFlag(cmd.Flags(), &file)
	cmd.Flags().BoolVar(&end, "terminate", false, "terminate dangling instances")
	return cmd
}

// allInstances is what the names of the instances of all runs begin with.
const allInstances = "dcs"

func (a *app) runInstances(file string, refs []string, end bool) error {
	inv, err := a.loadInventory(file)
	if err != nil {
		return err
	}
	if len(inv.Providers) == 0 {
		return text.Errorf("the inventory %s has no [[provider]]", inv.File)
	}
	runs, err := a.runsByPrefix(refs)
	if err != nil {
		return err
	}
	ctx := context.Background()
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	n := 0
	for _, p := range inv.Providers {
		list, err := p.Instances(ctx, allInstances)
		if err != nil {
			a.warn("%v", err)
			a.code = exitFailed
			continue
		}
		for _, in := range list {
			prefix, _, _ := strings.Cut(strings.TrimPrefix(in.Name, allInstances+"-"), "-")
			prefix = hosts.InstancePrefix(prefix)
			if _, ok := hosts.InstanceNumber(prefix, in.Name); !ok {
				continue
			}
			n++
			text, dangling := instanceText(runs[prefix], in.Name)
			if end && dangling {
				if err := p.TerminateInstance(ctx, prefix, in.Name); err != nil {
					a.warn("%v", err)
					a.code = exitFailed
				} else {
					text = "terminated"
				}
			} else if in.Pending != "" {
				text += "; pending: " + in.Pending
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", in.Name, p.Name, text)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n == 0 && a.code == exitOK {
		a.con.Line("there are no instances")
	}
	return nil
}

// runsByPrefix returns the named runs and those in ./dcs-runs, by the prefix of the names
// of their instances.
func (a *app) runsByPrefix(refs []string) (map[string]*rundir.Run, error) {
	runs := map[string]*rundir.Run{}
	entries, err := rundir.List(rundir.Base)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if run, err := rundir.Open(e.Dir); err == nil {
			runs[hosts.InstancePrefix(run.UID())] = run
		}
	}
	for _, ref := range refs {
		run, err := a.openRun([]string{ref})
		if err != nil {
			return nil, err
		}
		runs[hosts.InstancePrefix(run.UID())] = run
	}
	return runs, nil
}

// instanceText describes how an instance stands, and reports whether it is dangling.
func instanceText(run *rundir.Run, name string) (msg string, dangling bool) {
	if run == nil {
		return "of a run that is not in ./" + rundir.Base + ": name its directory", false
	}
	owner, err := journal.ReadOwner(run)
	ref := refTo(run)
	switch {
	case err != nil:
		return fmt.Sprintf("of %s: %s", ref, text.Line(err.Error())), false
	case owner.Life() == journal.Alive:
		return fmt.Sprintf("of %s, in use by %s", ref, text.Line(owner.String())), false
	case owner.Life() != journal.Dead:
		return fmt.Sprintf("of %s, whose dispatcher on %s may be alive: ask there", ref, text.Line(owner.Host)), false
	}
	msg = "dangling: the dispatcher of " + ref + " is gone"
	t, err := wholeTable(run)
	if err != nil {
		return msg, true
	}
	n := 0
	for i := range t.Jobs {
		for _, at := range t.Jobs[i].Open() {
			if at.Host == name {
				n++
			}
		}
	}
	if n > 0 {
		msg += fmt.Sprintf("; %s may run there: dcs-tui resume %s keeps them", jobs.Plural(n, "attempt"), ref)
	}
	return msg, true
}

// instancesOf are the instances that a run has had of a provider.
type instancesOf struct {
	Provider string  `json:"provider"`
	Number   int     `json:"number"`
	Left     int     `json:"left"` // of them, those that may still exist
	Seconds  float64 `json:"seconds"`
}

// countInstances counts the instances that a run has had, by provider.
func countInstances(t *jobs.Table) (list []*instancesOf) {
	of := map[string]*instancesOf{}
	for _, in := range t.Instances {
		c := of[in.Provider]
		if c == nil {
			c = &instancesOf{Provider: in.Provider}
			of[in.Provider] = c
		}
		c.Number++
		c.Seconds += in.Lasted(jobs.StampOf(time.Now())).Seconds()
		if in.State != jobs.InstanceGone {
			c.Left++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, of[name])
	}
	return list
}

// instanceLines describes how many instances a run has had, for how long, and at what price.
func instanceLines(t *jobs.Table, providers []*hosts.Provider) []string {
	var lines []string
	left := 0
	for _, c := range countInstances(t) {
		left += c.Left
		lasted := time.Duration(c.Seconds * float64(time.Second))
		text := fmt.Sprintf("%s of provider %s, %s in all", jobs.Plural(c.Number, "instance"), text.Line(c.Provider), results.HumanDuration(lasted))
		for _, p := range providers {
			if p.Name == c.Provider && p.Price > 0 {
				text += fmt.Sprintf(", price %.2f", p.Price*lasted.Hours())
			}
		}
		lines = append(lines, text)
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("%s may still exist: dcs-tui hosts instances shows them", jobs.Plural(left, "instance")))
	}
	return lines
}
