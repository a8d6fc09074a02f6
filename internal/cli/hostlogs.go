package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"dcs-tui/jobs/rundir"
)

// hostLogs are the files hosts/<host>.log of a run: what each host's helper said
// and what was noticed about the host (D9). Safe for concurrent use.
type hostLogs struct {
	run *rundir.Run
	mu  sync.Mutex
	out map[string]*os.File
}

func newHostLogs(run *rundir.Run) *hostLogs { return &hostLogs{run: run, out: map[string]*os.File{}} }

// Write adds text to the host's log, a time before each line. A log that cannot
// be written must not stop the run, so errors are left aside.
func (l *hostLogs) Write(host, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.out[host]
	if f == nil {
		// Host names have neither slashes nor leading dots (hosts.Parse).
		var err error
		f, err = os.OpenFile(l.run.Path(rundir.HostsDir, host+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return
		}
		l.out[host] = f
	}
	at := time.Now().Format("2006-01-02 15:04:05  ")
	for line := range strings.Lines(text) {
		if _, err := io.WriteString(f, at+strings.TrimRight(line, "\n")+"\n"); err != nil {
			f.Close() // a stale handle does not heal; the next line opens it anew
			delete(l.out, host)
			return
		}
	}
}

// Close closes the files.
func (l *hostLogs) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.out {
		f.Close()
	}
	l.out = map[string]*os.File{}
}

// dispatcherLog opens dispatcher.log of the run, which takes over when the
// terminal is gone.
func dispatcherLog(run *rundir.Run) (*os.File, error) {
	f, err := os.OpenFile(run.Path("dispatcher.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the terminal is gone and the log cannot be opened: %w", err)
	}
	return f, nil
}
