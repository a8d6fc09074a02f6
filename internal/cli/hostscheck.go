package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

func (a *app) hostsCheckCmd() *cobra.Command {
	var flags runFlags
	var cwd string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [flags] [HOST...]",
		Short: "Connect to the hosts and report their problems",
		Long: `Connect to all hosts at once. For each usable host, print its slots, load, memory, and disk space; for
each other host, print what is wrong and how to correct it. The exit code is 0 if all hosts are usable,
else 1.`,
		Example: `dcs-tui hosts check --hosts lab.toml ws01 ws02
dcs-tui hosts check --host ada@ws01,ws02:2222`,
		ValidArgsFunction: completeMany(completeHosts),
		RunE: func(cmd *cobra.Command, args []string) error {
			inv, err := a.selectInventory(&flags)
			if err != nil {
				return err
			}
			list, err := namedHosts(inv, args)
			if err != nil {
				return err
			}
			return a.runHostsCheck(&flags.options, list, cwd, asJSON)
		},
	}
	addHostsFlag(cmd.Flags(), &flags.hosts)
	cmd.Flags().StringVar(&flags.HostList, "host", "",
		"check `HOST,...` instead of an inventory; each is [SLOTS/][USER@]HOST[:PORT], or : for this machine")
	addSSHFlags(cmd.Flags(), &flags.SSHConfig, &flags.AcceptNew)
	cmd.MarkFlagsMutuallyExclusive("hosts", "host")
	cmd.Flags().StringVar(&cwd, "cwd", "", "`DIRECTORY` in which jobs will run (default: this one)")
	endGroup(cmd.Flags(), titleHosts)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per host")
	endGroup(cmd.Flags(), titleOutput)
	return cmd
}

// checkHosts checks all hosts at once and calls each with every result as it arrives. cwd is the
// directory of the jobs; "" means the current one, in which runs keep their directories.
func (a *app) checkHosts(o *options, list []*hosts.Host, cwd string, each func(*hosts.CheckResult) error) error {
	connector, err := a.connector(o, list, func(string, string) {})
	if err != nil {
		return err
	}
	here, err := workDir("")
	if err != nil {
		return err
	}
	if cwd, err = workDir(cwd); err != nil {
		return err
	}
	dir, nonce := hosts.MakeCheckDir(here)
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), hosts.CheckTimeout)
	defer cancel()
	interrupted, stop := cancelOnSignal(context.Background(), a.catchSignals(), func() {
		os.RemoveAll(dir)
		os.Exit(exitCanceled)
	})
	defer stop()
	found := hosts.Check(ctx, connector, list, cwd, dir, nonce)
	waiting := slices.Clone(list)
	for n := 0; ; n++ {
		if len(waiting) > 1 || n > 0 && len(waiting) > 0 {
			a.con.Status(fmt.Sprintf("%d of %d hosts have answered, waiting for %s", n, len(list), hostNames(waiting)))
		}
		select {
		case result, ok := <-found:
			a.con.Status("")
			if !ok {
				return nil
			}
			waiting = slices.DeleteFunc(waiting, func(h *hosts.Host) bool { return h == result.Host })
			if err := each(result); err != nil {
				return err
			}
		case <-interrupted.Done():
			a.con.Status("")
			return withCode(exitCanceled, fmt.Errorf("%w: the check was not finished", context.Cause(interrupted)))
		}
	}
}

func (a *app) runHostsCheck(o *options, list []*hosts.Host, cwd string, asJSON bool) error {
	width := 0
	for _, h := range list {
		width = min(max(width, len(h.Name)), 30)
	}
	out := newConsole(a.stdout)
	var bad []runview.HostText
	n, shared, own, missing := 0, false, false, false
	fingerprints := map[string]string{}
	printBad := func() {
		for _, g := range runview.GroupHosts(bad) {
			if !asJSON {
				out.Line(badLines(out, &g, width, fingerprints)...)
			}
		}
	}
	err := a.checkHosts(o, list, cwd, func(result *hosts.CheckResult) error {
		n++
		switch {
		case !result.Usable():
			problem, advice := problemOf(result)
			bad = append(bad, runview.HostText{Host: result.Host.Name, Text: problem + "\n" + advice})
			fingerprints[result.Host.Name] = fingerprintOf(result)
		case result.Hello.CwdError != "":
			missing = true
		case result.Hello.Shared:
			shared = true
		default:
			own = true
		}
		switch {
		case asJSON:
			return a.printJSON(checkJSONOf(result))
		case result.Usable():
			out.Line(usableLines(out, result, width)...)
		}
		if n < len(list) {
			return nil
		}
		printBad() // before the hosts are clean
		if shared {
			out.Line("shared directory: the host sees this directory, and outputs are written here")
		}
		if own {
			out.Line("own directory: the host does not see this directory, " +
				"so give run --send and --return with the files of jobs; " +
				"outputs stay on the host, below its work_dir, and are read through the link")
		}
		if missing {
			out.Line("no such directory: the host lacks the directory of the jobs, " +
				"so give run --send and --return with their files, or --cwd with a directory that every host has")
		}
		if n > 1 {
			out.Line(fmt.Sprintf("%d of %s usable", n-len(bad), text.Plural(n, "host")))
		}
		return nil
	})
	if err != nil && n < len(list) {
		printBad()
	}
	if len(bad) > 0 {
		a.exitCode = exitFailed
	}
	return err
}

// checkJSON is the output of hosts check --json for a host.
type checkJSON struct {
	V       int     `json:"v"`
	Host    string  `json:"host"`
	Usable  bool    `json:"usable"`
	Problem *string `json:"problem"` // null if usable
	Advice  *string `json:"advice"`
	*hostFacts
}

// hostFacts are part of checkJSON if the host has answered.
type hostFacts struct {
	Cores    int      `json:"cores"`
	Slots    int      `json:"slots"`
	GPUs     int      `json:"gpus"`
	Busy     *float64 `json:"busy_cores"`
	Load     *float64 `json:"load"`
	Memory   int64    `json:"memory_bytes"`
	MemFree  *int64   `json:"memory_free_bytes"`
	DiskFree *int64   `json:"disk_free_bytes"`
	Shared   bool     `json:"shared"`
	Users    string   `json:"users"`
	Held     string   `json:"held"` // see whyHeldNow
	Connect  float64  `json:"connect_seconds"`
	Limits   []string `json:"limits"` // what keeps the host below what the machine has
	Warnings []string `json:"warnings"`
}

func checkJSONOf(result *hosts.CheckResult) *checkJSON {
	j := &checkJSON{V: 1, Host: result.Host.Name, Usable: result.Usable()}
	if !j.Usable {
		problem, advice := problemOf(result)
		j.Problem = &problem
		if advice != "" {
			j.Advice = &advice
		}
	}
	h := result.Hello
	if h == nil {
		return j
	}
	j.hostFacts = &hostFacts{Cores: h.Cores, Slots: h.Slots, GPUs: h.GPUs, Memory: h.MemBytes, Shared: h.Shared,
		Users: h.Sharing.Text(), Held: whyHeldNow(result),
		Connect: result.Connect.Seconds(), Warnings: append([]string{}, h.Warnings...)}
	if h.CwdError != "" {
		j.Warnings = append(j.Warnings, "the directory of the jobs cannot be used there: "+text.Line(h.CwdError))
	}
	j.Limits = text.Each(h.Limits, hosts.CapacityLimit.String)
	if b := result.Heartbeat; b != nil {
		j.Busy, j.Load = &b.Busy, &b.Load[0]
		if b.MemFree >= 0 {
			j.MemFree = &b.MemFree
		}
		if b.DiskFree >= 0 {
			j.DiskFree = &b.DiskFree
		}
	}
	return j
}

// problemOf returns the problem of an unusable host without its name, and advice.
func problemOf(result *hosts.CheckResult) (problem, advice string) {
	e, isHost := errors.AsType[*hosts.Error](result.Err)
	switch {
	case !isHost || e.Err == nil:
		return text.WithoutSubject(result.Err.Error(), result.Host.Name), ""
	}
	return e.Err.Error(), e.Advice
}

// fingerprintOf returns the kind and the hash of the host key that the host has shown, if that is its
// problem, or "".
func fingerprintOf(result *hosts.CheckResult) string {
	if e, ok := errors.AsType[*hosts.Error](result.Err); ok {
		return e.Fingerprint
	}
	return ""
}

// badLines describes hosts with the same problem. The text of g is the problem and a line of
// advice. The text lacks what differs between several hosts, so their host keys, by name in
// fingerprints, follow, because a person must compare them.
func badLines(out *console, g *runview.HostGroup, width int, fingerprints map[string]string) []string {
	problem, advice, _ := strings.Cut(g.Text, "\n")
	name := fmt.Sprintf("%-*s", width, text.Line(g.Title()))
	lines := []string{out.Paint(red, out.Glyph("✗", "x")+" "+name+"  BAD") + "  " + text.Line(problem)}
	if advice != "" {
		lines = append(lines, strings.Repeat(" ", width+9)+text.Line(advice))
	}
	if len(g.Hosts) > 1 {
		for _, host := range g.Hosts {
			if key := fingerprints[host]; key != "" {
				lines = append(lines, strings.Repeat(" ", width+9)+text.Line(host+": "+key))
			}
		}
	}
	return lines
}

// whyHeldNow returns which of its quiet hours, its owner, and its limits keeps a host that has answered from
// starting jobs now; "": none does.
func whyHeldNow(result *hosts.CheckResult) string {
	h, b := result.Host, result.Heartbeat
	at := hosts.TimeOfDay(jobs.StampOf(time.Now()), result.Hello.ZoneSeconds)
	switch left := hosts.QuietLeft(h.Quiet, at); {
	case left > 0:
		return hosts.QuietText(at, left)
	case result.Hello.Owner.Who != "":
		return result.Hello.Owner.Who
	case b != nil:
		return h.LimitText(h.LimitReached(b, b.DiskFree), b, b.DiskFree)
	}
	return ""
}

func usableLines(out *console, result *hosts.CheckResult, width int) []string {
	h, b := result.Hello, result.Heartbeat
	name := fmt.Sprintf("%-*s", width, text.Line(result.Host.Name))
	msg := text.Plural(h.Slots, "slot")
	if rule := result.Host.Slots; rule.Fixed == 0 && rule.Less > 0 {
		msg += " (" + rule.String() + ")"
	}
	msg += fmt.Sprintf(" of %s, %.1f busy, load %.2f", text.Plural(h.Cores, "core"), b.Busy, b.Load[0])
	msg += text.If(b.MemFree >= 0, fmt.Sprintf(", memory %s of %s free", text.Size(b.MemFree), text.Size(h.MemBytes)))
	msg += text.If(b.DiskFree >= 0, ", disk "+text.Size(b.DiskFree)+" free")
	switch {
	case h.CwdError != "":
		msg += ", no such directory"
	case h.Shared:
		msg += ", shared directory"
	default:
		msg += ", own directory"
	}
	msg += ", answered in " + text.Duration(result.Connect) + text.If(h.GPUs > 0, ", "+text.Plural(h.GPUs, "GPU"))
	lines := []string{out.Paint(green, out.Glyph("✓", "+")+" "+name+"  up ") + "  " + msg}
	for _, l := range h.Limits {
		lines = append(lines, "limit: "+l.String())
	}
	if users := h.Sharing.Text(); users != "" {
		lines = append(lines, text.Line("in use: "+users))
	}
	if why := whyHeldNow(result); why != "" {
		lines = append(lines, "starts nothing now: "+text.Line(why))
	}
	lines = append(lines, text.Each(h.Warnings, text.Line)...)
	for i := range lines[1:] {
		lines[i+1] = strings.Repeat(" ", width+9) + lines[i+1]
	}
	return lines
}
