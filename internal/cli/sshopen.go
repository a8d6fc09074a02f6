package cli

import (
	"strings"
	"sync"

	"dcs-tui/hosts"
	"dcs-tui/hosts/sshconf"
	"dcs-tui/hosts/sshlink"
	"dcs-tui/internal/cli/exit"
)

// sshSetup is the user's ssh configuration and what was said about it.
type sshSetup struct {
	config *sshconf.Config

	mu   sync.Mutex
	said map[string]bool
}

// checkSSH reads the ssh configuration and says which of its directives cannot
// be honoured for hosts in use. A host whose part of it is wrong costs only
// itself: it is named now, and fails when it is connected to.
func (a *app) checkSSH(o *options, hs []*hosts.Host) error {
	if a.ssh != nil || !usesSSH(hs) {
		return nil
	}
	config, err := sshconf.Load(o.SSHConfig)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	a.ssh = &sshSetup{config: config, said: map[string]bool{}}
	// The same is often wrong for every host; it is said once.
	var texts []string
	concerned := map[string][]*hosts.Host{}
	note := func(h *hosts.Host, text string) {
		text = strings.TrimPrefix(text, h.Name+": ")
		if len(concerned[text]) == 0 {
			texts = append(texts, text)
		}
		concerned[text] = append(concerned[text], h)
		a.ssh.said[h.Name+": "+text] = true
	}
	resolveAll(config, hs)
	for _, h := range hs {
		if h.Link != "ssh" {
			continue
		}
		for _, address := range h.Addresses {
			_, warnings, err := config.Resolve(h, address)
			for _, w := range warnings {
				note(h, w)
			}
			if err != nil {
				note(h, err.Error())
			}
		}
	}
	for _, text := range texts {
		a.warn("%s: %s", hostNames(concerned[text]), text)
	}
	return nil
}

// resolveAll asks ssh about every host at once; the answers are kept.
func resolveAll(config *sshconf.Config, hs []*hosts.Host) {
	var all sync.WaitGroup
	for _, h := range hs {
		if h.Link != "ssh" {
			continue
		}
		for _, address := range h.Addresses {
			all.Go(func() { config.Resolve(h, address) })
		}
	}
	all.Wait()
}

// sshWarning says something about a host once.
func (a *app) sshWarning(host, text string) {
	if !strings.HasPrefix(text, host+": ") {
		text = host + ": " + text
	}
	a.ssh.mu.Lock()
	known := a.ssh.said[text]
	a.ssh.said[text] = true
	a.ssh.mu.Unlock()
	if !known {
		a.warn("%s", text)
	}
}

// sshOpener opens links over ssh; checkSSH came before.
func (a *app) sshOpener(o *options) hosts.Opener {
	return sshlink.New(sshlink.Options{
		Config: a.ssh.config, AcceptNew: o.AcceptNew, Prompt: a.askSecret, Warn: a.sshWarning,
	})
}
