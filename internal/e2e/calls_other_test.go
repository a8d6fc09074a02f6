//go:build !amd64

package e2e

import (
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// TestDeathAtEachCall is skipped: the tracer changes registers, and knows only those of amd64.
func TestDeathAtEachCall(t *testing.T) {
	polltest.Long(t)
	hosttest.LeaveOut(t, "death and errors at each system call: written for amd64 only")
}
