package runview

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// TestTwoViewsAndATakeover checks two screens that view a run while one dispatcher after another
// runs it. They never reconnect, because all updates are just more records. One of them reads only
// files.
func TestTwoViewsAndATakeover(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		files := l.open(Options{})
		defer files.Close()
		l.submit(sleepJobs(6)...)
		time.Sleep(10 * time.Second)
		last := map[*View]uint64{}
		both := func(what string, is func(*Snapshot) bool) {
			t.Helper()
			l.sync()
			time.Sleep(3 * time.Second)
			for _, v := range []*View{l.v, files} {
				p, err := v.Snapshot(t.Context(), Query{Jobs: windowOf(10)})
				if err != nil || !is(p) {
					t.Errorf("%s, files %v: status %v, epoch %d, %v, %q, %v", what, v == files, p.Status, p.Run.Epoch,
						p.Phases, p.Over, err)
				}
				if p.Version < last[v] {
					t.Errorf("%s: the version fell from %d to %d", what, last[v], p.Version)
				}
				last[v] = p.Version
			}
		}
		both("first", func(p *Snapshot) bool {
			return p.Status == StatusRunning && p.Run.Epoch == 1 && p.Phases[Running] == 2
		})
		l.stop()
		both("stopped", func(p *Snapshot) bool {
			return p.Status == StatusStopped && p.Run.Owner == "" &&
				strings.HasPrefix(p.Over, "the dispatcher was stopped: closed; 6 jobs left") && p.Phases[Away] == 2
		})
		for _, v := range []*View{l.v, files} {
			if _, err := v.run.FileRequest(&action.Request{Do: action.Continue, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		both("two requests", func(p *Snapshot) bool { return p.Requests == 2 })
		l.start("a")
		l.submit()
		both("second", func(p *Snapshot) bool {
			return p.Requests == 0 && p.Status == StatusRunning && p.Run.Epoch == 2 && p.Run.Owner != "" &&
				p.Phases[Running] == 2 && p.Over == ""
		})
		if ans, err := files.Do(t.Context(), action.Request{Do: action.Cancel, Jobs: jobs.One(6)}); err != nil ||
			ans.Done != 1 || ans.Changed.Count() != 1 {
			t.Errorf("a cancel through a file: %+v, %v", ans, err)
		}
		if l.v.connection() == nil || files.connection() != nil {
			t.Error("the wrong view is connected")
		}
	})
}

// TestRemovedRunDirectoryIsReported checks that the removal of a run directory is reported, and
// that the last state stays visible.
func TestRemovedRunDirectoryIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "a")
		l.submit(sleepJobs(2)...)
		time.Sleep(5 * time.Second)
		l.look(Query{})
		l.v.Close()
		l.stop()
		v := Open(l.run, Options{})
		defer v.Close()
		if p := lookAt(t, v, Query{}); p.Total != 2 || p.Problem != "" {
			t.Fatalf("%d jobs, problem %q", p.Total, p.Problem)
		}
		must(t, os.Rename(l.dir, l.dir+".gone"))
		time.Sleep(3 * time.Second)
		p := lookAt(t, v, Query{Jobs: windowOf(5)})
		if p.Total != 2 || len(p.Jobs.Rows) != 2 || !strings.Contains(p.Problem, "was removed or moved") {
			t.Errorf("%d jobs, problem %q", p.Total, p.Problem)
		}
		must(t, os.Rename(l.dir+".gone", l.dir))
		time.Sleep(3 * time.Second)
		if p := lookAt(t, v, Query{}); p.Problem != "" || p.Total != 2 {
			t.Errorf("it is back, and the problem is %q", p.Problem)
		}
	})
}

// disk is a disk that can hang and can hide files.
type disk struct {
	rundir.Disk
	hang atomic.Pointer[chan struct{}]
	mu   sync.Mutex
	hide string
}

func (d *disk) wait() {
	if c := d.hang.Load(); c != nil {
		<-*c
	}
}

func (d *disk) Names(dir string) ([]string, error) {
	d.wait()
	names, err := d.Disk.Names(dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(names, func(n string) bool { return n == d.hide }), err
}

func (d *disk) OpenFile(path string, flag int, perm os.FileMode) (rundir.File, error) {
	d.wait()
	return d.Disk.OpenFile(path, flag, perm)
}

// TestKeysWorkWhileTheDiskHangs checks that keys and drawing work while the disk hangs. Updates
// from the socket are shown, and the screen reports that the run directory does not respond.
func TestKeysWorkWhileTheDiskHangs(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(5)...)
		time.Sleep(5 * time.Second)
		d := &disk{Disk: rundir.OS}
		v := Open(&rundir.Run{Dir: l.dir, Settings: l.run.Settings, Nonce: l.run.Nonce, Disk: d},
			Options{Socket: l.dial})
		defer v.Close()
		v.Connect(t.Context())
		if p := lookAt(t, v, Query{}); p.Phases[Running] != 2 {
			t.Fatalf("phases: got %v, want 2 running jobs", p.Phases)
		}
		free := make(chan struct{})
		d.hang.Store(&free)
		time.Sleep(10 * time.Second)
		state := l.conn.last()
		state.Stuck = "pushed meanwhile"
		state.At = time.Now()
		l.conn.Publish(nil, &state)
		began := time.Now()
		p := lookAt(t, v, Query{Jobs: &JobsWindow{Rows: 5, Filter: "state=queue"}, Focus: 4})
		if took := time.Since(began); took > time.Second || p.Jobs.Matched != 3 || p.Stuck != "pushed meanwhile" ||
			!strings.Contains(p.Problem, "does not answer") {
			t.Errorf("after %v: %d jobs match, stuck %q, problem %q", took, p.Jobs.Matched, p.Stuck, p.Problem)
		}
		if _, err := v.Match(t.Context(), "sleep"); err != nil {
			t.Error(err)
		}
		d.hang.Store(nil)
		close(free)
		time.Sleep(3 * time.Second)
		if p := lookAt(t, v, Query{}); p.Problem != "" {
			t.Errorf("the disk answers, and the problem is %q", p.Problem)
		}
	})
}

// TestProblemOfTheDispatcherIsShown checks that a problem of the dispatcher, such as a full disk,
// is shown when the dispatcher pushes it, and otherwise from the owner file.
func TestProblemOfTheDispatcherIsShown(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		files := l.open(Options{})
		defer files.Close()
		must(t, l.journal.SetProblem("the disk is full"))
		l.pub.Close(t.Context())
		must(t, os.Remove(l.run.Path(rundir.LiveFile)))
		other := l.open(Options{})
		defer other.Close()
		state := l.conn.last()
		state.Problem, state.At = "the disk is full: no space left on device", time.Now()
		l.conn.Publish(nil, &state)
		time.Sleep(2 * time.Second)
		for _, c := range []struct {
			v    *View
			want string
		}{{l.v, state.Problem}, {other, "the disk is full"}} {
			if p := lookAt(t, c.v, Query{}); p.Problem != c.want || p.Status != StatusRunning {
				t.Errorf("problem %q, want %q", p.Problem, c.want)
			}
		}
		l.pub = nil
	})
}

// TestQuestionIsShownWhereItCanBeAnswered checks that a dispatcher's question is shown where it can
// be answered. Elsewhere the view names the place.
func TestQuestionIsShownWhereItCanBeAnswered(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		files := l.open(Options{})
		defer files.Close()
		l.pub.SetQuestion(&live.Question{ID: 1, Text: "Passphrase of k", Secret: true})
		time.Sleep(3 * time.Second)
		if p := lookAt(t, l.v, Query{}); p.Question == nil || p.Question.ID != 1 {
			t.Errorf("the question is %+v", p.Question)
		}
		if p := lookAt(t, files, Query{}); p.Question != nil || !strings.Contains(p.Problem, "Passphrase of k") {
			t.Errorf("got question %+v, problem %q; want the question as a problem", p.Question, p.Problem)
		}
		for n, fine := range map[int64]bool{1: true, 2: false} {
			err := l.v.Reply(t.Context(), n, "x")
			if (err == nil) != fine {
				t.Errorf("reply to question %d: %v", n, err)
			}
		}
	})
}

// TestOutputOfAHostApart checks that the output of a running job on a host that shares nothing is
// read through the dispatcher.
func TestOutputOfAHostApart(t *testing.T) {
	withLab(t, apart, func(t *testing.T, l *lab) {
		l.submit(sleepJobs(1)...)
		time.Sleep(5 * time.Second)
		there := t.TempDir() // what the host reads
		l.far = there
		id := jobs.AttemptID{Job: 1, N: 1}
		write(t, there, id, "far away")
		x, err := l.v.Read(t.Context(), Read{Attempt: id, File: jobs.FileOut})
		if err != nil || string(x.Data) != "far away" || x.Over {
			t.Errorf("Read: got %+v, %v; want \"far away\"", x, err)
		}
	})
}

// TestOwnerElsewhereLivesByItsHeartbeat checks that a dispatcher on another machine is alive as
// long as its heartbeat changes, measured by this machine's clock. Whoever takes the run over from a silent
// one learns that its silence was observed.
func TestOwnerElsewhereLivesByItsHeartbeat(t *testing.T) {
	run := disktest.NewRun(t)
	must(t, run.AppendSpecs(jobstest.Specs(1)))
	j, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{})
	must(t, err)
	defer j.Close()
	heartbeats := func() { disktest.Elsewhere(t, run, disktest.Heartbeats) }
	heartbeats()
	synctest.Test(t, func(t *testing.T) {
		var silent *journal.Owner
		v := Open(run, Options{Act: func(_ context.Context, _ action.Request, o *journal.Owner) (*Answer, error) {
			silent = o
			return &Answer{}, nil
		}})
		defer v.Close()
		for range 5 {
			time.Sleep(20 * time.Second)
			heartbeats()
			if p := lookAt(t, v, Query{}); p.Status != StatusRunning || p.Run.Machine != "elsewhere" {
				t.Errorf("status %v, %q", p.Status, p.Over)
			}
		}
		time.Sleep(journal.StaleAfter + 3*time.Second)
		if p := lookAt(t, v, Query{}); p.Status != StatusSilent || !strings.Contains(p.Over, "no heartbeat") ||
			p.Total != 1 {
			t.Errorf("status %v, %q, %d jobs", p.Status, p.Over, p.Total)
		}
		if _, err := v.Do(t.Context(), action.Request{Do: action.Resume}); err != nil || silent == nil ||
			silent.Host != "elsewhere" {
			t.Errorf("whoever resumes the run learns that %v is silent, %v", silent, err)
		}
		heartbeats()
		time.Sleep(3 * time.Second)
		if p := lookAt(t, v, Query{}); p.Status != StatusRunning {
			t.Errorf("status %v after a heartbeat", p.Status)
		}
	})
}

// TestLateRecordsOfAFencedDispatcherDisappear checks that late records of a fenced-off dispatcher
// disappear when the record that fixes the length of its file is seen, and that everything is
// rebuilt.
func TestLateRecordsOfAFencedDispatcherDisappear(t *testing.T) {
	d := &disk{Disk: rundir.OS, hide: "000002.jsonl"}
	run := disktest.NewRun(t)
	must(t, run.AppendSpecs(jobstest.Specs(3)))
	write := func(j *journal.Journal, recs ...jobs.Record) {
		t.Helper()
		must(t, j.Append(recs))
		must(t, j.Sync())
	}
	old, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{})
	must(t, err)
	write(old, jobs.Record{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: 3})
	file := run.Path(rundir.JournalDir, "000001.jsonl")
	before, err := os.ReadFile(file)
	must(t, err)
	write(old, jobs.Record{Kind: jobs.KindJob, At: 2, Job: 1, Next: jobs.Canceled, Seq: 1, Reason: "too late"})
	after, err := os.ReadFile(file)
	must(t, err)
	must(t, old.Close())
	must(t, os.WriteFile(file, before, 0o600)) // what its successor found
	next, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{Force: true})
	must(t, err)
	write(next, jobs.Record{Kind: jobs.KindJob, At: 3, Job: 2, Next: jobs.Canceled, Seq: 1, Reason: "in time"})
	must(t, next.Close())
	must(t, os.WriteFile(file, after, 0o600))
	run.Disk = d
	synctest.Test(t, func(t *testing.T) {
		v := Open(run, Options{})
		defer v.Close()
		states := func() string { return phasesOf(lookAt(t, v, Query{Jobs: &JobsWindow{Rows: 5, Sort: SortID}})) }
		if got := states(); got != "cancel queue queue" {
			t.Errorf("%s before the takeover shows", got)
		}
		version := lookAt(t, v, Query{}).Version
		d.mu.Lock()
		d.hide = ""
		d.mu.Unlock()
		time.Sleep(3 * time.Second)
		p := lookAt(t, v, Query{Jobs: windowOf(5), Events: &EventsWindow{All: true, Rows: 50}})
		if got := states(); got != "queue cancel queue" || p.Phases[Canceled] != 1 || p.Version <= version ||
			p.Run.Epoch != 2 {
			t.Errorf("%s, %v, version %d after %d", got, p.Phases, p.Version, version)
		}
		for _, e := range p.Events.Lines {
			if strings.Contains(e.Text, "too late") {
				t.Errorf("the log has %q", e.Text)
			}
		}
	})
}
