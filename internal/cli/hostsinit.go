package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dcs-tui/hosts"
	"dcs-tui/hosts/link"
	"dcs-tui/internal/text"
	"dcs-tui/observe/runview"
)

// initFlags holds the flags of hosts init.
type initFlags struct {
	options
	output string
	from   string
	check  bool
}

func (a *app) hostsInitCmd() *cobra.Command {
	var o initFlags
	cmd := &cobra.Command{
		Use:   "init [flags] [HOST...]",
		Short: "Check your ssh hosts and write an inventory of them",
		Long: `Connect to hosts, and write an inventory of them. Each HOST is [SLOTS/][USER@]HOST[:PORT], and may have a
range such as ws[01-30]; by default they are the Host entries without patterns of ~/.ssh/config. Unusable
hosts are written as comments with the reason. An existing file is never changed.`,
		Example: `dcs-tui hosts init 'ws[01-30]' 8/ada@big
dcs-tui hosts init --from machines.txt --check=false`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(_ *cobra.Command, args []string) error { return a.runHostsInit(&o, args) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.output, "output", "hosts.toml", "write `FILE`")
	fs.StringVar(&o.from, "from", "", "read the hosts, one per line, from `FILE`; - is standard input")
	fs.BoolVar(&o.check, "check", true, "connect to the hosts first; --check=false writes all of them without a check")
	addSSHFlags(fs, &o.SSHConfig, &o.AcceptNew)
	return cmd
}

type initHost struct {
	*hosts.Host
	body    string // its lines in the inventory, except the name
	problem string // why it is not usable, and a line of advice; "": it is usable
}

func (a *app) runHostsInit(o *initFlags, args []string) error {
	if _, err := os.Lstat(o.output); err == nil {
		return text.Errorf("%s exists already and is not changed",
			text.Line(o.output)).WithAdvice("remove it, or write another file with --output FILE")
	}
	list, err := a.initHosts(o, args)
	if err != nil {
		return err
	}
	answers := map[string]*hosts.CheckResult{}
	if o.check {
		var all []*hosts.Host
		for _, f := range list {
			if f.problem == "" {
				all = append(all, f.Host)
			}
		}
		err := a.checkHosts(&o.options, all, "", func(result *hosts.CheckResult) error {
			answers[result.Host.Name] = result
			return nil
		})
		if err != nil {
			return err
		}
	}
	usable, bad, fingerprints := 0, []runview.HostText(nil), map[string]string{}
	for _, f := range list {
		if f.problem == "" {
			f.setResult(answers[f.Name])
			if answer := answers[f.Name]; answer != nil {
				fingerprints[f.Name] = fingerprintOf(answer)
			}
		}
		if f.problem == "" {
			usable++
			continue
		}
		bad = append(bad, runview.HostText{Host: f.Name, Text: f.problem})
	}
	if usable > 0 { // otherwise the user corrects the cause and repeats the command
		if err := writeNew(o.output, inventoryOf(list, o.SSHConfig)); err != nil {
			return text.Errorf("the inventory: %w", err)
		}
	}
	out := newConsole(a.stdout)
	for _, g := range runview.GroupHosts(bad) {
		out.Line(badLines(out, &g, 0, fingerprints)...)
	}
	if usable == 0 {
		out.Line(fmt.Sprintf("%s is not written: no usable host", text.Line(o.output)))
		a.exitCode = exitFailed
		return nil
	}
	what := "usable"
	if !o.check {
		what = "written, not checked"
	}
	out.Line(fmt.Sprintf("%s: %d of %s %s", text.Line(o.output), usable, text.Plural(len(list), "host"), what))
	next := "run --hosts " + text.ShellWord(text.Line(o.output))
	a.con.Line(a.nextLine(next+" jobs.txt", "runs a file of jobs on them"))
	return nil
}

// initHosts returns the hosts to write: those of the arguments or of --from, or those of the ssh
// configuration.
func (a *app) initHosts(o *initFlags, args []string) ([]*initHost, error) {
	switch {
	case o.from != "" && len(args) > 0:
		return nil, text.Errorf("--from and arguments both name hosts: choose one")
	case o.from == "-":
		data, err := io.ReadAll(a.stdin)
		if err != nil {
			return nil, text.Errorf("standard input: %w", err)
		}
		return a.hostsOfLogins(hosts.ParseLogins(data, "standard input"))
	case o.from != "":
		data, err := os.ReadFile(o.from)
		if err != nil {
			return nil, text.Errorf("the list of hosts: %w", err)
		}
		return a.hostsOfLogins(hosts.ParseLogins(data, o.from))
	case len(args) == 0:
		return sshHosts(o.SSHConfig)
	case fileAmongHosts(args) != "":
		file := fileAmongHosts(args)
		return nil, text.Errorf("%s is the name of a file, not of a host",
			text.Shorten(file)).WithAdvice("did you mean --from %s?", text.ShellWord(file))
	}
	return a.hostsOfLogins(hosts.ParseLoginList(args, "the command line"))
}

// hostsOfLogins returns the hosts of a list that was parsed, and prints its warnings.
func (a *app) hostsOfLogins(inv *hosts.Inventory, warnings []string, err error) ([]*initHost, error) {
	if err != nil {
		return nil, err
	}
	a.warnAll(warnings)
	var list []*initHost
	for _, h := range inv.Hosts {
		f := &initHost{Host: h}
		key := func(name, value string) { f.body += name + " = " + value + "\n" }
		if h.Link == "local" {
			key("link", `"local"`)
		}
		if len(h.Addresses) == 1 && h.Addresses[0] != h.Name {
			key("address", strconv.Quote(h.Addresses[0]))
		}
		if h.User != "" {
			key("user", strconv.Quote(h.User))
		}
		if h.Port != 0 {
			key("port", strconv.Itoa(h.Port))
		}
		if h.Slots.Fixed > 0 {
			key("slots", strconv.Itoa(h.Slots.Fixed))
		}
		list = append(list, f)
	}
	return list, nil
}

// sshHosts returns the hosts of an ssh configuration. Of several names for one machine, only the
// first is usable, because with all of them the slots of the machine would count several times.
func sshHosts(file string) ([]*initHost, error) {
	names, err := link.SSHAliases(file)
	if errors.Is(err, fs.ErrNotExist) && file == "" {
		names, err = nil, nil
	}
	if err != nil {
		return nil, text.Errorf("ssh configuration: %w", err)
	}
	config, err := link.LoadSSHConfig(file)
	if err != nil {
		return nil, err
	}
	var list []*initHost
	first := map[string]string{}
	for _, name := range names {
		inv, _, err := hosts.ParseLoginList([]string{name}, "ssh configuration")
		if err != nil || len(inv.Hosts) != 1 || inv.Hosts[0].Name != name {
			continue // not a valid name in an inventory
		}
		list = append(list, &initHost{Host: inv.Hosts[0]})
		go config.Resolve(context.Background(), inv.Hosts[0], name) // config keeps the answer for some seconds
	}
	for _, f := range list {
		name := f.Host.Name
		t, _, err := config.Resolve(context.Background(), f.Host, name)
		if err != nil {
			f.problem = err.Error()
			continue
		}
		if other := first[t.Address()]; other != "" && len(t.Jumps) == 0 {
			f.problem = "the same machine as " + other
			continue
		}
		first[t.Address()] = name
	}
	if len(list) == 0 {
		return nil, text.Errorf("the ssh configuration names no hosts").
			WithAdvice("name them: dcs-tui hosts init ws01 ws02, or 'ws[01-30]'")
	}
	return list, nil
}

// setResult enters the result of the check of a host; nil: it was not checked.
func (f *initHost) setResult(result *hosts.CheckResult) {
	switch {
	case result == nil:
	case !result.Usable():
		problem, advice := problemOf(result)
		f.problem = strings.TrimSpace(problem + "\n" + advice)
	case f.Slots.Fixed == 0:
		f.body += "slots = " + strconv.Itoa(result.Hello.Slots) + "  # of " + text.Plural(result.Hello.Cores, "core") +
			"\n"
	}
}

// inventoryOf returns the inventory of the hosts, which the ssh configuration in the file sshConfig
// concerns ("": the usual files). Hosts with the same lines share an entry.
func inventoryOf(list []*initHost, sshConfig string) string {
	var b strings.Builder
	b.WriteString("# Written by dcs-tui hosts init. dcs-tui help hosts.toml shows all keys and what they mean.\n")
	if sshConfig != "" {
		b.WriteString("\n[defaults]\nssh_config = " + strconv.Quote(sshConfig) + "\n")
	}
	entry := func(names []string, body, prefix string) {
		for _, pattern := range hosts.Fold(names) {
			for line := range strings.Lines("[[host]]\nname = " + strconv.Quote(pattern) + "\n" + body) {
				b.WriteString(prefix + line)
			}
		}
	}
	var bodies []string
	good, bad := map[string][]string{}, map[string][]runview.HostText{}
	for _, f := range list {
		if !slices.Contains(bodies, f.body) {
			bodies = append(bodies, f.body)
		}
		if f.problem == "" {
			good[f.body] = append(good[f.body], f.Name)
		} else {
			bad[f.body] = append(bad[f.body], runview.HostText{Host: f.Name, Text: f.problem})
		}
	}
	for _, body := range bodies {
		if len(good[body]) > 0 {
			b.WriteString("\n")
			entry(good[body], body, "")
		}
	}
	for _, body := range bodies {
		for _, g := range runview.GroupHosts(bad[body]) {
			b.WriteString("\n")
			for line := range strings.Lines(g.Text) {
				b.WriteString("# " + text.Clean(strings.TrimSpace(line), 0) + "\n")
			}
			entry(g.Hosts, body, "#")
		}
	}
	return b.String()
}

// writeNew writes a file that must not exist.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}
