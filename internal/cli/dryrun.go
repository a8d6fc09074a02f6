package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/term"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// controls reports whether a rune may control a terminal, to which the output of a dry run may
// still be passed on.
func controls(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }

// maxWhole is the length of a command, in bytes, up to which a dry run prints it whole.
const maxWhole = 64 << 10

// dryRun prints which job would run where, as far as the files tell. It starts nothing.
func (a *app) dryRun(f *runFlags, specs []*jobs.Spec, inv *loadedInventory, cwd string) error {
	w := bufio.NewWriter(a.stdout)
	where := "this machine (no inventory)"
	if inv.File != "" {
		where = console.CleanLine(inv.File)
	}
	fmt.Fprintf(w, "%s on %s of %s, in %s\n", jobs.Plural(len(specs), "job"), jobs.Plural(len(inv.Hosts), "host"), where, console.CleanLine(cwd))
	for _, h := range inv.Hosts {
		fmt.Fprintf(w, "  %s  %s\n", console.CleanLine(h.Name), console.CleanLine(h.Limits()))
	}
	var impossible []*jobs.Spec
	tokens := map[string]int{}
	for _, t := range inv.TokensWith(f.Tokens) {
		tokens[t.Name] = t.Count
	}
	unknown, onTerminal := false, term.IsTerminal(int(a.stdout.Fd()))
	for _, s := range specs {
		command := s.Command // as it is executed, for a file or a program
		if onTerminal || len(command) > maxWhole || strings.ContainsFunc(command, controls) {
			command = jobs.Clean(command, 200)
		}
		text := fmt.Sprintf("%d  %s", s.ID, command)
		if opts := optionsText(f, s); opts != "" {
			text += "  [" + opts + "]"
		}
		fit := slices.DeleteFunc(slices.Clone(inv.Hosts), func(h *hosts.Host) bool { return !mayFit(s, h) })
		unknown = unknown || slices.ContainsFunc(fit, func(h *hosts.Host) bool {
			return s.MemBytes > 0 || s.GPUs > 0 && h.GPUNumbers(nil) == nil || s.SlotCount() > 1 && h.Slots.Fixed == 0
		})
		if slices.ContainsFunc(s.Tokens, func(t jobs.Token) bool { return t.Count > tokens[t.Name] }) {
			fit = nil
		}
		switch {
		case len(fit) == 0:
			text += "  no host can run it"
			impossible = append(impossible, s)
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
	if len(impossible) > 0 {
		first := impossible[0]
		return exit.Usagef("%s can run on no host of %s; the first is job %d (%s:%d), which needs %s", jobs.Plural(len(impossible), "job"), where,
			first.ID, first.File, first.Line, needsText(first)).WithAdvice("dcs-tui hosts list shows what the hosts have")
	}
	return nil
}

// mayFit reports whether a host has what a job needs, as far as the inventory tells.
// Memory, GPUs, and cores may be known only after connecting.
func mayFit(s *jobs.Spec, h *hosts.Host) bool {
	slots, gpus := h.KeptFrom(s.Queue)
	return h.IsOpenTo(s.Queue) && h.Has(s.Tags) && (h.GPUNumbers(nil) == nil || len(h.GPUNumbers(nil))-gpus >= s.GPUs.Devices()) && (h.Slots.Fixed == 0 || h.Slots.Fixed-slots >= s.SlotCount())
}

// needsText describes what a job needs of a host.
func needsText(s *jobs.Spec) string {
	var parts []string
	if len(s.Tags) > 0 {
		parts = append(parts, "tags "+console.CleanLine(strings.Join(s.Tags, ",")))
	}
	if s.GPUs > 0 {
		parts = append(parts, s.GPUs.Text())
	}
	if s.SlotCount() > 1 {
		parts = append(parts, jobs.Plural(s.Slots, "slot"))
	}
	if s.MemBytes > 0 {
		parts = append(parts, results.HumanBytes(s.MemBytes))
	}
	if len(s.Tokens) > 0 {
		parts = append(parts, "tokens "+console.CleanLine(s.TokenText()))
	}
	if parts == nil {
		return "a host that is not kept for other queues"
	}
	return strings.Join(parts, ", ")
}

// optionsText returns the options of a job as a jobs file has them.
func optionsText(f *runFlags, s *jobs.Spec) string {
	own, o := *s, *s.Options
	own.Options, o.Timeout = &o, cmp.Or(o.Timeout, f.Timeout)
	var parts []string
	for _, o := range own.OptionTexts() {
		parts = append(parts, o.Key+"="+console.ShellWord(jobs.Clean(o.Value, 40)))
	}
	return strings.Join(parts, " ")
}
