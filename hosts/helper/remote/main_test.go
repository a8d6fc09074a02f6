//go:build linux

package remote

import (
	"os"
	"strings"
	"testing"
)

// The test binary is the program on the far side too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}
