package cli

import (
	"context"
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
	"dcs-tui/jobs/rundir"
)

func (a *app) instancesCmd() *cobra.Command {
	var file string
	var end, yes bool
	cmd := &cobra.Command{
		Use:   "instances [flags] [RUN...]",
		Short: "List the instances of providers, and terminate dangling ones",
		Long: `List the instances of the providers in the inventory, and the run in ./dcs-runs, or of RUNs, that each
belongs to. An instance is dangling if the dispatcher of its run is gone; to keep its jobs and outputs,
resume the run instead of terminating the instance. See dcs-tui help providers.`,
		Example: `dcs-tui hosts instances
dcs-tui hosts instances --terminate`,
		RunE: func(_ *cobra.Command, args []string) error { return a.runInstances(file, args, end, yes) },
	}
	addHostsFlag(cmd.Flags(), &file)
	cmd.Flags().BoolVar(&end, "terminate", false, "terminate dangling instances; asks if attempts may run there")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// allInstances is the prefix of the names of the instances of all runs.
const allInstances = "dcs"

func (a *app) runInstances(file string, refs []string, end, yes bool) error {
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
	list := a.listInstances(ctx, inv.Providers, runs)
	if end {
		if err := a.confirmTermination(list, yes); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, in := range list {
		text := in.text
		if end && in.dangling {
			if err := in.provider.TerminateInstance(ctx, in.prefix, in.Name); err != nil {
				a.warn("%v", err)
				a.exitCode = exitFailed
			} else {
				text = "terminated"
			}
		} else if in.Pending != "" {
			text += "; pending: " + in.Pending
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", in.Name, in.provider.Name, text)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(list) == 0 && a.exitCode == exitOK {
		a.con.Line("there are no instances")
	}
	return nil
}

// listedInstance is an instance that exists, with what is known about its run.
type listedInstance struct {
	hosts.Instance
	provider *hosts.Provider
	prefix   string // of the names of the instances of its run
	ref      string // reference of its run; "": not known
	text     string // its status
	dangling bool
	running  int // number of attempts that may run there
}

// listInstances returns the instances of the providers. It warns about those that cannot be listed.
func (a *app) listInstances(ctx context.Context, providers []*hosts.Provider,
	runs map[string]*rundir.Run) (found []listedInstance) {
	for _, p := range providers {
		list, err := p.Instances(ctx, allInstances)
		if err != nil {
			a.warn("%v", err)
			a.exitCode = exitFailed
			continue
		}
		for _, i := range list {
			prefix, _, _ := strings.Cut(strings.TrimPrefix(i.Name, allInstances+"-"), "-")
			in := listedInstance{Instance: i, provider: p, prefix: hosts.InstancePrefix(prefix)}
			if _, ok := hosts.InstanceNumber(in.prefix, i.Name); !ok {
				continue
			}
			run := runs[in.prefix]
			if run != nil {
				in.ref = refTo(run)
			}
			in.text, in.dangling, in.running = instanceText(run, i.Name)
			found = append(found, in)
		}
	}
	return found
}

// confirmTermination asks for confirmation, once for all instances, if attempts may run on dangling
// instances.
func (a *app) confirmTermination(list []listedInstance, yes bool) error {
	var busy []string
	n := 0
	for i := range list {
		in := &list[i]
		if in.dangling {
			n++
		}
		if in.dangling && in.running > 0 {
			busy = append(busy, fmt.Sprintf("%s of %s on %s", text.Plural(in.running, "attempt"), in.ref, in.Name))
		}
	}
	if busy == nil {
		return nil
	}
	question := fmt.Sprintf("terminate %s, although attempts may run there: %s", text.Plural(n, "instance"),
		strings.Join(busy, ", "))
	return a.confirm(yes, "hosts instances --terminate", question)
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

// instanceText describes the status of an instance. It reports whether it is dangling, and how many
// attempts may run there.
func instanceText(run *rundir.Run, name string) (msg string, dangling bool, running int) {
	if run == nil {
		return "of a run that is not in ./" + rundir.Base + ": name its directory", false, 0
	}
	owner, err := journal.ReadOwner(run)
	ref := refTo(run)
	switch {
	case err != nil:
		return fmt.Sprintf("of %s: %s", ref, text.Line(err.Error())), false, 0
	case owner.Liveness() == journal.Alive:
		return fmt.Sprintf("of %s, in use by %s", ref, text.Line(owner.String())), false, 0
	case owner.Liveness() != journal.Dead:
		return fmt.Sprintf("of %s, whose dispatcher on %s may be alive: ask there", ref, text.Line(owner.Host)), false,
			0
	}
	msg = "dangling: the dispatcher of " + ref + " is gone"
	table, err := replayTable(run)
	if err != nil {
		return msg, true, 0
	}
	for j := range table.Rows() {
		for _, at := range j.Open() {
			if hosts.InstanceOf(at.Host) == name {
				running++
			}
		}
	}
	if running > 0 {
		msg += fmt.Sprintf("; %s may run there: dcs-tui resume %s keeps them", text.Plural(running, "attempt"), ref)
	}
	return msg, true, running
}

// instanceCount counts the instances that a run has had from a provider.
type instanceCount struct {
	Provider string  `json:"provider"`
	Number   int     `json:"number"`
	Left     int     `json:"left"` // number of instances that may still exist
	Seconds  float64 `json:"seconds"`
}

// countInstances counts the instances that a run has had, by provider.
func countInstances(table *jobs.Table) (list []*instanceCount) {
	of := map[string]*instanceCount{}
	for _, in := range table.Instances {
		c := of[in.Provider]
		if c == nil {
			c = &instanceCount{Provider: in.Provider}
			of[in.Provider] = c
		}
		c.Number++
		c.Seconds += in.Age(jobs.StampOf(time.Now())).Seconds()
		if in.State != jobs.InstanceGone {
			c.Left++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, of[name])
	}
	return list
}

// instanceLines describes the number, the run time, and the price of the instances that a run has
// had.
func instanceLines(table *jobs.Table, providers []*hosts.Provider) []string {
	var lines []string
	left := 0
	for _, c := range countInstances(table) {
		left += c.Left
		lasted := time.Duration(c.Seconds * float64(time.Second))
		text := fmt.Sprintf("%s of provider %s, %s in all", text.Plural(c.Number, "instance"), text.Line(c.Provider),
			text.Duration(lasted))
		for _, p := range providers {
			if p.Name == c.Provider && p.Price > 0 {
				text += fmt.Sprintf(", price %.2f", p.Price*lasted.Hours())
			}
		}
		lines = append(lines, text)
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("%s may still exist: dcs-tui hosts instances shows them",
			text.Plural(left, "instance")))
	}
	return lines
}
