package sshconf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// sshTimeout bounds one `ssh -G`: a `Match exec` in it may run anything.
const sshTimeout = 10 * time.Second

// settingsOf evaluates the configuration for one host. When a Match block that
// may concern the host asks what only OpenSSH can find out (exec, localnetwork),
// and there is an ssh program, `ssh -G` answers instead; else the block is left
// out and named.
func (c *Config) settingsOf(q query, port int) (*settings, []string, error) {
	s, bad, err := c.evaluate(q)
	if err != nil || s.undecided == nil {
		return s, bad, err
	}
	why := "there is no ssh program to ask"
	if c.openssh != "" {
		asked, err := c.askOpenSSH(q, port)
		if err == nil {
			return asked, bad, nil
		}
		why = err.Error()
	}
	return s, append(bad, fmt.Sprintf("`Match %s` in the ssh configuration is not honoured, its block is left out: %s (%s)", s.what, why, s.undecided.where())), nil
}

// askOpenSSH takes the settings from `ssh -G`. What it would say of any host,
// without a configuration, is left out: those are OpenSSH's defaults, not wishes.
func (c *Config) askOpenSSH(q query, port int) (*settings, error) {
	usual, err := c.baseline()
	if err != nil {
		return nil, err
	}
	args := []string{}
	if c.path != "" {
		args = append(args, "-F", c.path)
	}
	if q.user != "" {
		args = append(args, "-l", q.user)
	}
	if port != 0 {
		args = append(args, "-p", strconv.Itoa(port))
	}
	lines, err := c.sshG(append(args, "--", q.alias)...)
	if err != nil {
		return nil, err
	}
	e := &evaluation{env: c.env, s: &settings{first: map[string]*item{}}, q: q}
	e.s.hostName = strings.ToLower(q.alias)
	for _, line := range lines {
		keyword, value, _ := strings.Cut(line, " ")
		if keyword == "hostname" {
			e.s.hostName = value
			continue
		}
		if usual[line] || value == "" || keyword == "host" {
			continue
		}
		it := &item{keyword: keyword, args: []string{value}, file: "ssh -G " + q.alias, line: 1, system: true}
		if strings.HasSuffix(keyword, "knownhostsfile") { // the lists; the others are one value, blanks and all
			it.args = strings.Fields(value)
		}
		e.set(it)
	}
	return e.s, nil
}

// readBaseline is what `ssh -G` says without any configuration.
func (c *Config) readBaseline() (map[string]bool, error) {
	lines, err := c.sshG("-F", "none", "--", "dcs-tui.invalid")
	usual := map[string]bool{}
	for _, l := range lines {
		usual[l] = true
	}
	return usual, err
}

func (c *Config) sshG(args ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sshTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.openssh, append([]string{"-G", "-T"}, args...)...)
	cmd.WaitDelay = time.Second // a Match exec may have left a child that holds the pipe
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("ssh -G did not answer within %v", sshTimeout)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("ssh -G: %w: %s", err, strings.ToValidUTF8(said, "?"))
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		keyword, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		lines = append(lines, strings.ToLower(keyword)+" "+value)
	}
	return lines, nil
}
