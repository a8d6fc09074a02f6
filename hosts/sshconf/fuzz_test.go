package sshconf

import (
	"fmt"
	"os"
	"testing"
)

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
		c := &Config{env: env, ssh: newOpenSSH("ssh", "", "")}
		c.ssh.run = func(args []string) (*settings, error) {
			if args[len(args)-1] == nobody {
				return parseSettings("hostname x\nport 22\n"), nil
			}
			return s, nil
		}
		got, _, err := c.ResolveAlias("alias")
		if err == nil && (got.HostName == "" || got.Port < 1 || got.Port > 65535 || got.User == "" || len(got.Jumps) > maxJumps) {
			t.Fatalf("%+v", got)
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
