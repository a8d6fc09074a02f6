package e2e

import "os"

// roleVar names the environment variable that makes this test binary run as another program.
const roleVar = "DCS_E2E_ROLE"

// roles are the other programs that this test binary can run as. None returns.
var roles = map[string]func(args []string){}

// become runs the role that the environment names, if any.
func become() {
	if play := roles[os.Getenv(roleVar)]; play != nil {
		os.Unsetenv(roleVar)
		play(os.Args[1:])
		os.Exit(1)
	}
}
