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
	for name, sig := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT,
		"QUIT": syscall.SIGQUIT} {
		signal.Ignore(sig)
		defer signal.Reset(sig)
		p := Start(t, exec.Command("/bin/sh", "-c", "ulimit -c 0; echo ready; kill -"+name+" $$; exit 3"))
		p.Until("ready")
		p.End()
		if st, ok := p.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != sig {
			t.Errorf("SIG%s: it ended with %v", name, p.ProcessState)
		}
	}
}
