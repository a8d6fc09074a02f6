package dispatch

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// choices turns the bytes of a fuzz target into messages of a host.
type choices []byte

func (c *choices) draw(n int) int {
	if len(*c) == 0 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return int(b) % n
}

func (c *choices) attempt() jobs.AttemptID {
	return jobs.AttemptID{Job: jobs.ID(c.draw(10)), N: c.draw(4)}
}

func (c *choices) attempts() (ids []jobs.AttemptID) {
	for range c.draw(5) {
		ids = append(ids, c.attempt())
	}
	return ids
}

// number draws a number that may be absurd.
func (c *choices) number() int64 {
	return [...]int64{0, 1, 2, 1e9, 60e9, 1 << 40, 1<<63 - 1, -1, -1 << 63}[c.draw(9)]
}

func (c *choices) text() string {
	return [...]string{"", "ours", "good", "good-id", "out.txt", "../up", "\x1b[2J\u202e"}[c.draw(7)]
}

func (c *choices) outcome() jobs.Outcome {
	return jobs.Outcome{
		Exit:        int(c.number()),
		Signal:      c.text(),
		Error:       c.text(),
		Stopped:     c.draw(2) == 1,
		Started:     jobs.Stamp(c.number()),
		Ended:       jobs.Stamp(c.number()),
		CPU:         time.Duration(c.number()),
		MaxRSSBytes: c.number(),
		Files:       int32(c.draw(3)),
	}
}

func (c *choices) exits() (list []hosts.ExitedJob) {
	for _, id := range c.attempts() {
		list = append(list, hosts.ExitedJob{Attempt: id, Slot: int(c.number()), Outcome: c.outcome()})
	}
	return list
}

func (c *choices) fates() (list []hosts.ProbedJob) {
	for _, id := range c.attempts() {
		p := hosts.ProbedJob{Attempt: id, Answer: hosts.Answer(c.draw(8)), Slot: int(c.number()),
			Started: jobs.Stamp(c.number()), Why: c.text()}
		if c.draw(2) == 1 {
			o := c.outcome()
			p.Outcome = &o
		}
		list = append(list, p)
	}
	return list
}

// message draws a message of any kind that a host may send.
func (c *choices) message() hosts.Message {
	switch c.draw(13) {
	case 0:
		return &hosts.Exits{Jobs: c.exits()}
	case 1:
		m := &hosts.Started{}
		for _, id := range c.attempts() {
			m.Jobs = append(m.Jobs, hosts.StartedJob{Attempt: id, Slot: int(c.number()), At: jobs.Stamp(c.number())})
		}
		return m
	case 2:
		return &hosts.Withdrawn{Attempts: c.attempts(), Why: c.text()}
	case 3:
		return &hosts.Refused{Attempts: c.attempts(), Why: c.text(), FencedBy: int(c.number()),
			GPUs: []int{int(c.number())}, Slots: int(c.number()),
			Limit: jobs.ProcessLimit{}}
	case 4:
		return &hosts.Probed{Jobs: c.fates()}
	case 5:
		return &hosts.Listed{Jobs: c.fates(), Last: c.draw(2) == 1, All: c.draw(2) == 1, Why: c.text()}
	case 6:
		return &hosts.Inspected{Host: c.text(), Jobs: c.exits(), Runs: c.attempts(), Never: c.attempts(),
			Heartbeat: c.text(), Machine: c.text()}
	case 7:
		return &hosts.Trouble{Attempt: c.attempt(), Text: c.text(), Fatal: c.draw(2) == 1}
	case 8:
		return &hosts.Chunk{ID: int64(c.draw(4)), Offset: c.number(), Size: c.number(), Why: c.text(),
			Bulk: []byte(c.text())}
	case 9:
		return &hosts.Want{ID: c.number(), Attempt: c.attempt(), Offset: c.number(), Limit: int(c.number())}
	case 10:
		return &hosts.Stored{ID: c.number(), FencedBy: int(c.number()), Why: c.text()}
	case 11:
		id := c.attempt().String()
		return &hosts.Heartbeat{
			Uptime:     time.Duration(c.number()),
			MemFree:    c.number(),
			DiskFree:   c.number(),
			Running:    int(c.number()),
			Load:       [3]float64{float64(c.number())},
			Ours:       float64(c.number()),
			Suspended:  time.Duration(c.number()),
			LockedGPUs: []int{int(c.number())},
			Owner: hosts.Owner{Who: c.text(),
				Suspend: c.draw(2) == 1},
			Progress: map[string]string{id: c.text()},
			Reports:  map[string]string{id: c.text()},
		}
	}
	return &hosts.Hello{Machine: c.text(), FencedBy: int(c.number())}
}

// FuzzHostFrames checks that no sequence of frames from one host changes a job that this host was
// not given, ends the run, or writes a file that its jobs do not return.
func FuzzHostFrames(f *testing.F) {
	for kind := range byte(13) {
		for fill := range byte(9) {
			seed := []byte{fill}
			for range 4 {
				seed = append(seed, kind)
				for i := range byte(24) {
					seed = append(seed, fill+i*(kind+1))
				}
			}
			f.Add(seed)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 512 {
			return
		}
		c := choices(b)
		x := &hosttest.Hostiles{Attacks: map[string]hosttest.Attack{"evil": hosttest.Scripted}, Run: 20 * time.Second,
			Content: "theirs"}
		x.Path = [...]string{"out.txt", "hosts.toml", "../up", ".bashrc", "dcs-runs/r/run.toml",
			"sub/out.txt"}[c.draw(6)]
		for len(c) > 0 && len(x.Script) < 20 {
			x.Script = append(x.Script, c.message())
		}
		synctest.Test(t, func(t *testing.T) {
			r, base := hostileRig(t, x)
			if err := os.WriteFile(filepath.Join(base, "hosts.toml"), []byte("ours"), 0o600); err != nil {
				t.Fatal(err)
			}
			given := r.startVictims(time.Second)
			r.drainAll(8, 2*time.Minute)
			for _, id := range given {
				a, err := r.d.Attempt(t.Context(), jobs.AttemptID{Job: id, N: 1})
				if err != nil || a.State != jobs.AttemptExited || a.Host != "good" || a.Outcome.Elapsed() != x.Run ||
					a.Outcome.Error != "" {
					t.Errorf("job %d: %+v, %v", id, a, err)
				}
				if more, _ := r.d.Attempt(t.Context(), jobs.AttemptID{Job: id, N: 2}); more != nil {
					t.Errorf("job %d has a second attempt: %+v", id, more)
				}
			}
			if f, err := r.d.Close(); err != nil || f.How == sched.Fenced {
				t.Errorf("the run ended %v (%s), %v", f.How, f.Why, err)
			}
			if b, _ := os.ReadFile(filepath.Join(base, "hosts.toml")); string(b) != "ours" {
				t.Errorf("hosts.toml holds %q", b)
			}
			for _, name := range []string{".bashrc", "../up", "dcs-runs/r/run.toml", "sub"} {
				if _, err := os.Lstat(filepath.Join(base, name)); err == nil {
					t.Errorf("%s was written", name)
				}
			}
		})
	})
}

// TestOthersFilesAreNotRead checks that a host gets no list of the files that are sent to an attempt
// of another host.
func TestOthersFilesAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &hosttest.Hostiles{Attacks: map[string]hosttest.Attack{"evil": hosttest.ReadsOthersFiles}, Run: time.Hour}
		for id := range jobs.ID(10) {
			x.Victims = append(x.Victims, jobs.AttemptID{Job: id + 1, N: 1})
		}
		r, base := hostileRig(t, x)
		if err := os.WriteFile(filepath.Join(base, "secret"), []byte("ours"), 0o600); err != nil {
			t.Fatal(err)
		}
		given := r.startVictims(5*time.Second, "secret")
		isGiven := map[jobs.ID]bool{9: true, 10: true} // there are no such jobs
		for _, id := range given {
			isGiven[id] = true
		}
		numRefused, numAnswered := 0, 0
		for _, m := range x.Received("evil") {
			p, ok := m.(*hosts.Piece)
			switch {
			case !ok:
			case isGiven[x.Victims[p.ID].Job]:
				numRefused++
				if len(p.Bulk) > 0 || p.Why != errNotGiven.Error() {
					t.Errorf("asked for the files of %s: %d bytes, %q", x.Victims[p.ID], len(p.Bulk), p.Why)
				}
			case len(p.Bulk) > 0:
				numAnswered++
			}
		}
		if numRefused != len(isGiven) || numAnswered == 0 {
			t.Errorf("%d of %d requests were refused; %d for its own attempts were answered", numRefused,
				len(isGiven), numAnswered)
		}
		r.stop()
	})
}

// startVictims starts a dispatcher with two hosts, on which eight jobs run. It returns the jobs that
// run on good; evil has the others. Each job gets the given files. It waits after each step.
func (r *rig) startVictims(wait time.Duration, send ...string) (given []jobs.ID) {
	r.start(&jobs.Table{}, "good", "evil")
	submit := func(last bool) {
		specs := jobstest.Specs(4)
		for _, s := range specs {
			if len(send) > 0 {
				s.Options = &jobs.Options{Send: send}
			}
		}
		if err := r.d.Submit(specs, last); err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(wait)
	}
	r.d.Do(sched.DrainHost{Host: "evil", On: true})
	submit(false)
	r.d.Do(sched.DrainHost{Host: "evil"})
	submit(true)
	for id := range jobs.ID(8) {
		a, err := r.d.Attempt(r.t.Context(), jobs.AttemptID{Job: id + 1, N: 1})
		if err != nil {
			r.t.Fatal(err)
		}
		if a != nil && a.Host == "good" {
			given = append(given, id+1)
		}
	}
	if len(given) < 4 {
		r.t.Errorf("good has the jobs %v, want at least four", given)
	}
	return given
}
