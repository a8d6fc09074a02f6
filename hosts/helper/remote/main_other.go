//go:build !linux

package remote

import (
	"fmt"
	"os"
)

// Main refuses the subcommands of the host side and returns an exit status: jobs run on Linux only.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "dcs-tui: jobs run on Linux only, and this machine runs another system")
	return 1
}
