//go:build linux

package remote

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// A job that is ended does not run the rest of its command line: its shell goes
// before the command it waits for, however deep.
func TestEndedJobGoesNoFurther(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	open := w.open()
	open.Slots = 12
	f := w.start(open)
	var list []hosts.LaunchJob
	var ids []jobs.AttemptID
	for i := range 12 {
		id := fmt.Sprintf("%d.1", i+1)
		mark := filepath.Join(w.base, "went-on-"+id)
		list = append(list, job(id, fmt.Sprintf("sh -c '(echo up > %s; sleep 1000); touch %s'; touch %s", ready, mark, mark)))
		ids = append(ids, attemptID(t, id))
	}
	f.launch(list...)
	w.hearTimes(ready, 12)
	f.send(&hosts.Kill{Epoch: 1, Attempts: ids, Why: "asked"})
	for _, id := range ids {
		if o := f.exit(id.String()); o.Signal != "SIGTERM" || !o.Stopped {
			t.Errorf("%s: %+v", id, o)
		}
	}
	if marks, _ := filepath.Glob(filepath.Join(w.base, "went-on-*")); len(marks) > 0 {
		t.Errorf("%d of 12 jobs went on after they had been ended", len(marks))
	}
	f.bye()
}

// Whatever the order of the picture, parents come first; a circle of pids that
// have passed on ends.
func TestParentsFirst(t *testing.T) {
	got := parentsFirst([]proc{{pid: 5, ppid: 4}, {pid: 9, ppid: 1}, {pid: 4, ppid: 3}, {pid: 3, ppid: 1}, {pid: 7, ppid: 8}, {pid: 8, ppid: 7}})
	at := func(pid int) int { return slices.IndexFunc(got, func(p proc) bool { return p.pid == pid }) }
	if len(got) != 6 || at(3) > at(4) || at(4) > at(5) {
		t.Errorf("%+v", got)
	}
}
