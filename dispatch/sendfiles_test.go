package dispatch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
)

// returner answers reads for a host whose jobs return out/a. It does not answer until open is set.
type returner struct {
	open   atomic.Bool
	isGone bool
	text   string
}

func (r *returner) answer(m *hosts.Read) *hosts.Chunk {
	switch {
	case !r.open.Load():
		return nil
	case m.Path == "":
		b := files.Manifest{{Path: "out/a", Kind: 'f', Size: int64(len(r.text))}}.Encode()
		return &hosts.Chunk{Size: int64(len(b)), Bulk: b[m.Offset:]}
	case r.isGone:
		return &hosts.Chunk{Size: -1, None: true, Why: "it was removed"}
	}
	return &hosts.Chunk{Size: int64(len(r.text)), Bulk: []byte(r.text)[m.Offset:]}
}

func returningRig(t *testing.T, host *returner) (r *rig, file string) {
	base := t.TempDir()
	r = idleRig(t, time.Second)
	r.files = Files{Source: files.NewSource(base), BaseDir: base, RecordDir: filepath.Join(base, "notes"),
		Return: []string{"out/a"}}
	r.hosts.returned, r.hosts.files = host.answer, 1
	return r, filepath.Join(base, "out/a")
}

// TestSuccessWaitsForFiles checks that a job that returns files counts as running until they have
// arrived, even if the link breaks in the meantime. Then it succeeds once, and when that is durable
// the host may remove its files (T1).
func TestSuccessWaitsForFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &returner{text: "made"}
		r, file := returningRig(t, host)
		r.start(&jobs.Table{}, "a").submit(1)
		time.Sleep(20 * time.Second)
		s := r.d.Snapshot()
		if s.Counts[jobs.Running] != 1 {
			t.Errorf("states while the files are on the way: %v", s.Counts)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("a file is here before all of it was read")
		}
		r.hosts.cut("a", "away")
		time.Sleep(10 * time.Second)
		r.hosts.heal()
		host.open.Store(true)
		r.drain()
		time.Sleep(time.Second)
		if b, err := os.ReadFile(file); err != nil || string(b) != "made" {
			t.Errorf("the file: got %q, %v; want \"made\"", b, err)
		}
		if got := r.d.Snapshot().Counts[jobs.Succeeded]; got != 1 {
			t.Errorf("%d jobs have succeeded", got)
		}
		r.hosts.mu.Lock()
		if len(r.hosts.released) != 1 {
			t.Errorf("the host may remove the files of %v", r.hosts.released)
		}
		r.hosts.mu.Unlock()
		r.close(sched.AllDone)
	})
}

// TestFileThatIsGone checks that a job fails, with the cause, if its host no longer has a file to
// return (T1).
func TestFileThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &returner{text: "made", isGone: true}
		host.open.Store(true)
		r, file := returningRig(t, host)
		r.start(&jobs.Table{}, "a").submit(1)
		res, err := r.d.Next(t.Context())
		if err != nil || res.State != jobs.Failed || res.Outcome == nil || !res.Outcome.Unreturned ||
			!strings.Contains(res.Outcome.Error, "it was removed") {
			t.Errorf("got %+v, %v; want a failure because the file was removed", res, err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("there is a file all the same")
		}
		r.close(sched.AllDone)
	})
}

// TestKillEndsTheReturn checks that an attempt that is killed while its files are being copied
// returns none (T1).
func TestKillEndsTheReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, file := returningRig(t, &returner{text: "made"})
		r.start(&jobs.Table{}, "a").submit(1)
		time.Sleep(20 * time.Second)
		r.d.Do(sched.Cancel{Jobs: []jobs.ID{1}})
		res, err := r.d.Next(t.Context())
		if err != nil || res.State != jobs.Canceled {
			t.Errorf("got %+v, %v; want it canceled", res, err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("a canceled job has returned a file")
		}
		r.close(sched.AllDone)
	})
}

// TestSeenOutcomeWithoutFiles checks that an outcome that is seen through another host, or through
// the dispatcher's own mount, does not count as a success before the files have arrived (T1, X2).
func TestSeenOutcomeWithoutFiles(t *testing.T) {
	r := newReturns()
	id, other := jobs.AttemptID{Job: 1, N: 1}, jobs.AttemptID{Job: 2, N: 1}
	m := &hosts.Inspected{Jobs: []hosts.ExitedJob{{Attempt: id, Outcome: jobs.Outcome{Files: 1}}, {Attempt: other}}}
	r.dropUnfetched(m)
	if len(m.Jobs) != 1 || m.Jobs[0].Attempt != other || len(m.Runs) != 1 || m.Runs[0] != id {
		t.Errorf("got %+v, want the attempt with files among those that run", m)
	}
	r.setFetched(id)
	m = &hosts.Inspected{Jobs: []hosts.ExitedJob{{Attempt: id, Outcome: jobs.Outcome{Files: 1}}}}
	if r.dropUnfetched(m); len(m.Jobs) != 1 {
		t.Errorf("got %+v, want the fetched attempt among the jobs", m)
	}
}

// TestWantOfSeveralContents checks that a piece has the contents that a host wants one after the
// other, and that a host gets no content that no manifest lists, nor too many.
func TestWantOfSeveralContents(t *testing.T) {
	base := t.TempDir()
	for name, text := range map[string]string{"a": "first", "b": "second", "c": "third"} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := &Dispatcher{}
	d.cfg.Files.Source = files.NewSource(base)
	m, err := d.cfg.Files.Source.Manifest([]string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(d, fakeHost("a"))
	defer a.cancel()
	var sums []string
	for _, e := range m {
		sums = append(sums, e.Sum.String())
	}
	for _, c := range []struct {
		name, want string
		message    hosts.Want
	}{
		{"all", "firstsecondthird", hosts.Want{Sums: sums, Limit: 100}},
		{"a part", "rstsecondth", hosts.Want{Sums: sums, Offset: 2, Limit: 11}},
		{"one", "second", hosts.Want{Sums: sums[1:2], Limit: 6}},
		{"an unknown one", "", hosts.Want{Sums: []string{sums[0], files.Sum{1}.String()}, Limit: 100}},
		{"too many", "", hosts.Want{Sums: slices.Repeat(sums, hosts.MaxContents), Limit: 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := a.readWanted(&c.message)
			if string(got) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestNumberOfWantsIsBounded checks that a host that asks for too many pieces of files at once is
// disconnected. Here no engine says which files an attempt gets, so no Want is answered.
func TestNumberOfWantsIsBounded(t *testing.T) {
	d := &Dispatcher{inputs: make(chan input, maxServing+1)}
	d.cfg.Files.Source = files.NewSource(t.TempDir())
	a := newAgent(d, fakeHost("evil"))
	defer a.cancel()
	a.worker = &fakeWorker{Worker: hosttest.NewWorker(hosts.Hello{}, 0, nil)}
	want := &hosts.Want{Attempt: jobs.AttemptID{Job: 1, N: 1}, Limit: 1}
	for range maxServing {
		a.serve(want)
	}
	if a.worker == nil {
		t.Fatalf("a host with %d Wants is disconnected", maxServing)
	}
	a.serve(want)
	if a.worker != nil {
		t.Fatalf("a host with %d Wants stays connected", maxServing+1)
	}
	var down sched.HostDown
	for down.Host == "" {
		down, _ = (<-d.inputs).ev.(sched.HostDown)
	}
	if down.Host != "evil" || down.Err == nil ||
		!strings.Contains(down.Err.Error(), "more than 64 pieces of files at once") {
		t.Errorf("got %+v, want evil to be down because it asks for too many pieces", down)
	}
}
