package ptytest

import (
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// TestIgnoredSignalsAreNotInherited checks that the signals of the terminal end a program that a
// test starts on a terminal, even if the test itself was started under nohup.
func TestIgnoredSignalsAreNotInherited(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT} {
		signal.Ignore(sig)
		defer signal.Reset(sig)
		_, program := Open(t)
		cmd := exec.Command("/bin/sh", "-c", "ulimit -c 0; kill -"+name+" $$; exit 3")
		Attach(cmd, program)
		_ = cmd.Run() // the test reads its state instead
		if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != sig {
			t.Errorf("SIG%s: it ended with %v", name, cmd.ProcessState)
		}
	}
}
