package cli

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// dryRun says what would run where, as far as the files tell; nothing is started
// and nothing is made.
func (a *app) dryRun(f *runFlags, specs []*jobs.Spec, inv *loadedInventory, cwd string) error {
	w := bufio.NewWriter(a.stdout)
	where := "this machine (no inventory)"
	if inv.File != "" {
		where = console.CleanLine(inv.File)
	}
	fmt.Fprintf(w, "%s on %s of %s, in %s\n", jobs.Plural(len(specs), "job"), jobs.Plural(len(inv.Hosts), "host"), where, console.CleanLine(cwd))
	for _, h := range inv.Hosts {
		fmt.Fprintf(w, "  %s  %s\n", console.CleanLine(h.Name), hostText(h))
	}
	impossible, unknown := 0, false
	var first *jobs.Spec
	for _, s := range specs {
		text := fmt.Sprintf("%d  %s", s.ID, jobs.Clean(s.Command, 200))
		if opts := optionsText(f, s); opts != "" {
			text += "  [" + opts + "]"
		}
		fit := fitting(s, inv.Hosts)
		unknown = unknown || unsure(s, fit)
		switch {
		case len(fit) == 0:
			text += "  no host can run it"
			if impossible++; first == nil {
				first = s
			}
		case len(fit) < len(inv.Hosts):
			text += "  on " + hostNames(fit)
		}
		fmt.Fprintln(w, text)
	}
	if unknown {
		fmt.Fprintln(w, "Memory, GPUs and cores that the inventory does not give are only known after connecting: a host named here may still lack them.")
	}
	if err := w.Flush(); err != nil {
		return exit.Usagef("%w", err)
	}
	if impossible > 0 {
		return exit.Usagef("%s can run on no host of %s; the first is job %d (%s:%d), which needs %s", jobs.Plural(impossible, "job"), where,
			first.ID, first.File, first.Line, needsText(first)).WithAdvice("dcs-tui hosts list shows what the hosts have")
	}
	return nil
}

// unsure says that what a job needs of these hosts is known only once they answer.
func unsure(s *jobs.Spec, hs []*hosts.Host) bool {
	for _, h := range hs {
		if s.MemBytes > 0 || s.GPUs > 0 && h.GPUs < 0 || s.SlotCount() > 1 && h.Slots.Fixed == 0 {
			return true
		}
	}
	return false
}

// fitting returns the hosts that have what a job needs, as far as the inventory
// knows: memory, GPUs and cores are known only once a host answers.
func fitting(s *jobs.Spec, hs []*hosts.Host) []*hosts.Host {
	var fit []*hosts.Host
	for _, h := range hs {
		if h.Has(s.Tags) && (h.GPUs < 0 || h.GPUs >= s.GPUs) && (h.Slots.Fixed == 0 || h.Slots.Fixed >= s.SlotCount()) {
			fit = append(fit, h)
		}
	}
	return fit
}

// hostNames returns the names of some of the hosts.
func hostNames(hs []*hosts.Host) string {
	var names []string
	for _, h := range hs {
		names = append(names, console.CleanLine(h.Name))
	}
	return someNames(names, maxNamedHosts)
}

// needsText is what a job asks of a host.
func needsText(s *jobs.Spec) string {
	var parts []string
	if len(s.Tags) > 0 {
		parts = append(parts, "tags "+console.CleanLine(strings.Join(s.Tags, ",")))
	}
	if s.GPUs > 0 {
		parts = append(parts, jobs.Plural(s.GPUs, "GPU"))
	}
	if s.SlotCount() > 1 {
		parts = append(parts, jobs.Plural(s.Slots, "slot"))
	}
	if s.MemBytes > 0 {
		parts = append(parts, results.HumanBytes(s.MemBytes))
	}
	return strings.Join(parts, ", ")
}

// optionsText is what is particular to a job, in the words of the jobs file.
func optionsText(f *runFlags, s *jobs.Spec) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+"="+console.ShellWord(jobs.Clean(value, 40)))
		}
	}
	number := func(name string, n int) {
		if n != 0 {
			add(name, strconv.Itoa(n))
		}
	}
	add("name", s.Name)
	add("queue", s.Queue)
	number("priority", s.Priority)
	number("tries", s.Tries)
	if s.RetryDelay != nil {
		add("retry_delay", s.RetryDelay.String())
	}
	if s.Timeout > 0 {
		add("timeout", s.Timeout.String())
	} else if f.Timeout > 0 {
		add("timeout", f.Timeout.String())
	}
	if !s.Deadline.IsZero() {
		add("deadline", s.Deadline.Local().Format("2006-01-02T15:04"))
	}
	if s.Estimate > 0 {
		add("est", s.Estimate.String())
	}
	add("tags", strings.Join(s.Tags, ","))
	number("gpus", s.GPUs)
	if s.MemBytes > 0 {
		add("mem", strings.ReplaceAll(results.HumanBytes(s.MemBytes), " ", ""))
	}
	number("slots", s.Slots)
	if len(s.After) > 0 {
		ids := slices.Clone(s.After)
		add("after", strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]"))
	}
	for _, e := range s.Env {
		add("env."+e.Name, e.Value)
	}
	add("cwd", s.Cwd)
	add("setup", s.Setup)
	switch s.OnLost {
	case jobs.OnLostRequeue:
		add("on_lost", "requeue")
	case jobs.OnLostWait:
		add("on_lost", "wait")
	}
	add("hardness", strings.Join(s.Hardness, ","))
	return strings.Join(parts, " ")
}
