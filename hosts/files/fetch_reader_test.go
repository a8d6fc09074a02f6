package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
)

// machine is a simulated host. It records what it is sent.
type machine struct {
	*hosttest.Worker
	answer func(*hosts.Read) *hosts.Chunk // answer to a Read; nil: no answer

	mu     sync.Mutex
	owed   int // number of pieces requested and not yet sent
	most   int
	opened *hosts.Open
	byes   int
}

func (m *machine) Send(msgs ...hosts.Message) error {
	for _, msg := range msgs {
		switch msg := msg.(type) {
		case *hosts.Read:
			m.mu.Lock()
			m.owed++
			m.most = max(m.most, m.owed)
			m.mu.Unlock()
			go func() {
				c := m.answer(msg)
				if c == nil {
					return
				}
				c.ID = msg.ID
				m.mu.Lock()
				m.owed--
				m.mu.Unlock()
				m.Say(c)
			}()
		case *hosts.Bye:
			m.mu.Lock()
			m.byes++
			m.mu.Unlock()
			m.Cut(nil)
		}
	}
	return nil
}

// machines connects to the hosts in the map. All other hosts are unreachable.
type machines map[string]*machine

func (ms machines) Connect(ctx context.Context, h *hosts.Host, o *hosts.Open) (hosts.Worker, error) {
	time.Sleep(time.Second)
	m := ms[h.Name]
	if m == nil {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: errors.New("no route")}
	}
	m.Worker = hosttest.NewWorker(hosts.Hello{Version: hosts.ProtocolVersion}, 0, nil)
	m.opened = o
	return m, nil
}

func inventory(names ...string) (list []*hosts.Host) {
	for _, n := range names {
		list = append(list, &hosts.Host{Name: n, WorkDir: "/scratch/" + n})
	}
	return list
}

func piece(job int) hosts.Read {
	return hosts.Read{Attempt: jobs.AttemptID{Job: jobs.ID(job), N: 1}, File: jobs.FileOut, Limit: 100}
}

// TestPiecesAreReadFromSeveralHosts checks that pieces are read from several hosts at once, each
// over one read-only connection for the run's uid (X2). No host has more than hosts.MaxReads pending
// requests, and each gets a Bye.
func TestPiecesAreReadFromSeveralHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := machines{}
		for _, name := range []string{"a", "b"} {
			ms[name] = &machine{answer: func(r *hosts.Read) *hosts.Chunk {
				time.Sleep(time.Second)
				return &hosts.Chunk{Size: 7, Bulk: fmt.Appendf(nil, "%s %s", name, r.Attempt)}
			}}
		}
		r := NewReader(ms, "uid", inventory("a", "b"))
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				host := []string{"a", "b"}[i%2]
				data, size, err := r.Read(t.Context(), host, piece(10+i))
				if want := fmt.Sprintf("%s %d.1", host, 10+i); err != nil || size != 7 || string(data) != want {
					t.Errorf("%q of %d, %v; want %q", data, size, err, want)
				}
			})
		}
		all.Wait()
		r.Close()
		for name, m := range ms {
			if m.most > hosts.MaxReads || m.byes != 1 {
				t.Errorf("%s owed %d pieces at once, %d byes", name, m.most, m.byes)
			}
			if o := m.opened; !o.Reads || o.Run != "uid" || o.Host != name || o.WorkDir != "/scratch/"+name ||
				o.RunDir != "" {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if _, _, err := r.Read(t.Context(), "a", piece(1)); !errors.Is(err, errClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestFaultAffectsOnlyItsHost checks that a fault of one host affects only that host, and that the
// error describes the fault (promise 5).
func TestFaultAffectsOnlyItsHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &machine{}
		broken.answer = func(*hosts.Read) *hosts.Chunk {
			broken.Cut(&hosts.Error{Host: "broken", Class: hosts.Unreachable, Err: errors.New("connection reset")})
			return nil
		}
		ms := machines{
			"broken": broken,
			"mute":   {answer: func(*hosts.Read) *hosts.Chunk { return nil }},
			"slow": {answer: func(r *hosts.Read) *hosts.Chunk {
				// There is always something.
				time.Sleep(time.Duration(r.Attempt.Job) * pieceTimeout * 3 / 4)
				return &hosts.Chunk{Size: 1, Bulk: []byte("x")}
			}},
			"odd": {answer: func(r *hosts.Read) *hosts.Chunk {
				return []*hosts.Chunk{
					{Size: -1, Why: "no such file", None: true},
					{Size: -1, Why: "not an ordinary file"},
					{Size: 500, Bulk: make([]byte, 101)},
					{Size: 500, Offset: 3, Bulk: []byte("x")},
					{Size: 0, Bulk: []byte("x")},
				}[r.Attempt.Job]
			}},
		}
		r := NewReader(ms, "uid", inventory("broken", "mute", "slow", "odd", "away"))
		defer r.Close()
		var all sync.WaitGroup
		for _, c := range []struct {
			host string
			job  int
			want string
			is   func(error) bool
		}{
			{"away", 1, "no route", away},
			{"stranger", 1, "not in the inventory", away},
			{"broken", 1, "connection reset", away},
			{"mute", 1, "no answer for 30s", away},
			{"odd", 0, "no such file", func(err error) bool { return errors.Is(err, fs.ErrNotExist) && !away(err) }},
			{"odd", 1, "not an ordinary file", func(err error) bool { return !away(err) }},
			{"odd", 2, "unexpected piece", func(err error) bool { return !away(err) }},
			{"odd", 3, "unexpected piece", func(err error) bool { return !away(err) }},
			{"odd", 4, "unexpected piece", func(err error) bool { return !away(err) }},
			{"slow", 1, "", nil},
			{"slow", 2, "", nil},
		} {
			all.Go(func() {
				_, _, err := r.Read(t.Context(), c.host, piece(c.job))
				switch {
				case c.want == "" && err != nil:
					t.Errorf("%s: %v", c.host, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !c.is(err)):
					t.Errorf("%s %d: %v, want %q", c.host, c.job, err, c.want)
				}
			})
		}
		all.Wait()
		began := time.Now()
		if _, _, err := r.Read(t.Context(), "mute", piece(2)); !away(err) || time.Since(began) > time.Second {
			t.Errorf("mute again: %v after %v", err, time.Since(began))
		}
	})
}

func away(err error) bool {
	_, ok := errors.AsType[*hosts.Error](err)
	return ok
}

// TestCallerMayStopWaiting checks that a caller may stop waiting, and that Close does not wait for
// a host that does not answer.
func TestCallerMayStopWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReader(machines{"mute": {answer: func(*hosts.Read) *hosts.Chunk { return nil }}}, "uid",
			inventory("mute"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, _, err := r.Read(ctx, "mute", piece(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Read: got error %v, want context.DeadlineExceeded", err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			if _, _, err := r.Read(t.Context(), "mute", piece(2)); !away(err) {
				t.Errorf("Read: got error %v, want one that says that the host is away", err)
			}
		})
		synctest.Wait()
		r.Close()
		all.Wait()
	})
}
