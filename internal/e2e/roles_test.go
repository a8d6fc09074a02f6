//go:build linux

package e2e

import (
	"os"
	"os/exec"
)

// roleVar names the environment variable that makes this test binary run as another program.
const roleVar = "DCS_E2E_ROLE"

// roles are the other programs that this test binary can run as. None returns.
var roles = map[string]func(args []string){}

// roleCommand returns a command that runs this test binary in a role.
func (l *lab) roleCommand(name string, args ...string) *exec.Cmd {
	l.t.Helper()
	me, err := os.Executable()
	must(l.t, err)
	cmd := exec.Command(me, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+name)
	return cmd
}

// runRole runs the role that the environment names, if any.
func runRole() {
	if play := roles[os.Getenv(roleVar)]; play != nil {
		os.Unsetenv(roleVar)
		play(os.Args[1:])
		os.Exit(1)
	}
}
