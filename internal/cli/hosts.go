package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/rundir"
)

func (a *app) hostsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hosts",
		Short: "List and check hosts, and change the hosts of a run",
		Long: `List and check the hosts of the inventory, or change the hosts of a run: add and remove hosts, drain
them, and set their slots.`,
		Example: `dcs-tui hosts init 'ws[01-30]'
dcs-tui hosts check
dcs-tui hosts drain sweep-20260314-1502 ws03`,
		Args: cobra.ArbitraryArgs,
		RunE: needsCommand,
	}
	cmd.AddCommand(a.hostsListCmd(), a.hostsCheckCmd(), a.hostsInitCmd(), a.instancesCmd())
	cmd.AddCommand(a.requestCmds(true)...)
	return cmd
}

func (a *app) hostsListCmd() *cobra.Command {
	var o options
	var file string
	var now bool
	cmd := &cobra.Command{
		Use:   "list [flags] [HOST...]",
		Short: "List the hosts of the inventory",
		Long: `List the hosts of the inventory and what dcs-tui may use of them. With --now, connect to each host and
print its load, and which runs and users have slots there.`,
		Example: `dcs-tui hosts list
dcs-tui hosts list --now ws01 ws02`,
		ValidArgsFunction: completeMany(completeHosts),
		RunE: func(cmd *cobra.Command, args []string) error {
			inv, err := a.loadInventory(file)
			if err != nil {
				return err
			}
			list, err := namedHosts(inv, args)
			if err != nil {
				return err
			}
			if now {
				return a.listLoad(&o, list)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			for _, h := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", text.Line(h.Name), text.Line(h.Route()), text.Line(h.Limits()))
			}
			if err := w.Flush(); err != nil || len(args) > 0 {
				return err
			}
			for _, p := range inv.Providers {
				what := text.Plural(p.Max, "instance")
				if s := p.Slurm; s != nil {
					what = fmt.Sprintf("%s of Slurm, %s for %s", text.Plural(p.Max, "allocation"),
						text.Plural(s.Nodes, "node"), text.Duration(s.Time))
				}
				what += text.If(p.Min > 0, fmt.Sprintf(", at least %d", p.Min))
				what += text.If(p.Rule != hosts.ByWork, ", by the rule "+p.Rule.String())
				fmt.Fprintf(a.stdout, "provider %s: at most %s, each as %s, %s; "+
					"startup about %s, terminated after %s without work\n", p.Name,
					what, text.Line(p.Host.Route()), text.Line(p.Host.Limits()), text.Duration(p.Startup),
					text.Duration(p.Idle))
			}
			return nil
		},
	}
	addHostsFlag(cmd.Flags(), &file)
	addSSHFlags(cmd.Flags(), &o.SSHConfig, &o.AcceptNew)
	cmd.Flags().BoolVar(&now, "now", false, "connect to the hosts, and print their load and users")
	return cmd
}

// listLoad prints the load and the users of each host, in the order of the list.
func (a *app) listLoad(o *options, list []*hosts.Host) error {
	found := map[*hosts.Host]*hosts.CheckResult{}
	err := a.checkHosts(o, list, "", func(result *hosts.CheckResult) error {
		found[result.Host] = result
		return nil
	})
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, h := range list {
		switch result := found[h]; {
		case result == nil: // interrupted
		case result.Hello == nil || result.Heartbeat == nil:
			problem, _ := problemOf(result)
			fmt.Fprintf(w, "%s\t-\t-\t%s\n", text.Line(h.Name), text.Line(problem))
			a.exitCode = exitFailed
		default:
			use := cmp.Or(result.Hello.Sharing.Text(), "no runs")
			if why := whyHeldNow(result); why != "" {
				use += "; starts nothing now: " + why
			}
			fmt.Fprintf(w, "%s\t%.1f of %s busy\tload %.2f\t%s\n", text.Line(h.Name), result.Heartbeat.Busy,
				text.Plural(result.Hello.Cores, "core"),
				result.Heartbeat.Load[0], text.Line(use))
		}
	}
	return errors.Join(w.Flush(), err)
}

// namedHosts returns the named hosts of an inventory or, without names, all of them.
func namedHosts(inv *hosts.Inventory, names []string) (list []*hosts.Host, err error) {
	if len(names) == 0 {
		return inv.Hosts, nil
	}
	for _, name := range names {
		h := inv.Find(name)
		if h == nil {
			err := text.Errorf("there is no host %q in the inventory %s", text.Shorten(name), inv.File)
			if _, isRun := rundir.Find(rundir.Base, name); isRun == nil {
				return nil, err.WithAdvice("it is a run: dcs-tui status %s shows its hosts", text.ShellWord(name))
			}
			return nil, err.WithAdvice("dcs-tui hosts list shows them")
		}
		list = append(list, h)
	}
	return list, nil
}

func hostNames(hs []*hosts.Host) string {
	return text.List(text.Each(hs, func(h *hosts.Host) string { return text.Line(h.Name) }), maxNamedHosts)
}

// reachableHosts returns the hosts of an inventory and, for each provider, an instance that
// represents all of its instances where only the way to reach a host matters.
func reachableHosts(inv *hosts.Inventory) []*hosts.Host {
	list := slices.Clone(inv.Hosts)
	for _, p := range inv.Providers {
		if h, err := p.Instance(p.Name, "", 0); err == nil {
			list = append(list, h)
		}
	}
	return list
}

// loadInventory reads the inventory of the flag or, if that is "", the one that hosts.FindInventory
// finds. If there is none, it returns this machine, if jobs can run here.
func (a *app) loadInventory(flag string) (*hosts.Inventory, error) {
	file, err := hosts.FindInventory(flag)
	if err != nil {
		return nil, err
	}
	if file == "" {
		return hosts.Local(), hosts.CheckLocal()
	}
	inv, warnings, err := hosts.Load(file)
	if err != nil {
		return nil, err
	}
	a.warnAll(warnings)
	return inv, nil
}

// selectInventory returns the hosts of --host or the inventory of loadInventory. In a resume,
// --hosts replaces the --host of the run.
func (a *app) selectInventory(flags *runFlags) (*hosts.Inventory, error) {
	if flags.HostList == "" || flags.hosts != "" {
		inv, err := a.loadInventory(flags.hosts)
		isHosts := !strings.Contains(flags.hosts, "/") && fileAmongHosts([]string{flags.hosts}) == ""
		if flags.hosts != "" && isHosts && errors.Is(err, fs.ErrNotExist) {
			return nil, text.Errorf("%w", err).WithAdvice("did you mean --host %s?", text.ShellWord(flags.hosts))
		}
		return inv, err
	}
	names := strings.Split(flags.HostList, ",")
	if file := fileAmongHosts(names); file != "" {
		return nil, text.Errorf("--host: %s is the name of a file, not of a host",
			text.Shorten(file)).WithAdvice("did you mean --hosts %s?", text.ShellWord(file))
	}
	inv, warnings, err := hosts.ParseLoginList(names, "--host")
	if err != nil {
		return nil, err
	}
	a.warnAll(warnings)
	return inv, nil
}

// fileAmongHosts returns the first of these hosts that is named like a file, or "".
func fileAmongHosts(names []string) string {
	i := slices.IndexFunc(names, func(name string) bool {
		return slices.Contains([]string{".toml", ".txt"}, strings.ToLower(filepath.Ext(name)))
	})
	if i < 0 {
		return ""
	}
	return names[i]
}

// inventoryOf returns the inventory of a file or, if that is "", the one that the run has stored,
// which includes hosts that its inventory file no longer has.
func (a *app) inventoryOf(run *rundir.Run, file string) (*hosts.Inventory, error) {
	if file != "" {
		return a.loadInventory(file)
	}
	return a.storedInventory(run)
}

// storedInventory returns the inventory with which the run was started or last resumed.
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
