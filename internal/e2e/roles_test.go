package e2e

import "os"

// roleVar tells a process of this test binary to be something else than the tests.
const roleVar = "DCS_E2E_ROLE"

// roles are the other programs that this test binary can be; none returns.
var roles = map[string]func(args []string){}

// become plays the role that the environment asks for.
func become() {
	if play := roles[os.Getenv(roleVar)]; play != nil {
		os.Unsetenv(roleVar)
		play(os.Args[1:])
		os.Exit(1)
	}
}
