package sshconf

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kevinburke/ssh_config"
)

// canned is a source of one answer, for the fuzzer.
type canned struct{ s *settings }

func (c canned) settings(query) (*settings, error) { return c.s, nil }
func (c canned) forEverybody(string, string) bool  { return false }

// Whatever ssh prints becomes a whole target or an error.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"hostname a\nport 22\nuser bob\n", "hostname a\nproxyjump b,c@d:3\n", "hostname a\nproxycommand ssh -W %h:%p g\n",
		"hostname a\nidentityfile ~/%h\nidentityfile none\nuserknownhostsfile /a b c\n", "hostname a\nhostkeyalgorithms ^x*,+y\n",
		"hostname a\nidentityagent $X\nconnecttimeout 1h\nstricthostkeychecking accept-new\n", "\r\n  \nX\nhostname\n",
	} {
		f.Add(s)
	}
	env := &environment{home: "/home/a", user: "alice", uid: "1", hostname: "desk", getenv: os.LookupEnv,
		lookup: func(string) (string, error) { return "", os.ErrNotExist }}
	f.Fuzz(func(t *testing.T, text string) {
		s := parseSettings(text)
		if s.values["hostname"] == nil {
			return
		}
		s.usual = parseSettings("hostname x\nport 22\n")
		c := &Config{env: env, source: canned{s}, openssh: &openSSH{}}
		got, _, err := c.ResolveAlias("alias")
		if err == nil && (got.HostName == "" || got.Port < 1 || got.Port > 65535 || got.User == "" || len(got.Jumps) > maxJumps) {
			t.Fatalf("%+v", got)
		}
	})
}

// Whatever a file holds, reading it without ssh ends in settings or an error.
func FuzzLibrary(f *testing.F) {
	for _, s := range []string{"Host a\n User bob\n", "match host x\nPort 1\n", "Port\n", "Host\n", "=\n", "a=\"\n", "Match all\r\nHost \"x y\" # z\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if strings.Contains(strings.ToLower(string(text)), "include") {
			return // reads other files
		}
		c, err := decode(text)
		if err != nil {
			return
		}
		l := &library{files: []*ssh_config.Config{c}}
		if s, err := l.settings(query{alias: "a"}); err == nil && len(s.values["hostname"]) != 1 {
			t.Fatalf("%+v", s)
		}
	})
}

// BenchmarkFirstAnswer is the cost of a host that was not asked about before.
func BenchmarkFirstAnswer(b *testing.B) {
	c, err := Load("/dev/null")
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if _, _, err := c.ResolveAlias(fmt.Sprint("h", i)); err != nil {
			b.Fatal(err)
		}
	}
}
