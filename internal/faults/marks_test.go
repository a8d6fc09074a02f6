//go:build linux

package faults

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// mark is the record that an attempt wrote about itself.
type mark struct {
	id   jobs.AttemptID
	host string
	at   time.Time
	text string // one line for each start
}

// markedAttempts returns the attempts that have begun, in order.
func (d *director) markedAttempts() []mark {
	d.t.Helper()
	dir := d.lab.hub.path(marksDir + "/" + d.name)
	names, err := os.ReadDir(dir)
	if err != nil {
		d.t.Fatal(err)
	}
	var list []mark
	for _, e := range names {
		id, err := jobs.ParseAttemptID(e.Name())
		if err != nil {
			continue // the gate, or the end of an attempt
		}
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		st, err := e.Info()
		if f := strings.Fields(string(b)); len(f) > 0 && err == nil {
			list = append(list, mark{id, f[0], st.ModTime(), string(b)})
		}
	}
	slices.SortFunc(list, func(a, b mark) int { return a.at.Compare(b.at) })
	return list
}

// numMarks returns the number of attempts that have begun, according to the marks of the jobs.
func (d *director) numMarks() int { return len(d.markedAttempts()) }

// marksOn returns the number of marks of a host.
func marksOn(list []mark, host string) int {
	n := 0
	for _, m := range list {
		if m.host == host {
			n++
		}
	}
	return n
}

// checkOverlaps checks promise 2: a second attempt starts only after the first one has ended, or
// after a dispatcher has recorded that it gives up the host of the first one. The marks of the jobs
// show when each attempt ended.
func (d *director) checkOverlaps() {
	d.t.Helper()
	newest := map[jobs.ID]mark{}
	events := ""
	for _, m := range d.markedAttempts() {
		before, ok := newest[m.id.Job]
		newest[m.id.Job] = m
		if !ok {
			continue
		}
		st, err := os.Stat(filepath.Join(d.lab.hub.path(marksDir), d.name, before.id.String()+".end"))
		if err != nil || !st.ModTime().After(m.at) {
			continue // it was killed, or had ended
		}
		d.numOverlaps++
		if events == "" {
			events, _, _ = d.lab.query(d.poweredDesk(), "events", d.runDir())
		}
		if !strings.Contains(events, " "+before.id.String()+" is lost: its host") {
			d.t.Errorf("%s began on %s %s before %s ended on %s, and nobody had recorded that it counts as lost",
				m.id, m.host, st.ModTime().Sub(m.at).Round(time.Millisecond), before.id, before.host)
		}
	}
}
