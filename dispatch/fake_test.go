package dispatch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// fakeHosts is a Connector whose hosts run every job for a given time. They keep their state across
// connections, as a spool does.
type fakeHosts struct {
	mu         sync.Mutex
	t          *testing.T
	journal    *jobstest.Journal
	runTime    time.Duration
	refuse     map[string]error // errors that Connect returns, by host
	workers    map[string]*fakeWorker
	started    map[jobs.AttemptID]int
	outcomes   map[jobs.AttemptID]*jobs.Outcome
	goodbyes   []hosts.Bye
	killed     []jobs.AttemptID
	launches   int
	unanswered bool    // reads are not answered
	reads      []int64 // ids of the reads that were not answered
	// Answers reads of returned files, unless its result is nil.
	returned func(*hosts.Read) *hosts.Chunk
	files    int              // number of files that each job returns
	released []jobs.AttemptID // attempts whose directories may be removed
	apart    map[string]bool  // hosts that do not see the run directory
	packed   map[string][]jobs.AttemptID
	packTime time.Duration // how long a host needs after a Bye
	wg       sync.WaitGroup
}

func newFakeHosts(t *testing.T, j *jobstest.Journal, run time.Duration) *fakeHosts {
	return &fakeHosts{t: t, journal: j, runTime: run, refuse: map[string]error{}, workers: map[string]*fakeWorker{},
		started: map[jobs.AttemptID]int{}, outcomes: map[jobs.AttemptID]*jobs.Outcome{}, apart: map[string]bool{},
		packed: map[string][]jobs.AttemptID{}}
}

func (f *fakeHosts) Connect(ctx context.Context, h *hosts.Host, open *hosts.Open) (hosts.Worker, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refuse[h.Name]; err != nil {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: err}
	}
	w := &fakeWorker{f: f, host: h.Name, Worker: hosttest.NewWorker(hosts.Hello{Version: 1, BootID: h.Name, OS: "linux",
		Cores: 4, Slots: 4, MemBytes: 1 << 33, Shared: !f.apart[h.Name], Dir: "/run"}, 0, nil)}
	f.workers[h.Name] = w
	return w, nil
}

// cut breaks the link to a host and refuses new ones.
func (f *fakeHosts) cut(name, why string) {
	f.mu.Lock()
	w := f.workers[name]
	f.refuse[name] = errors.New(why)
	f.mu.Unlock()
	w.Cut(errors.New("broken pipe"))
}

// heal lets hosts accept links again.
func (f *fakeHosts) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.refuse)
}

// forget waits for the jobs to end without reporting their ends.
func (f *fakeHosts) forget() {
	f.mu.Lock()
	f.workers = map[string]*fakeWorker{}
	f.mu.Unlock()
	f.wg.Wait()
}

// fakeWorker is the connection to one fake host.
type fakeWorker struct {
	*hosttest.Worker
	f    *fakeHosts
	host string
}

func (w *fakeWorker) Send(ms ...hosts.Message) error {
	for _, m := range ms {
		switch m := m.(type) {
		case *hosts.Launch:
			w.launch(m)
		case *hosts.Probe:
			w.probe(m)
		case *hosts.Kill:
			w.f.mu.Lock()
			w.f.killed = append(w.f.killed, m.Attempts...)
			w.f.mu.Unlock()
			for _, id := range m.Attempts {
				w.finish(id, jobs.Outcome{Signal: "SIGTERM", Stopped: true})
			}
		case *hosts.Returned:
			w.f.mu.Lock()
			for _, id := range m.Attempts {
				if !w.f.journal.Has(func(r *jobs.Record) bool { return r.Outcome != nil && r.Attempt() == id }) {
					w.f.t.Errorf("the files of %s may be removed before its outcome is durable", id)
				}
				w.f.released = append(w.f.released, id)
			}
			w.f.mu.Unlock()
		case *hosts.Read:
			if w.f.returned != nil && m.File == hosts.FileReturned {
				if c := w.f.returned(m); c != nil {
					c.ID = m.ID
					w.Say(c)
				}
				break
			}
			w.f.mu.Lock()
			unanswered := w.f.unanswered
			if unanswered {
				w.f.reads = append(w.f.reads, m.ID)
			}
			w.f.mu.Unlock()
			if !unanswered {
				w.Say(&hosts.Chunk{ID: m.ID, Size: 5, Bulk: []byte("hello")})
			}
		case *hosts.Pack:
			w.f.mu.Lock()
			w.f.packed[w.host] = append(w.f.packed[w.host], m.Attempts...)
			w.f.mu.Unlock()
		case *hosts.Bye:
			w.f.mu.Lock()
			w.f.goodbyes = append(w.f.goodbyes, *m)
			w.f.mu.Unlock()
			w.f.wg.Go(func() {
				time.Sleep(w.f.packTime)
				w.Cut(nil) // it disconnects as asked
			})
		}
	}
	return nil
}

func (w *fakeWorker) launch(m *hosts.Launch) {
	for _, job := range m.Jobs {
		if !w.f.journal.Has(func(r *jobs.Record) bool {
			return r.Kind == jobs.KindLaunching && r.Attempt() == job.Attempt
		}) {
			w.f.t.Errorf("attempt %s reached its host before its record was durable", job.Attempt)
		}
		w.f.mu.Lock()
		w.f.launches++
		w.f.started[job.Attempt]++
		again := w.f.started[job.Attempt] > 1
		w.f.mu.Unlock()
		if again {
			w.f.t.Errorf("attempt %s was launched twice", job.Attempt)
		}
		w.Say(&hosts.Started{Jobs: []hosts.StartedJob{{Attempt: job.Attempt, Slot: 1}}})
		w.f.wg.Go(func() {
			time.Sleep(w.f.runTime) // virtual time: the bubble's clock
			w.finish(job.Attempt, jobs.Outcome{Files: int32(w.f.files), Started: 1, Ended: 1 + jobs.Stamp(w.f.runTime)})
		})
	}
}

func (w *fakeWorker) finish(id jobs.AttemptID, o jobs.Outcome) {
	w.f.mu.Lock()
	known := w.f.outcomes[id]
	if known == nil {
		w.f.outcomes[id] = &o
	}
	now := w.f.workers[w.host]
	w.f.mu.Unlock()
	if known == nil && now != nil {
		now.Say(&hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Slot: 1, Outcome: o}}})
	}
}

func (w *fakeWorker) probe(m *hosts.Probe) {
	var out hosts.Probed
	w.f.mu.Lock()
	for _, id := range m.Attempts {
		p := hosts.ProbedJob{Attempt: id, Answer: hosts.NeverStarted}
		if w.f.started[id] > 0 {
			p.Answer = hosts.IsRunning
		}
		if o := w.f.outcomes[id]; o != nil {
			copied := *o // a message belongs to its receiver
			p.Answer, p.Outcome = hosts.HasExited, &copied
		}
		out.Jobs = append(out.Jobs, p)
	}
	w.f.mu.Unlock()
	w.Say(&out)
}
