package sshconf

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/hosts"
)

func TestJumpChains(t *testing.T) {
	c := config(t, `
Host inner
  ProxyJump gate2
Host gate2
  HostName g2.lab
  ProxyJump bob@gate1:2201
Host gate1
  HostName g1.lab
Host three
  ProxyJump gate2,other,ssh://x@last:77
Host loop1
  ProxyJump loop2
Host loop2
  ProxyJump loop1
Host self
  ProxyJump self
Host off
  ProxyJump none
Host off
  ProxyJump gate1
Host token
  ProxyJump gw-%n
Host old
  ProxyCommand ssh -q -p 2202 -l bob -W %h:%p gate1
Host older
  ProxyCommand /usr/bin/ssh bob@gate1 exec-not nc %h %p
Host oldest
  ProxyCommand ssh gate1 nc -w 5 %h %p
`)
	for alias, want := range map[string]string{
		"inner":  "bob@g1.lab:2201 me@g2.lab:22",
		"three":  "bob@g1.lab:2201 me@g2.lab:22 me@other:22 x@last:77",
		"off":    "",
		"token":  "me@gw-token:22",
		"old":    "bob@g1.lab:2202",
		"oldest": "me@g1.lab:22",
	} {
		got, warnings, err := c.ResolveAlias(alias)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", alias, err, warnings)
			continue
		}
		var jumps []string
		for _, j := range got.Jumps {
			jumps = append(jumps, fmt.Sprintf("%s@%s", j.User, j.Address()))
			if j.Jumps != nil {
				t.Errorf("%s: gateway %s keeps jumps of its own", alias, j.Alias)
			}
		}
		if strings.Join(jumps, " ") != strings.ReplaceAll(want, "me@", c.env.user+"@") {
			t.Errorf("%s through %v; want %s", alias, jumps, want)
		}
	}
	for _, alias := range []string{"loop1", "self"} {
		if _, _, err := c.ResolveAlias(alias); err == nil || !strings.Contains(err.Error(), "in a circle") {
			t.Errorf("%s: %v", alias, err)
		}
	}
	if _, _, err := c.ResolveAlias("older"); err == nil || !strings.Contains(err.Error(), "ProxyCommand") {
		t.Errorf("a ProxyCommand of another kind: %v", err)
	}
	nat := &hosts.Host{Name: "inside", Port: 2201, Jump: []string{"nat.example.org:2200"}}
	if got, _, err := c.Resolve(nat, "nat.example.org"); err != nil || len(got.Jumps) != 1 || got.Jumps[0].Port != 2200 {
		t.Errorf("a gateway at the same address with another port: %+v, %v", got, err)
	}
	h := &hosts.Host{Name: "gw", Jump: []string{"gw"}}
	if _, _, err := c.Resolve(h, "gw"); err == nil || !strings.Contains(err.Error(), `jump = "none"`) {
		t.Errorf("a gateway that jumps through itself: %v", err)
	}
}
