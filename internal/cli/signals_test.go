package cli

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

// DESIGN 8: each further Ctrl-C asks for more; SIGTERM stops dispatching; the end
// of the terminal stops nothing; only --on-interrupt=cancel ends running jobs.
func TestInterrupts(t *testing.T) {
	ctrlC, term, hup, pipe := syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE
	for _, test := range []struct {
		name   string
		cancel bool
		sent   []os.Signal
		want   []wish
	}{
		{"Ctrl-C thrice", false, []os.Signal{ctrlC, ctrlC, ctrlC}, []wish{wishDrain, wishStop, wishQuit}},
		{"cancel by choice", true, []os.Signal{ctrlC, ctrlC}, []wish{wishCancel, wishStop}},
		{"SIGTERM at once", false, []os.Signal{term, ctrlC}, []wish{wishStop, wishQuit}},
		{"SIGTERM twice", false, []os.Signal{term, term}, []wish{wishStop, wishQuit}},
		{"Ctrl-C and SIGTERM", false, []os.Signal{ctrlC, term, term}, []wish{wishDrain, wishStop, wishQuit}},
		{"SIGTERM never cancels", true, []os.Signal{term}, []wish{wishStop}},
		{"the terminal closes", false, []os.Signal{hup, ctrlC}, []wish{wishDetach, wishDrain}},
		{"a pipe breaks", false, []os.Signal{pipe, ctrlC}, []wish{wishNothing, wishDrain}},
	} {
		i := interrupts{cancel: test.cancel}
		var got []wish
		for _, s := range test.sent {
			got = append(got, i.signal(s))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
