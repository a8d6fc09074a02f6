package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

var must = polltest.Must

// deadConnector is a connector to hosts that never answer.
type deadConnector struct{}

func (deadConnector) Connect(ctx context.Context, _ *hosts.Host, _ *hosts.Open) (hosts.Worker, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// stage is an inbox with a dispatcher of a run with three queued jobs and one host, which never
// answers.
type stage struct {
	*Inbox
	t        *testing.T
	run      *rundir.Run
	journal  *jobstest.Journal
	mu       sync.Mutex
	messages []string
	calls    []string // calls of the functions in Options
}

func (s *stage) notes() (said, calls []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages), slices.Clone(s.calls)
}

func newStage(t *testing.T) *stage {
	t.Helper()
	run := disktest.NewRun(t)
	must(t, run.MakeRequestsDir())
	s := &stage{t: t, run: run, journal: new(jobstest.Journal)}
	table := &jobs.Table{Requests: map[string]bool{oldName: true}, Epoch: 2}
	d, err := dispatch.Start(dispatch.Config{RunUID: run.UID(), RunDir: run.Dir,
		Inventory:  &hosts.Inventory{Hosts: []*hosts.Host{{Name: "a", Link: "ssh"}}},
		Connector:  deadConnector{},
		Journal:    s.journal,
		Table:      table,
		StoreSpecs: run.AppendSpecs,
		Open:       hosts.Open{Epoch: 2}})
	must(t, err)
	must(t, d.Submit(jobstest.Specs(3), false))
	s.Inbox = New(Options{Run: run, Dispatcher: d, Print: func(text func() string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.messages = append(s.messages, text())
	},
		IsCanceled: func() bool { return false }, Cancel: s.recordCall("cancel"), OnContinue: s.recordCall("continue"),
		DrainText:        func() string { return "draining" },
		LeavesSubmits:    func() bool { return false },
		MakeDirsAbsolute: func([]*jobs.Spec) {}})
	return s
}

// end closes the dispatcher. It must be called inside the bubble of the test.
func (s *stage) end() {
	s.journal.Fail(nil)
	s.Dispatcher.Close()
}

func (s *stage) recordCall(what string) func() {
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, what)
	}
}

// TestWaitingRequestThatCanDoNothingIsRefused checks that a resume of a finished run refuses a pause
// that was left when its last dispatcher ended. Otherwise the pause would hold back jobs that are
// added much later.
func TestWaitingRequestThatCanDoNothingIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		s.Found = action.Target{IsFinished: true}
		name, err := s.run.FileRequest(&action.Request{Do: action.Pause, At: time.Now()})
		must(t, err)
		s.TakeWaiting()
		s.wait(time.Second)
		if answered, _ := s.Dispatcher.Answered(name); !answered || s.Dispatcher.Snapshot().Paused {
			t.Errorf("the pause is answered: %v, launching is paused: %v; want it answered and refused", answered,
				s.Dispatcher.Snapshot().Paused)
		}
		if _, err := s.run.Disk.Lstat(s.run.Path(rundir.RequestsDir, name+".json.refused")); err != nil {
			t.Errorf("the pause is not set aside: %v", err)
		}
	})
}

// wait lets time pass until all goroutines are blocked.
func (s *stage) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// answer returns the journal's answer to a request, or "".
func (s *stage) answer(name string) string {
	synctest.Wait()
	for _, r := range s.journal.Durable() {
		if r.Kind == jobs.KindRequest && r.Request == name {
			return fmt.Sprintf("%d done, %d left %s", r.Count, r.N, r.Reason)
		}
	}
	return ""
}

func (s *stage) request(name string, q *action.Request) error {
	body, err := q.Encode()
	must(s.t, err)
	return s.Request(s.t.Context(), name, body)
}

const (
	oldName = "20260314T150200.000000Z-aaaaaaaa"
	name1   = "20260314T150200.000001Z-aaaaaaaa"
	name2   = "20260314T150200.000002Z-aaaaaaaa"
	name3   = "20260314T150200.000003Z-aaaaaaaa"
)

func (s *stage) files() string {
	list, err := os.ReadDir(s.run.Path(rundir.RequestsDir))
	must(s.t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestRequestFilesAreProcessedOnce checks that request files are processed once, in order, and
// removed when the answer is durable. A request that cannot be carried out is answered and set
// aside. Other files are set aside.
func TestRequestFilesAreProcessedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		over := make(chan struct{})
		defer close(over)
		s.journal.Fail(errors.New("no space left on device"))
		put := func(name, text string) {
			must(t, os.WriteFile(s.run.Path(rundir.RequestsDir, name), []byte(text), 0o600))
		}
		// Already answered, but its removal was lost.
		put(oldName+".json", `{"v":1,"do":"cancel","all":true}`)
		put(name1+".json", `{"v":1,"do":"cancel","jobs":"2-9"}`)
		put(name2+".json", `{"v":1,"do":"pause","host":"a"}`)
		put(name3+".json", `{"v":1,"do":"drain","epoch":1}`)
		put("notes", "")
		s.TakeWaiting()
		go s.Serve(over)
		s.wait(10 * time.Second)
		if got, want := s.files(), name1+".json "+name2+".json.refused "+name3+".json notes.refused"; got != want {
			t.Errorf("files while nothing is durable: %s, want %s", got, want)
		}
		s.journal.Fail(nil)
		s.wait(10 * time.Second)
		if got, want := s.files(), name2+".json.refused notes.refused"; got != want {
			t.Errorf("files: %s, want %s", got, want)
		}
		for name, want := range map[string]string{
			oldName: "",
			name1:   "2 done, 0 left ",
			name2:   `0 done, 0 left "pause" does not accept host`,
			name3:   "0 done, 0 left it is for the dispatcher of epoch 1, and this is epoch 2",
		} {
			if got := s.answer(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if _, calls := s.notes(); len(calls) > 0 {
			t.Errorf("called %v", calls)
		}
	})
}

// TestStrangersAreReportedOnce checks that files that are not requests, and cannot be set aside, are
// reported once and do not keep requests waiting.
func TestStrangersAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		over := make(chan struct{})
		defer close(over)
		long := strings.Repeat("a", 255) // .refused makes it too long
		for _, name := range []string{"taken", "taken.refused", "taken.refused/x", long} {
			must(t, os.Mkdir(s.run.Path(rundir.RequestsDir, name), 0o700))
		}
		s.TakeWaiting()
		go s.Serve(over)
		s.wait(10 * time.Second)
		must(t, os.WriteFile(s.run.Path(rundir.RequestsDir, name1+".json"), []byte(`{"v":1,"do":"pause"}`), 0o600))
		s.wait(10 * time.Second)
		if got, want := s.files(), long+" taken taken.refused"; got != want {
			t.Errorf("files: %s, want %s", got, want)
		}
		if said, _ := s.notes(); len(said) != 4 {
			t.Errorf("messages:\n%s", strings.Join(said, "\n"))
		}
	})
}

// TestRequestOnAFullDisk checks that a request through the socket is carried out while the disk is
// full, and only once under its name. The call returns when the answer is durable.
func TestRequestOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		s.journal.Fail(errors.New("no space left on device"))
		answer := make(chan error, 2)
		for range 2 {
			go func() { answer <- s.request(name1, &action.Request{Do: action.Pause}) }()
		}
		s.wait(time.Minute)
		if snap := s.Dispatcher.Snapshot(); !snap.Paused || len(answer) > 0 {
			t.Errorf("paused: %v, %d answers", snap.Paused, len(answer))
		}
		s.journal.Fail(nil)
		s.wait(time.Minute)
		if err := errors.Join(<-answer, <-answer); err != nil || s.answer(name1) != "1 done, 0 left " {
			t.Errorf("got error %v, answer %q; want 1 job done", err, s.answer(name1))
		}
		if err := s.request(oldName, &action.Request{Do: action.Cancel, All: true}); err != nil {
			t.Errorf("what an earlier dispatcher answered: %v", err)
		}
		// The same request may also arrive as a file.
		must(t, s.run.FileRequestAs(name1, &action.Request{Do: action.Pause}))
		s.TakeWaiting()
		if got := s.files(); got != "" {
			t.Errorf("files: %s", got)
		}
	})
}

// TestInvalidRequestIsRefused checks that an invalid request is refused, and that a request is not
// taken while the dispatcher ends.
func TestInvalidRequestIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		var refused *socket.RefusedError
		for name, body := range map[string]string{"x": `{"v":1,"do":"pause"}`, name1: `{"v":1,"do":"rm"}`,
			name2: `{"v":2,"do":"pause"}`} {
			if err := s.Request(t.Context(), name, json.RawMessage(body)); !errors.As(err, &refused) {
				t.Errorf("%s %s: %v", name, body, err)
			}
		}
		s.end()
		if err := s.request(name1, &action.Request{Do: action.Pause}); !errors.Is(err, socket.ErrNotTaken) {
			t.Errorf("after the end: %v", err)
		}
		if err := s.Wake(t.Context(), name1); !errors.Is(err, ErrLeaving) {
			t.Errorf("woken after the end: %v", err)
		}
	})
}

// TestEarlyRequestThroughTheSocket checks that a request through the socket may name jobs that are
// still being submitted.
func TestEarlyRequestThroughTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		answer := make(chan error)
		go func() {
			answer <- s.request(name1, &action.Request{Do: action.Cancel, Jobs: jobs.Ranges{{First: 3, Last: 4}}})
		}()
		s.wait(time.Minute / 2)
		if got := s.answer(name1); got != "" {
			t.Errorf("job 4 is not waited for: %s", got)
		}
		must(t, s.Dispatcher.Submit(jobstest.Specs(1), false))
		s.TakeWaiting()
		if err := <-answer; err != nil || s.answer(name1) != "2 done, 0 left " {
			t.Errorf("got error %v, answer %s; want 2 jobs done", err, s.answer(name1))
		}
		if err := s.request(name2, &action.Request{Do: action.Cancel, Jobs: jobs.One(99)}); err != nil ||
			s.answer(name2) != "0 done, 0 left " {
			t.Errorf("a job that never comes: %v, %s", err, s.answer(name2))
		}
	})
}

// TestStopIsAnswered checks that a stop is answered although the dispatcher ends because of it.
func TestStopIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		if err := s.request(name1, &action.Request{Do: action.StopRun, Epoch: 2}); err != nil {
			t.Error(err)
		}
		<-s.Dispatcher.Finished()
	})
}

// TestJobsArriveOnceBySocketAndFile checks that jobs are submitted once if they arrive through the
// socket and as a file with the same name.
func TestJobsArriveOnceBySocketAndFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		q := &action.Request{Do: action.Submit, Specs: action.SpecsText(jobstest.Specs(2))}
		must(t, s.request(name1, q))
		must(t, s.run.FileRequestAs(name1, q))
		s.TakeWaiting()
		if n := s.Dispatcher.Snapshot().Total; n != 5 || s.answer(name1) != "2 done, 0 left " || s.files() != "" {
			t.Errorf("%d jobs, %q, files %q", n, s.answer(name1), s.files())
		}
	})
}

// TestFindStoredFindsUnansweredJobs checks that FindStored finds the jobs of requests that were
// stored but not answered.
func TestFindStoredFindsUnansweredJobs(t *testing.T) {
	specs := jobstest.Specs(4)
	specs[1].Options = &jobs.Options{Request: oldName}
	specs[2].Options = &jobs.Options{Request: name1}
	specs[3].Options = &jobs.Options{Request: name1}
	got := FindStored(&jobs.Table{Specs: specs[:3], Requests: map[string]bool{oldName: true}}, specs[3:])
	if len(got) != 1 || got[name1] != (Stored{3, 2}) {
		t.Errorf("FindStored: got %v, want 2 jobs from job 3 for the new request only", got)
	}
}

// TestEachStopFileIsOneRequest checks that each STOP file becomes a request once (D7), and that the
// stronger one also takes effect after the weaker. Removing STOP ends its drain, and creating it
// again drains again. A STOP file that was not created by the user of the run has no effect, which
// is reported once.
func TestEachStopFileIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		over := make(chan struct{})
		defer close(over)
		s.Dispatcher.Do(sched.Pause{On: true})
		s.Dispatcher.Do(sched.Hold{By: sched.HoldRequests, On: true})
		go s.Serve(over) // stored jobs are still being submitted
		asked := func() string {
			var b bytes.Buffer
			for _, r := range s.journal.Durable() {
				if strings.HasPrefix(r.Request, stopSource) && r.Kind == jobs.KindRequest {
					fmt.Fprintf(&b, "%s:%d ", r.Request, r.Count)
				}
			}
			return strings.TrimSpace(b.String())
		}
		must(t, os.Symlink(rundir.SettingsFile, s.run.Path(rundir.StopNowFile)))
		s.wait(time.Minute)
		if said, _ := s.notes(); asked() != "" || len(said) != 1 {
			t.Errorf("a link asks for %q, said %q", asked(), said)
		}
		must(t, os.Remove(s.run.Path(rundir.StopNowFile)))
		must(t, os.WriteFile(s.run.Path(rundir.StopNowFile), nil, 0o600))
		s.wait(time.Minute)
		if _, calls := s.notes(); asked() != "stop-file.2.1:3" || !slices.Equal(calls, []string{"cancel"}) {
			t.Errorf("STOP.now: %q, called %v", asked(), calls)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.end()
		for range 2 {
			must(t, os.WriteFile(s.run.Path(rundir.StopFile), nil, 0o600))
			s.pollStopFiles()
			s.pollStopFiles()
			must(t, os.Remove(s.run.Path(rundir.StopFile)))
			s.pollStopFiles()
			s.pollStopFiles()
		}
		if s.numAsked.Load() != 4 {
			t.Errorf("%d requests, want two drains and their ends", s.numAsked.Load())
		}
	})
}
