//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

// scene is what goes on while something goes wrong.
type scene struct {
	name string
	play func(d *driver)
}

func exits(n int) func(o *jobs.Outcome) bool {
	return func(o *jobs.Outcome) bool { return o.Exit == n && o.Signal == "" && o.Error == "" && !o.Stopped }
}

var scenes = []scene{
	// One starts at once and two wait; one fails, and one has a command that is too
	// long for an argument. Output is read, and all that is there is listed.
	{"launch", func(d *driver) {
		d.add("echo out; exit 0", exits(0))
		d.add("echo oops >&2; exit 3", exits(3))
		d.add("exit 0"+strings.Repeat("\n# long", maxArgument/6), exits(0))
		d.until("all are over", d.allDone)
		var asked *link
		d.until("all is listed", func() bool {
			if asked != d.link && !d.listed {
				asked = d.link
				d.link.out.Write(&hosts.Read{ID: 7, Attempt: d.jobs[1].last().id, File: jobs.FileErr, Limit: 100},
					&hosts.Look{Host: "melon1", Attempts: []jobs.AttemptID{d.jobs[0].last().id}}, &hosts.List{Epoch: 1})
			}
			return d.listed
		})
		d.end()
	}},
	// Two jobs need the same device, so they run one after the other.
	{"gpu", func(d *driver) {
		d.add("exit 0", exits(0)).gpus = []int{0}
		d.add("exit 2", exits(2)).gpus = []int{0}
		d.until("both are over", d.allDone)
		d.end()
	}},
	// The first runs, the second waits and is taken back.
	{"withdraw", func(d *driver) {
		gate := d.gate()
		first := d.add("read x < "+gate, exits(0))
		second := d.add("exit 4", exits(4))
		d.add("exit 5", exits(5))
		d.until("the first runs", func() bool { return first.last().started || second.last().started || first.done() })
		second.dropped = true
		d.until("the second is taken back", func() bool {
			if second.done() {
				return true
			}
			d.link.out.Write(&hosts.Withdraw{Epoch: 1, Attempts: []jobs.AttemptID{second.last().id}})
			return false
		})
		d.pass(gate)
		d.until("all are over", d.allDone)
		d.end()
	}},
	// The first runs and is killed, with what it started.
	{"kill", func(d *driver) {
		first := d.add("sleep 1000 & sleep 1000", func(o *jobs.Outcome) bool { return o.Stopped && !o.OK() })
		d.add("exit 6", exits(6))
		d.until("the first runs", func() bool { return first.last().started || first.done() })
		first.dropped = true
		var asked *link
		d.until("the first has ended", func() bool {
			if !first.done() && asked != d.link {
				asked = d.link
				d.link.out.Write(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{first.last().id}, Why: "asked"})
			}
			return first.done()
		})
		d.until("all are over", d.allDone)
		d.end()
	}},
	// The helper dies, the first ends and the second begins without one, and another
	// helper comes.
	{"adopt", func(d *driver) {
		one, two := d.gate(), d.gate()
		first := d.add("read x < "+one+"; exit 7", exits(7))
		second := d.add("read x < "+two+"; exit 8", exits(8))
		d.add("exit 0", exits(0))
		d.until("one runs", func() bool { return d.running() || first.done() })
		d.probes = 0
		d.probe()
		d.until("the launch is in the spool", func() bool { return d.probes > 0 || d.allDone() }) // orders are handled in turn
		if !d.link.over {
			d.link.cmd.Process.Kill()
			d.hangUp()
			d.ends--
		}
		d.pass(one)
		polltest.Within(2*time.Second, func() bool { return d.runs(second.last().id) > 0 }) // nobody reports; with a fault it may never come
		d.pass(two)
		d.until("all are over", d.allDone)
		d.end()
	}},
}

// running says that some attempt has been started and has not ended.
func (d *driver) running() bool {
	for _, k := range d.jobs {
		if r := k.last(); r.started && !r.settled() {
			return true
		}
	}
	return false
}

// gate is a pipe before which a job waits; pass lets every attempt of it go on.
func (d *driver) gate() string { return d.w.fifo("gate" + string(rune('a'+len(d.gates())))) }

func (d *driver) gates() []string {
	names, _ := filepath.Glob(filepath.Join(d.w.runDir, "gate*"))
	return names
}

func (d *driver) pass(gate string) {
	for range maxStarts {
		d.w.say(gate)
	}
}

// end asks for every attempt once more, which must change nothing, ends the run,
// and looks at what is left.
func (d *driver) end() {
	d.t.Helper()
	ids := []jobs.AttemptID{{Job: 9, N: 1}} // never launched
	for _, k := range d.jobs {
		for _, r := range k.attempts {
			ids = append(ids, r.id)
		}
	}
	stray := &task{id: 9, attempts: []*try{{id: ids[0]}}, dropped: true}
	d.jobs = append(d.jobs, stray)
	answered := map[jobs.AttemptID]bool{}
	asked := time.Time{}
	for end := time.Now().Add(bound); len(answered) < len(ids); {
		if time.Now().After(end) {
			d.t.Fatalf("not all are answered: %v; said:\n\t%s", answered, strings.Join(d.said, "\n\t"))
		}
		if d.link.over {
			d.ends++
			d.connect()
			asked = time.Time{}
		}
		if time.Since(asked) > 300*time.Millisecond {
			asked = time.Now()
			d.link.out.Write(&hosts.Probe{Epoch: 1, Attempts: ids})
		}
		if m, ok := d.receive(100 * time.Millisecond); ok {
			if m, ok := m.(*hosts.Probed); ok {
				for _, p := range m.Jobs {
					if p.Answer >= hosts.HasExited {
						answered[p.Attempt] = true
					}
				}
			}
		}
	}
	for {
		d.link.out.Write(&hosts.Bye{End: true})
		d.hangUp()
		if d.link.cmd.ProcessState.Success() {
			break
		}
		d.ends++
		d.connect()
	}
	d.check()
}

// clean says whether nothing can be seen of the fault.
func (d *driver) clean() bool {
	for _, k := range d.jobs {
		if len(k.attempts) > 1 || k.id != 9 && !k.dropped && k.last().answer != hosts.HasExited {
			return false
		}
	}
	return d.ends == 0 && len(d.said) == 0 && len(d.litter()) == 0
}

// litter names files that are left and should not be.
func (d *driver) litter() (out []string) {
	filepath.WalkDir(filepath.Dir(d.w.base), func(path string, e os.DirEntry, err error) error {
		rel, _ := filepath.Rel(filepath.Dir(d.w.base), path)
		switch {
		case err != nil:
			out = append(out, err.Error())
		case strings.HasPrefix(rel, "base/runs/") && e.IsDir() && strings.Count(rel, "/") == 3:
			out = append(out, rel)
		case strings.HasPrefix(rel, "run/attempts/") && !e.IsDir():
			if ok := finalFile.MatchString(rel); !ok {
				out = append(out, rel)
			}
		}
		return nil
	})
	return out
}
