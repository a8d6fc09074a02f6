package dispatch

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// hostileRig returns a rig, not started, with hosts that speak the wire format. Jobs return out.txt
// below base.
func hostileRig(t *testing.T, x *hosttest.Hostiles) (r *rig, base string) {
	base = t.TempDir()
	polltest.Must(t, os.MkdirAll(filepath.Join(base, "dcs-runs/r"), 0o700))
	r = idleRig(t, 0)
	r.connector = helper.New(helper.Options{Opener: x})
	r.files = Files{
		Source:    files.NewSource(base),
		BaseDir:   base,
		RecordDir: filepath.Join(base, "dcs-runs/r/returning"),
		Return:    []string{"out.txt"},
		Protected: []string{filepath.Join(base, "hosts.toml")},
	}
	return r, base
}

// TestForgedReturnsWriteNothing checks that a host which lies about the files that a job returns
// makes nothing but that job fail: no other file is written, no memory is used without a limit, and
// no disk is filled.
func TestForgedReturnsWriteNothing(t *testing.T) {
	for _, tt := range []struct {
		attack hosttest.Attack
		path   string
		why    string
	}{
		{hosttest.ReturnsOthers, "hosts.toml", `"hosts.toml" cannot be written here: the job does not return it`},
		{hosttest.ReturnsOthers, "dcs-runs/r/run.toml", "the job does not return it"},
		{hosttest.ReturnsOthers, "../up", "the list of files is damaged"},
		{hosttest.ReturnsOthers, ".bashrc", "the job does not return it"},
		{hosttest.EndlessList, "", "the list of them has more than 16 MiB"},
		{hosttest.ManyFiles, "", "the host lists 1 of them, and reported 1000"},
		{hosttest.HugeFile, "", "the whole disk"},
	} {
		t.Run(tt.attack.String()+" "+tt.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &hosttest.Hostiles{
					Attacks: map[string]hosttest.Attack{"evil": tt.attack},
					Run:     time.Second,
					Path:    tt.path,
					Content: "theirs",
				}
				r, base := hostileRig(t, x)
				if err := os.WriteFile(filepath.Join(base, "hosts.toml"), []byte("ours"), 0o600); err != nil {
					t.Fatal(err)
				}
				specs := jobstest.Specs(1)
				specs[0].Options = &jobs.Options{Tries: 1}
				r.start(&jobs.Table{}, "evil")
				if err := r.d.Submit(specs, true); err != nil {
					t.Fatal(err)
				}
				results := r.finish(1)
				if s := results[0]; s.State != jobs.Failed || !strings.Contains(s.Outcome.Error, tt.why) {
					t.Errorf("the job: %v, %+v; want a failure because %q", s.State, s.Outcome, tt.why)
				}
				var there []string
				for _, p := range []string{"*", ".*", "dcs-runs/*", "dcs-runs/r/*", "../up"} {
					list, _ := filepath.Glob(filepath.Join(base, p))
					for _, name := range list {
						rel, _ := filepath.Rel(base, name)
						there = append(there, rel)
					}
				}
				there = slices.DeleteFunc(there, func(name string) bool {
					return name == "dcs-runs" || name == "dcs-runs/r" || name == "dcs-runs/r/returning"
				})
				if b, _ := os.ReadFile(filepath.Join(base, "hosts.toml")); string(b) != "ours" ||
					!slices.Equal(there, []string{"hosts.toml"}) {
					t.Errorf("there is %q, and hosts.toml holds %q", there, b)
				}
			})
		})
	}
}

// TestHonestHostReturnsFiles checks that the checks accept what an honest host returns.
func TestHonestHostReturnsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &hosttest.Hostiles{Run: time.Second, Content: strings.Repeat("made", 100_000)}
		r, base := hostileRig(t, x)
		r.start(&jobs.Table{}, "good").submit(3)
		for _, res := range r.drain() {
			if res.State != jobs.Succeeded {
				t.Errorf("%+v", res)
			}
		}
		if b, err := os.ReadFile(filepath.Join(base, "out.txt")); err != nil || string(b) != x.Content {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		r.close(sched.AllDone)
	})
}

// victimRig returns a started rig in which jobs 1 to 4 run on the host good, and others on evil, for
// an hour each. given are all jobs of good.
func victimRig(t *testing.T, attack hosttest.Attack) (r *rig, given []jobs.ID) {
	x := &hosttest.Hostiles{
		Attacks: map[string]hosttest.Attack{"evil": attack},
		Run:     time.Hour,
		Other:   "good",
		Epoch:   999_999,
		Content: "theirs",
	}
	for id := range 8 {
		for n := range 3 { // whatever is on good, and attempts that nobody has
			x.Victims = append(x.Victims, jobs.AttemptID{Job: jobs.ID(id + 1), N: n + 1})
		}
	}
	r, _ = hostileRig(t, x)
	return r, r.startVictims(5 * time.Second)
}

// TestAttacksChangeNothingElsewhere checks that no attack of one host changes a job that the host
// was not given: all jobs of the other host succeed there with their first attempt, and the run
// ends well. The host itself is used, or refused by name.
func TestAttacksChangeNothingElsewhere(t *testing.T) {
	for attack := range hosttest.NumAttacks {
		t.Run(attack.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, given := victimRig(t, attack)
				r.drainAll(8, 3*time.Hour)
				for _, id := range given {
					a, err := r.d.Attempt(t.Context(), jobs.AttemptID{Job: id, N: 1})
					if err != nil || a.State != jobs.AttemptExited || a.Host != "good" ||
						a.Outcome.Elapsed() != time.Hour {
						t.Errorf("job %d: %+v, %v", id, a, err)
					}
					if more, _ := r.d.Attempt(t.Context(), jobs.AttemptID{Job: id, N: 2}); more != nil {
						t.Errorf("job %d has a second attempt: %+v", id, more)
					}
				}
				if f, err := r.d.Close(); err != nil || f.How == sched.Fenced {
					t.Errorf("the run ended %v (%s), %v", f.How, f.Why, err)
				}
				for _, n := range r.notices {
					if strings.HasPrefix(n, "good") && strings.Contains(n, "lost") {
						t.Error(n)
					}
				}
			})
		})
	}
}

// TestFloodsAreRefused checks that a host that sends without end is refused by name, and that little
// of what it sent is recorded.
func TestFloodsAreRefused(t *testing.T) {
	const kept = 16 << 20
	for attack, why := range map[hosttest.Attack]string{
		hosttest.FloodsStderr:     "evil: it sent more than 16 MiB of messages for people",
		hosttest.FloodsTrouble:    "evil: it sent more than 16 MiB of messages for people",
		hosttest.FloodsHeartbeats: "evil: it sent more than 100000 messages without being asked",
		hosttest.FloodsBytes:      `evil: it sent an answer that belongs to no question: "chunk"`,
	} {
		t.Run(attack.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &hosttest.Hostiles{Attacks: map[string]hosttest.Attack{"evil": attack}, Run: time.Second}
				r, _ := hostileRig(t, x)
				logged := 0
				r.connector = helper.New(helper.Options{Opener: x, Log: func(_, line string) { logged += len(line) }})
				r.start(&jobs.Table{}, "good", "evil").submit(20)
				r.finish(20)
				if !slices.ContainsFunc(r.notices, func(n string) bool { return strings.HasPrefix(n, why) }) {
					t.Errorf("no notice %q…: %.300q", why, r.notices)
				}
				for _, n := range r.notices {
					logged += len(n)
				}
				if logged > kept {
					t.Errorf("%d bytes were logged, want at most %d", logged, kept)
				}
			})
		})
	}
}

// TestHostThatStartsNothingIsPaused checks that jobs are not sent again and again to a host that gives
// them back without being asked.
func TestHostThatStartsNothingIsPaused(t *testing.T) {
	for _, attack := range []hosttest.Attack{hosttest.WithdrawsAll, hosttest.NeverStarts} {
		synctest.Test(t, func(t *testing.T) {
			x := &hosttest.Hostiles{Attacks: map[string]hosttest.Attack{"evil": attack}, Run: time.Second}
			r, _ := hostileRig(t, x)
			r.start(&jobs.Table{}, "evil").submit(20)
			time.Sleep(10 * time.Minute)
			launches := 0
			for _, m := range x.Received("evil") {
				if _, ok := m.(*hosts.Launch); ok {
					launches++
				}
			}
			if launches == 0 || launches > 30 {
				t.Errorf("%v: jobs were sent %d times in ten minutes, want a pause that grows", attack, launches)
			}
			r.d.Do(sched.Cancel{All: true, Why: "test"})
			r.drain()
			r.d.Close()
		})
	}
}

// TestBurstsAreNotRefused checks that a host is not refused for what it may have to send at once: the
// ends of 10,000 jobs one by one, each with a trouble, a list of 100,000 attempts, and the heartbeats
// of a night in which the dispatcher slept.
func TestBurstsAreNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &hosttest.Hostiles{Attacks: map[string]hosttest.Attack{"busy": hosttest.Bursts}, Run: time.Second}
		r, _ := hostileRig(t, x)
		r.start(&jobs.Table{}, "busy").submit(4)
		r.finish(4)
		for _, n := range r.notices {
			if strings.Contains(n, "busy") && !strings.HasPrefix(n, "busy is up") && !strings.HasPrefix(n, "job ") {
				t.Fatalf("%.300s", n)
			}
		}
	})
}

// drainAll reads the results of n jobs, or those of some time, and cancels the rest: a host can keep
// its own jobs for ever.
func (r *rig) drainAll(n int, limit time.Duration) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	for range n {
		res, err := r.d.Next(ctx)
		if err != nil {
			r.d.Do(sched.Cancel{All: true, Why: "test"})
			return
		}
		r.d.Ack(res.Seq)
	}
}

// TestFenceNeedsTheRunDirectory checks that the word of one host does not end the run: the host is
// refused by name. If the run directory shows the other dispatcher, the run ends at once.
func TestFenceNeedsTheRunDirectory(t *testing.T) {
	for _, attack := range []hosttest.Attack{hosttest.FencesHello, hosttest.FencesRefusal} {
		for _, epoch := range []int{2, 999_999, math.MaxInt} {
			synctest.Test(t, func(t *testing.T) {
				x := &hosttest.Hostiles{
					Attacks: map[string]hosttest.Attack{"evil": attack},
					Run:     time.Second,
					Epoch:   epoch,
				}
				r, _ := hostileRig(t, x)
				r.start(&jobs.Table{}, "good", "evil").submit(20)
				r.finish(20)
				refused := func(n string) bool { return strings.HasPrefix(n, "evil: it claims") }
				if !slices.ContainsFunc(r.notices, refused) {
					t.Errorf("%v, epoch %d: no notice names the host: %q", attack, epoch, r.notices)
				}
			})
		}
		synctest.Test(t, func(t *testing.T) {
			x := &hosttest.Hostiles{Attacks: map[string]hosttest.Attack{"evil": attack}, Run: time.Hour, Epoch: 2}
			r, _ := hostileRig(t, x)
			r.journal.FencedBy(2)
			began := time.Now()
			r.start(&jobs.Table{}, "good", "evil").submit(20)
			<-r.d.Finished()
			if took := time.Since(began); took > time.Second {
				t.Errorf("%v: a dispatcher that was taken over stops after %v", attack, took)
			}
			r.close(sched.Fenced)
		})
	}
}
