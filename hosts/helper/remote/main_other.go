//go:build !linux

package remote

import (
	"fmt"
	"os"
	"runtime"
)

// Main refuses: hosts that run jobs are Linux machines.
func Main(args []string) int {
	fmt.Fprintf(os.Stderr, "dcs-tui: jobs run on Linux hosts only, this is %s/%s\n", runtime.GOOS, runtime.GOARCH)
	return 2
}
