package jobs

import (
	"strconv"
	"strings"
)

// signalNames are those of Linux (signal(7)) on every architecture that Go
// supports there except MIPS; the index is the number.
var signalNames = [...]string{"", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE",
	"SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT",
	"SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH",
	"SIGIO", "SIGPWR", "SIGSYS"}

// maxSignal is SIGRTMAX.
const maxSignal = 64

// SignalName returns "SIGKILL" for 9, "SIG40" for a real-time signal, "" for
// what is no signal.
func SignalName(n int) string {
	switch {
	case n < 1 || n > maxSignal:
		return ""
	case n < len(signalNames):
		return signalNames[n]
	}
	return "SIG" + strconv.Itoa(n)
}

// SignalNumber is the inverse of SignalName; 0 for an unknown name.
func SignalNumber(name string) int {
	for n, s := range signalNames {
		if s == name {
			return n // 0 for ""
		}
	}
	if digits, ok := strings.CutPrefix(name, "SIG"); ok {
		if n, err := strconv.Atoi(digits); err == nil && SignalName(n) == name {
			return n
		}
	}
	return 0
}
