package cli

import (
	"os"
	"syscall"
	"testing"
)

// hosts check: a second Ctrl-C ends a check whose output nobody reads.
func TestFirstSignal(t *testing.T) {
	for sent, want := range map[int]int{1: 0, 2: 1, 3: 1} {
		signals, first := make(chan os.Signal, sent), make(chan os.Signal, 1)
		for range sent {
			signals <- syscall.SIGINT
		}
		close(signals)
		quits := 0
		firstSignal(signals, first, func() { quits++ })
		if quits != want || len(first) != 1 {
			t.Errorf("%d signals: left %d times, %d handed on", sent, quits, len(first))
		}
	}
}
