//go:build !linux

package remote

import (
	"fmt"
	"os"
	"runtime"
)

// Main prints an error and returns 2, because hosts that run jobs must be Linux machines.
func Main(args []string) int {
	fmt.Fprintf(os.Stderr, "dcs-tui: jobs run on Linux hosts only, this is %s/%s\n", runtime.GOOS, runtime.GOARCH)
	return 2
}
