package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/helper/carried"
	"dcs-tui/hosts/link"
	"dcs-tui/internal/platform"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// connector returns a connector for all kinds of links. log receives the messages of
// helpers.
func (a *app) connector(o *options, hs []*hosts.Host, log func(host, line string)) (hosts.Connector, error) {
	if err := a.loadSSH(o, hs); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), warnDelay)
	defer cancel()
	a.warnSSH(ctx)
	a.warnDynamicBinary(hs)
	router := hosts.Router{"local": link.LocalOpener{}, "command": link.CommandOpener{}}
	if a.ssh != nil {
		router["ssh"] = a.sshOpener(o)
	}
	return helper.New(helper.Options{Opener: router, Log: log, Bases: a.helperBases, Programs: carried.Programs()}), nil
}

// sshSetup is the user's ssh configuration.
type sshSetup struct {
	config    *link.SSHConfig
	hosts     []*hosts.Host // hosts that are reached with ssh
	hasWarned bool          // warnSSH has warned

	mu     sync.Mutex
	warned map[string]bool // by host and text
}

// loadSSH reads the ssh configuration, and starts to resolve all hosts. Each of them takes a
// process, so it does not wait: the run is created meanwhile.
func (a *app) loadSSH(o *options, hs []*hosts.Host) error {
	hs = slices.DeleteFunc(slices.Clone(hs), func(h *hosts.Host) bool { return h.Link != "ssh" })
	if a.ssh != nil {
		return nil
	}
	config, err := link.LoadSSHConfig(o.SSHConfig)
	if err != nil && len(hs) > 0 { // otherwise only hosts that are added later may need it
		return err
	}
	if err == nil {
		a.ssh = &sshSetup{config: config, hosts: hs, warned: map[string]bool{}}
	}
	for _, h := range hs {
		for _, address := range h.Addresses {
			go config.Resolve(context.Background(), h, address) // config keeps the answer for some seconds
		}
	}
	return nil
}

// warnDelay bounds how long the start of a run waits for warnings about the ssh configuration. A
// `Match exec` for one host may take long; the warnings about that host follow when it is dialed.
const warnDelay = time.Second

// warnSSH warns once about directives of the ssh configuration that are not supported. An error in
// the part of one host affects only that host, when it is connected to. It waits for answers of ssh
// until ctx ends, and for each at most as long as the connection would.
func (a *app) warnSSH(ctx context.Context) {
	if a.ssh == nil || a.ssh.hasWarned {
		return
	}
	a.ssh.hasWarned = true
	// Hosts often have the same problem, so each text is printed once.
	var texts []string
	concerned := map[string][]*hosts.Host{}
	for _, h := range a.ssh.hosts {
		for _, address := range h.Addresses {
			_, warnings, err := a.ssh.config.Resolve(ctx, h, address)
			if link.IsTransient(err) {
				continue
			}
			if err != nil {
				warnings = append(warnings, err.Error())
			}
			for _, text := range warnings {
				if len(concerned[text]) == 0 {
					texts = append(texts, text)
				}
				concerned[text] = append(concerned[text], h)
				a.ssh.warned[h.Name+": "+text] = true
			}
		}
	}
	for _, text := range texts {
		a.warn("%s: %s", hostNames(concerned[text]), text)
	}
}

// sshOpener opens links over ssh. loadSSH must have been called.
func (a *app) sshOpener(o *options) hosts.Opener {
	warnOnce := func(host, text string) {
		text = host + ": " + text
		a.ssh.mu.Lock()
		warned := a.ssh.warned[text]
		a.ssh.warned[text] = true
		a.ssh.mu.Unlock()
		if !warned {
			a.warn("%s", text)
		}
	}
	return link.NewSSH(link.SSHOptions{Config: a.ssh.config, AcceptNew: o.AcceptNew, Prompt: a.askSecret,
		Warn: warnOnce})
}

// warnDynamicBinary warns if this program is copied to hosts and was built with cgo, because a host
// with an older C library cannot start it. go build uses cgo where a C compiler is installed.
func (a *app) warnDynamicBinary(hs []*hosts.Host) {
	isCopied := slices.ContainsFunc(hs, func(h *hosts.Host) bool { return h.Link != "local" }) &&
		platform.RunsJobs && !carried.HasAny() // otherwise hosts get another program
	if isCopied && buildSetting("CGO_ENABLED") == "1" {
		a.warn("this dcs-tui is not a static program and may not start on hosts with another C library: " +
			"`make build` makes one that does")
	}
}

// hostCommandLine returns the command line that runs a command on a host of the run. It reaches the
// host in the same way as the run does.
func hostCommandLine(run *rundir.Run, host string, words ...string) string {
	h := &hosts.Host{}
	if inv, err := new(app).storedInventory(run); err == nil {
		h = cmp.Or(inv.Find(host), h)
	}
	reach, shells := []string{"ssh", host}, 1 // ssh joins its arguments for a shell on the host
	if config := cmp.Or(sshConfigOf(run), h.SSHConfig); config != "" {
		reach = []string{"ssh", "-F", config, host}
	}
	if h.Link == "command" {
		reach, shells = h.Command, h.Shells
	}
	for i, w := range words {
		words[i] = text.Line(w)
		for range shells {
			words[i] = text.ShellWord(words[i])
		}
	}
	return shellWords(reach) + " " + shellWords(words)
}

// shellCommand returns the command that opens a shell on a host of the run. It reaches the host in
// the same way as the run does.
func shellCommand(run *rundir.Run, host string) (*exec.Cmd, error) {
	inv, err := new(app).storedInventory(run)
	if err != nil {
		return nil, err
	}
	h := inv.Find(host)
	if h == nil {
		return nil, errors.New("the run's inventory file does not have this host: " +
			"it was added later, or is an instance of a provider")
	}
	words := []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	owner, _ := journal.ReadOwner(run)
	name, _ := os.Hostname()
	switch {
	case h.Link == "local" && owner != nil && owner.Liveness() != journal.Alive && owner.Host != name:
		return nil, errors.New("this host is the machine " + owner.Host + ", where the run is dispatched")
	case h.Link == "command" && path.Base(h.Command[0]) == "ssh":
		words = slices.Concat(h.Command[:1], []string{"-t"}, h.Command[1:])
	case h.Link == "command":
		words = slices.Concat(h.Command, []string{"/bin/sh", "-i"})
	case h.Link == "ssh":
		words = []string{"ssh", "-t"}
		for _, o := range [][2]string{{"-F", cmp.Or(sshConfigOf(run), h.SSHConfig)}, {"-l", h.User}, {"-i", h.Identity},
			{"-J", strings.Join(h.Jump, ",")}} {
			if o[1] != "" {
				words = append(words, o[0], o[1])
			}
		}
		if h.Port != 0 {
			words = append(words, "-p", strconv.Itoa(h.Port))
		}
		words = append(words, "--", h.Addresses[0])
	}
	return exec.Command(words[0], words[1:]...), nil
}

// shellWords quotes words for a shell and joins them with spaces.
func shellWords(words []string) string {
	return strings.Join(text.Each(words, func(w string) string { return text.ShellWord(text.Line(w)) }), " ")
}

// sshConfigOf returns the ssh configuration of the run; "" is the user's default.
func sshConfigOf(run *rundir.Run) string {
	file, _ := run.Settings.Options["ssh-config"].(string)
	return file
}
