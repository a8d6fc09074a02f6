package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// slowJournal is a fakeJournal whose disk can hang and whose directory can vanish.
type slowJournal struct {
	*fakeJournal
	gate chan struct{} // if not nil, Sync and Fenced wait to receive from it
	gone error
	fail error // error of Sync
}

func (j *slowJournal) Sync() error {
	j.mu.Lock()
	gate, fail := j.gate, j.fail
	j.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if fail != nil {
		return fail
	}
	return j.fakeJournal.Sync()
}

func (j *slowJournal) Fenced() (int, error) {
	j.mu.Lock()
	gate := j.gate
	j.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if n, err := j.fakeJournal.Fenced(); n > 0 || err != nil {
		return n, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return 0, j.gone
}

func (j *slowJournal) hang(gate chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gate = gate
}

func (j *slowJournal) refuse(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail = err
}

func (j *slowJournal) vanish(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gone = err
}

func slowRig(t *testing.T, run time.Duration) (*rig, *slowJournal) {
	r := &rig{t: t, journal: &fakeJournal{t: t}}
	slow := &slowJournal{fakeJournal: r.journal}
	r.hosts = newFakeHosts(t, r.journal, run)
	r.on = slow
	return r.start(&jobs.Table{}, "a"), slow
}

// told returns the number of notices so far that contain part.
func (r *rig) told(part string) (n int) {
	count := func(*engine) {
		for _, line := range r.notices {
			if strings.Contains(line, part) {
				n++
			}
		}
	}
	if r.d.call(context.Background(), count) != nil {
		count(nil)
	}
	return n
}

// TestHungRunDirectoryIsReported checks that a hung run directory does not block the dispatcher. It
// is reported in one message, nothing is launched, and hosts and users are still served. The run
// continues when the directory answers.
func TestHungRunDirectoryIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, slow := slowRig(t, 20*time.Second)
		r.submit(8) // four run at once
		time.Sleep(10 * time.Second)
		gate := make(chan struct{})
		slow.hang(gate)
		time.Sleep(time.Minute)
		if n := r.hosts.launches; n > 6 { // the buffered jobs may have been more than four
			t.Errorf("%d launches", n)
		}
		s := r.d.Snapshot() // does not block
		if !strings.Contains(s.Problem, "has not answered") {
			t.Errorf("problem: %q", s.Problem)
		}
		if n := r.told("nothing is launched"); n != 1 {
			t.Errorf("told %d times", n)
		}
		slow.hang(nil)
		close(gate)
		res := r.drain()
		if len(res) != 8 || r.told("the run continues") != 1 {
			t.Errorf("%d results", len(res))
		}
		for _, x := range res {
			if x.State != jobs.Succeeded {
				t.Errorf("job %d %s", x.Job, x.State)
			}
		}
		r.close(sched.AllDone)
	})
}

// TestAVanishedRunDirectoryStopsLaunching checks that a removed run directory is reported in one
// message and stops launching. When it returns, the run continues (promise 5).
func TestAVanishedRunDirectoryStopsLaunching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, slow := slowRig(t, time.Second)
		slow.vanish(errors.New("journal/000001.jsonl is gone: was the run x removed?"))
		time.Sleep(5 * time.Second)
		r.submit(3)
		time.Sleep(30 * time.Second)
		if r.hosts.launches != 0 || r.told("nothing is launched: journal/000001.jsonl is gone") != 1 || r.d.Snapshot().Problem == "" {
			t.Errorf("%d launches, problem %q", r.hosts.launches, r.d.Snapshot().Problem)
		}
		slow.vanish(nil)
		if res := r.drain(); len(res) != 3 {
			t.Errorf("%d results", len(res))
		}
		r.close(sched.AllDone)
	})
}

// TestHungRunDirectoryIsReportedWhileJobsRun checks that a hung run directory is also reported when
// there is nothing to write (promise 5).
func TestHungRunDirectoryIsReportedWhileJobsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, slow := slowRig(t, time.Hour)
		r.submit(1)
		time.Sleep(30 * time.Second)
		gate := make(chan struct{})
		slow.hang(gate)
		time.Sleep(15 * time.Second)
		if r.told("nothing is launched") != 1 || r.d.Snapshot().Problem == "" {
			t.Errorf("problem %q", r.d.Snapshot().Problem)
		}
		slow.hang(nil)
		close(gate)
		time.Sleep(10 * time.Second)
		if s := r.d.Snapshot(); s.Problem != "" || r.told("the run continues") != 1 {
			t.Errorf("problem %q", s.Problem)
		}
		r.drain()
		r.close(sched.AllDone)
	})
}
