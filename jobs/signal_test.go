package jobs

import (
	"syscall"
	"testing"
)

func TestSignals(t *testing.T) {
	for n := 1; n <= maxSignal; n++ {
		name := SignalName(n)
		if name == "" || SignalNumber(name) != n {
			t.Errorf("%d is %q and back %d", n, name, SignalNumber(name))
		}
	}
	for name, n := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGUSR2": syscall.SIGUSR2,
		"SIGCHLD": syscall.SIGCHLD, "SIGXCPU": syscall.SIGXCPU, "SIGSYS": syscall.SIGSYS, "SIG34": 34, "": 0} {
		if SignalName(int(n)) != name || SignalNumber(name) != int(n) {
			t.Errorf("%q, %d", name, n)
		}
	}
	for _, s := range []string{"KILL", "sigkill", "SIG9", "SIG065", "SIG65", "SIG0", "SIG", "SIG-1", "SIG+40"} {
		if n := SignalNumber(s); n != 0 {
			t.Errorf("%q is %d", s, n)
		}
	}
}
