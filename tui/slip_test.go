package tui

import (
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// Rule 4, in each view with a cursor: what was under it goes, and the key that was meant
// for that does nothing to what is there now but say so. The next key counts.
func TestKeysDoNothingWhereTheCursorSlid(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		change     func(*runview.Picture)
		key, says  string
		does       runview.Action
	}{
		{"a host", "2 j", func(p *runview.Picture) { p.Hosts = append(p.Hosts[:1:1], p.Hosts[2:]...) },
			"d", "ws02 has left the list; the cursor is on ws03 now: press again", runview.Action{Do: runview.DrainHost, Host: "ws03"}},
		{"the last host", "2 G", func(p *runview.Picture) { p.Hosts = p.Hosts[:len(p.Hosts)-1] },
			"+", "ws12 has left the list; the cursor is on ws11 now: press again", runview.Action{Do: runview.Slots, Host: "ws11", Number: 1, Relative: true}},
		{"a cause", "3", func(p *runview.Picture) { p.Groups = p.Groups[min(1, len(p.Groups)):] },
			"r", "exit 137 Killed has left the list; the cursor is on exit 1 ValueError: gamma must be positi… now: press again",
			runview.Action{Do: runview.Requeue, Jobs: jobs.Ranges{{First: 50140, Last: 50142}}}},
		{"a job of a cause", "3 enter j", func(p *runview.Picture) {
			for i := range p.Groups {
				p.Groups[i].Jobs = []runview.Row{sampleRow(50122 + 10)}
			}
		}, "r", "job 50120 has left the list; the cursor is on job 50132 now: press again", runview.Action{Do: runview.Requeue, Jobs: jobs.One(50132)}},
		{"a job that is over", "4", func(p *runview.Picture) {
			if p.Jobs != nil {
				p.Jobs.Rows[0] = sampleRow(50120)
			}
		}, "r", "has left the list; the cursor is on job 50120 now: press again", runview.Action{Do: runview.Requeue, Jobs: jobs.One(50120)}},
	} {
		gone := false
		src := change(func(p *runview.Picture) {
			if gone {
				c.change(p)
			}
		})
		m := newScreen(t, src, 80, 24)
		do(t, m, strings.Fields(c.keys)...)
		gone = true
		refresh(t, m)
		do(t, m, c.key)
		if did := src.done(); !strings.HasSuffix(m.message.text, c.says) || len(did) > 0 || m.modal != nil {
			t.Errorf("%s: it says %q and did %+v", c.name, m.message.text, did)
		}
		do(t, m, c.key)
		did := src.done()
		if len(did) != 1 || did[0].Do != c.does.Do || did[0].Host != c.does.Host || !slices.Equal(did[0].Jobs, c.does.Jobs) || did[0].Number != c.does.Number {
			t.Errorf("%s: the second key did %+v, not %+v; it says %q", c.name, did, c.does, m.message.text)
		}
	}
}
