package socket

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/live"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("TEST_CONNECT"); address != "" {
		os.Exit(connect(address))
	}
	os.Exit(polltest.RunWithoutLeaks(m))
}

var must = polltest.Must

// fakeHandler is a Handler for tests.
type fakeHandler struct {
	wake    func(ctx context.Context, name string) error
	read    func(ctx context.Context, r Read) (*Piece, error)
	waiting atomic.Int32 // number of Wake calls that wait

	mu   sync.Mutex
	done []string // requests and replies
}

func (f *fakeHandler) Wake(ctx context.Context, name string) error {
	if f.wake != nil {
		return f.wake(ctx, name)
	}
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func (f *fakeHandler) Request(ctx context.Context, name string, body json.RawMessage) error {
	if ctx.Err() != nil {
		return ErrNotTaken
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, name+" "+string(body))
	return nil
}

func (f *fakeHandler) Why(_ context.Context, job jobs.ID) (string, error) {
	if job == 99 {
		return "", Refusef("the run has no job 99")
	}
	return fmt.Sprintf("Job %d waits: <the> host is\xff busy.", job), nil
}

func (f *fakeHandler) Read(ctx context.Context, r Read) (*Piece, error) {
	if f.read != nil {
		return f.read(ctx, r)
	}
	return &Piece{Offset: r.Offset, Data: []byte("a\xff\x00"), Size: int64(r.Limit), Over: true}, nil
}

func (f *fakeHandler) Reply(question int64, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, fmt.Sprint(question, " ", text))
	return nil
}

func options(h Handler) Options {
	return Options{Run: "run1", Epoch: 3, Token: "t", Release: "v1", Handler: h}
}

// shortDir returns a temporary directory. The path of t.TempDir is too long for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dcs")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startServer serves the handler in its own directory.
func startServer(t *testing.T, h Handler, change ...func(*Options)) *Server {
	t.Helper()
	opt := options(h)
	opt.Base = shortDir(t)
	for _, c := range change {
		c(&opt)
	}
	s, err := Listen(opt)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, s *Server) *Client {
	t.Helper()
	c, err := Dial(t.Context(), s.Address(), "run1")
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// rawClient is a client that sends protocol lines directly. It has read the hello.
type rawClient struct {
	net.Conn
	r *bufio.Reader
}

func connected(t *testing.T, s *Server) *rawClient {
	t.Helper()
	conn, err := net.Dial("unix", s.Address())
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return readGreeting(t, conn)
}

// connectPiped connects to a server without a socket, as a bubble of synctest needs.
func connectPiped(t *testing.T, s *Server) *rawClient {
	t.Helper()
	ours, theirs := net.Pipe()
	s.serve(theirs, nil)
	return readGreeting(t, ours)
}

func readGreeting(t *testing.T, conn net.Conn) *rawClient {
	t.Helper()
	r := &rawClient{conn, bufio.NewReader(conn)}
	if line := r.line(t); !strings.HasPrefix(line, `{"dcs":2,"run":"run1","epoch":3,"token":"t","pid":`) {
		t.Fatalf("hello: got %q", line)
	}
	return r
}

func (r *rawClient) line(t *testing.T) string {
	t.Helper()
	line, err := r.r.ReadString('\n')
	if err != nil {
		t.Fatalf("got %q, %v; want a line", line, err)
	}
	return line
}

// ends checks that the server closes the connection.
func (r *rawClient) ends(t *testing.T, what string) {
	t.Helper()
	r.SetReadDeadline(time.Now().Add(time.Hour))
	if _, err := io.Copy(io.Discard, r.r); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the connection stays open", what)
	}
}

// TestCallsAndAnswersArriveUnchanged checks that every call and every answer arrives unchanged,
// even with unusual values.
func TestCallsAndAnswersArriveUnchanged(t *testing.T) {
	f := &fakeHandler{wake: func(_ context.Context, name string) error {
		if name == "late" {
			return fmt.Errorf("too late: %w", ErrNotTaken)
		}
		return nil
	}}
	c := dial(t, startServer(t, f))
	ctx := t.Context()
	if h := c.Hello(); h.Run != "run1" || h.Epoch != 3 || h.Token != "t" || h.PID != os.Getpid() || h.Program == "" ||
		h.Release != "v1" {
		t.Errorf("hello: got %+v", h)
	}
	if err := c.Wake(ctx, "a"); err != nil {
		t.Error(err)
	}
	if err := c.Wake(ctx, "late"); !errors.Is(err, ErrNotTaken) ||
		err.Error() != "too late: the dispatcher did not accept the request" {
		t.Errorf("wake: got %v", err)
	}
	if err := c.Request(ctx, "r1", json.RawMessage(`{"do":"<cancel>"}`)); err != nil {
		t.Error(err)
	}
	if err := c.Reply(ctx, 7, "secret\n\"<é"); err != nil {
		t.Error(err)
	}
	if want := []string{`r1 {"do":"<cancel>"}`, "7 secret\n\"<é"}; !reflect.DeepEqual(f.done, want) {
		t.Errorf("got %q, want %q", f.done, want)
	}
	if text, err := c.Why(ctx, 17); err != nil || text != "Job 17 waits: <the> host is\ufffd busy." {
		t.Errorf("why: got %q, %v", text, err)
	}
	var refused *RefusedError
	if _, err := c.Why(ctx, 99); !errors.As(err, &refused) || refused.Why != "the run has no job 99" {
		t.Errorf("why: got %v", err)
	}
	id := jobs.AttemptID{Job: 17, N: 2}
	p, err := c.Read(ctx, Read{id, jobs.FileErr, -9, 1 << 30})
	if want := (&Piece{Offset: -9, Data: []byte("a\xff\x00"), Size: MaxPiece, Over: true}); err != nil ||
		!reflect.DeepEqual(p, want) {
		t.Errorf("read: got %+v, %v; want %+v", p, err, want)
	}
	f.read = func(_ context.Context, r Read) (*Piece, error) {
		if want := (Read{id, jobs.FileOut, 5, 6}); r != want {
			t.Errorf("read: got %+v, want %+v", r, want)
		}
		return nil, &fs.PathError{Op: "open", Path: "out", Err: fs.ErrNotExist}
	}
	if _, err := c.Read(ctx, Read{id, jobs.FileOut, 5, 6}); !errors.Is(err, fs.ErrNotExist) ||
		err.Error() != "open out: file does not exist" {
		t.Errorf("read: got %v", err)
	}
	for body, want := range map[string]string{`{`: "not valid JSON", `"` + strings.Repeat("x", maxRequest) +
		`"`: "send it in parts"} {
		if err := c.Request(ctx, "r2", json.RawMessage(body)); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("a bad request: got %v, want %q", err, want)
		}
	}
	if err := c.Request(ctx, "r2", json.RawMessage(`"`+strings.Repeat("<", maxRequest-2000)+`"`)); err != nil {
		t.Errorf("a long request: %v", err)
	}
}

// TestLinesAreAsDocumented checks that the protocol lines are those that docs/reference/socket.md
// shows.
func TestLinesAreAsDocumented(t *testing.T) {
	s := startServer(t, &fakeHandler{wake: func(context.Context, string) error { return nil }})
	s.Publish(&live.Durable{Epoch: 3, Bytes: 77}, nil)
	c := connected(t, s)
	for _, call := range []struct{ send, want string }{
		{`{"id":1,"do":"wake","name":"n"}`, `{"id":1}`},
		{`{"id":2,"do":"request","name":"n","request":{"do":"pause"}}`, `{"id":2}`},
		{`{"id":4,"do":"why","job":1}`, `{"id":4,"text":"Job 1 waits: <the> host is\ufffd busy."}`},
		{`{"id":4,"do":"why","job":99}`, `{"id":4,"error":"the run has no job 99","code":"refused"}`},
		{`{"id":5,"do":"read","attempt":"17.2","file":"out","offset":-4096,"limit":65536}`,
			`{"id":5,"piece":{"offset":-4096,"data":"Yf8A","size":65536,"over":true}}`},
		{`{"id":6,"do":"reply","question":3,"text":"x"}`, `{"id":6}`},
	} {
		fmt.Fprintln(c, call.send)
		if got := c.line(t); got != call.want+"\n" {
			t.Errorf("%s: got %s, want %s", call.send, got, call.want)
		}
	}
	fmt.Fprintln(c, `{"id":3,"do":"follow"}`)
	got := []string{c.line(t), c.line(t)} // in either order
	slices.Sort(got)
	if want := []string{`{"durable":{"epoch":3,"bytes":77}}` + "\n", `{"id":3}` + "\n"}; !slices.Equal(got, want) {
		t.Errorf("follow: got %q, want %q", got, want)
	}
	fmt.Fprintln(c, `{"id":7,"do":"fly"}`)
	if got := c.line(t); !strings.Contains(got, `"code":"refused"`) || !strings.Contains(got, "dcs-tui v1") {
		t.Errorf("an unknown call: got %s", got)
	}
	go s.Close()
	if got := c.line(t); got != `{"goodbye":true}`+"\n" {
		t.Errorf("got %s, want the goodbye", got)
	}
	c.ends(t, "after the goodbye")
}

// TestServerOfAnotherVersionIsNamed checks that a server of another version names the program to
// use. The socket of another run counts as gone, and another program does not count as a
// dispatcher.
func TestServerOfAnotherVersionIsNamed(t *testing.T) {
	s := startServer(t, &fakeHandler{})
	if _, err := Dial(t.Context(), s.Address(), "run2"); !errors.Is(err, ErrGone) {
		t.Errorf("another run: got %v, want ErrGone", err)
	}
	var newer *Server
	jobstest.Newer(&jobs.FormatSocket, func() { newer = startServer(t, &fakeHandler{}) })
	_, err := Dial(t.Context(), newer.Address(), "run1")
	if err == nil || !strings.Contains(err.Error(), "speaks version 3") {
		t.Errorf("a newer server: got %v", err)
	}
	for _, c := range []struct{ line, want string }{
		{`{"dcs":7,"run":"run1","release":"v9","program":"/opt/dcs-tui","error":"x"}` + "\n",
			"version 2; use /opt/dcs-tui"},
		{"SSH-2.0-OpenSSH\n", "is not dcs-tui"},
		{"{}\n", "is not dcs-tui"},
		{strings.Repeat("x", 2*maxHello), "is not dcs-tui"},
		{`{"dcs":2,"run":"run1","error":"full"}` + "\n", "full"},
		{"", "has ended"},
		{`{"dcs":2,`, "has ended"},
	} {
		ours, theirs := net.Pipe()
		go func() {
			io.WriteString(theirs, c.line)
			theirs.Close()
		}()
		_, err := newClient(t.Context(), ours, "run1")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.line, err, c.want)
		}
	}
}

// TestCallsTimeOutIfTheDispatcherIsSuspended checks that Dial and calls time out if the
// dispatcher's process is suspended.
func TestCallsTimeOutIfTheDispatcherIsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		if _, err := newClient(t.Context(), ours, "run1"); !errors.Is(err, ErrUnresponsive) {
			t.Errorf("dial: got %v", err)
		}
	})
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			go func() {
				io.WriteString(theirs, `{"dcs":2,"run":"run1"}`+"\n")
				if reads {
					io.Copy(io.Discard, theirs)
				}
			}()
			c, err := newClient(t.Context(), ours, "run1")
			must(t, err)
			defer c.Close()
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.Why(ctx, 1); !errors.Is(err, context.DeadlineExceeded) ||
				errors.Is(err, ErrNotTaken) == reads {
				t.Errorf("reads=%v: got %v", reads, err)
			}
			if waited := time.Since(began); waited > time.Second+byeTimeout {
				t.Errorf("the call took %v", waited)
			}
			_, err = c.Why(t.Context(), 1)
			if !errors.Is(err, ErrUnresponsive) || time.Since(began) > 2*callTimeout {
				t.Errorf("reads=%v: got %v after %v", reads, err, time.Since(began))
			}
		})
	}
}

// TestFollowSendsTheNewestState checks that Follow starts with the last published values and sends
// the later ones. A slow client skips old states and gets the newest. All clients get the last
// state before the goodbye.
func TestFollowSendsTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(options(&fakeHandler{}))
		defer s.Close()
		s.Publish(&live.Durable{Epoch: 3, Bytes: 10}, &live.State{Tries: 1})
		var durable []int64
		var tries []int
		ours, theirs := net.Pipe()
		s.serve(theirs, nil)
		c, err := newClient(t.Context(), ours, "run1")
		must(t, err)
		defer c.Close()
		if s.NumFollowing() != 0 {
			t.Errorf("got %d following, want 0", s.NumFollowing())
		}
		err = c.Follow(t.Context(), func(d live.Durable) { durable = append(durable, d.Bytes) },
			func(s *live.State) { tries = append(tries, s.Tries) })
		must(t, err)
		slow := connectPiped(t, s)
		io.WriteString(slow, `{"id":1,"do":"follow"}`+"\n")
		synctest.Wait()
		if s.NumFollowing() != 2 {
			t.Errorf("got %d following, want 2", s.NumFollowing())
		}
		for i := range 100 {
			s.Publish(&live.Durable{Epoch: 3, Bytes: int64(20 + i)}, &live.State{Tries: 2 + i})
			if i%50 == 49 {
				synctest.Wait()
			}
		}
		s.Publish(nil, nil)
		synctest.Wait()
		if n := len(durable); n < 3 || durable[0] != 10 || durable[n-1] != 119 {
			t.Errorf("durable: got %v", durable)
		}
		if n := len(tries); n < 3 || tries[0] != 1 || tries[n-1] != 101 {
			t.Errorf("states: got %v", tries)
		}
		all := make(chan string)
		go func() {
			b, _ := io.ReadAll(slow.r)
			all <- string(b)
		}()
		s.Publish(nil, &live.State{Tries: 500})
		s.Close()
		text := <-all
		last := strings.Index(text, `"tries":500`)
		if last < 0 || !strings.HasSuffix(text, `{"goodbye":true}`+"\n") || strings.Count(text, `"tries"`) > 4 {
			t.Errorf("the slow client got %s", text)
		}
		if s.NumFollowing() != 0 || tries[len(tries)-1] != 500 {
			t.Errorf("got %d following, %v", s.NumFollowing(), tries)
		}
		if <-c.Done(); !errors.Is(c.Err(), ErrGone) {
			t.Errorf("got %v, want ErrGone", c.Err())
		}
	})
}

// TestClientThatDoesNotReadIsDisconnected checks that clients that do not read are disconnected
// after a timeout. Other clients may stay silent.
func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	for _, c := range []struct {
		name, send string
		cut        bool
	}{
		{"silent", "", false},
		{"does not read", `{"id":1,"do":"why"}{"id":2,"do":"why"}{"id":3,"do":"why"}`, true},
		{"does not read what it follows", `{"id":1,"do":"follow"}`, true},
		{"waits for an answer", `{"id":1,"do":"wake","name":"n"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(options(&fakeHandler{}))
				defer s.Close()
				s.Publish(&live.Durable{Epoch: 1, Bytes: 1}, nil)
				r := connectPiped(t, s)
				defer r.Close()
				io.WriteString(r, c.send)
				time.Sleep(writeTimeout - time.Second)
				if s.NumConnected() != 1 {
					t.Error("it is disconnected at once")
				}
				time.Sleep(2 * time.Second)
				if (s.NumConnected() == 0) != c.cut {
					t.Errorf("got %d connections; want it to be disconnected: %v", s.NumConnected(), c.cut)
				}
			})
		})
	}
}

// TestGreedyClientDelaysNoOther checks that a client that sends many calls has few in flight and
// delays no other client. Its other calls have no effect and are answered with not_taken.
func TestGreedyClientDelaysNoOther(t *testing.T) {
	f := &fakeHandler{}
	s := startServer(t, f)
	greedy := connected(t, s)
	for i := range maxCalls + 3 {
		fmt.Fprintf(greedy, `{"id":%d,"do":"wake","name":"n"}`+"\n", i+1)
	}
	for range 3 {
		if got := greedy.line(t); !strings.Contains(got, `"code":"not_taken"`) {
			t.Errorf("got %s", got)
		}
	}
	polltest.Until(t, "some calls are in flight", func() bool { return f.waiting.Load() == maxCalls })
	if _, err := dial(t, s).Why(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// TestCallsAreRateLimited checks that the calls of a connection are rate-limited.
func TestCallsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(options(&fakeHandler{}))
		defer s.Close()
		r := connectPiped(t, s)
		defer r.Close()
		began := time.Now()
		for range 101 {
			fmt.Fprintln(r, `{"id":1,"do":"why","job":1}`)
			r.line(t)
		}
		if got := time.Since(began); got != 100*callInterval {
			t.Errorf("got %v, want %v", got, 100*callInterval)
		}
	})
}

// TestInvalidLineEndsItsConnection checks that lines that are too long or are not calls end only
// their own connection.
func TestInvalidLineEndsItsConnection(t *testing.T) {
	s := startServer(t, &fakeHandler{})
	for name, in := range map[string]io.Reader{
		"zeros":      strings.NewReader("\x00\n"),
		"HTTP":       strings.NewReader("GET / HTTP/1.1\r\n\r\n"),
		"wrong type": strings.NewReader(`{"id":"x"}` + "\n"),
		"array":      strings.NewReader("[]\n"),
		"too long":   io.MultiReader(strings.NewReader(`{"id":1,"text":"`), endlessReader{}),
		"nested":     strings.NewReader(strings.Repeat("[", 1<<20) + "\n"),
	} {
		c := connected(t, s)
		go io.Copy(c, in)
		c.ends(t, name)
		c.Close()
	}
	if _, err := dial(t, s).Why(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// endlessReader is an endless text.
type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

// TestNumberOfConnectionsIsLimited checks that the number of connections is limited and that the
// next client gets an error that says so.
func TestNumberOfConnectionsIsLimited(t *testing.T) {
	s := startServer(t, &fakeHandler{})
	for range maxConns {
		dial(t, s)
	}
	if _, err := Dial(t.Context(), s.Address(), "run1"); err == nil ||
		!strings.Contains(err.Error(), "already connected to the dispatcher") {
		t.Errorf("got %v", err)
	}
}

// TestPanicFailsOnlyItsCall checks that a panic in the handler fails only its call. Panics are
// reported up to a limit.
func TestPanicFailsOnlyItsCall(t *testing.T) {
	f := &fakeHandler{read: func(context.Context, Read) (*Piece, error) { panic("a slip\nof the pen") }}
	faults := make(chan string, 2*maxReportedPanics)
	c := dial(t, startServer(t, f, func(o *Options) { o.ReportPanic = func(text string) { faults <- text } }))
	for range maxReportedPanics + 5 {
		if _, err := c.Read(t.Context(), Read{}); err == nil ||
			!strings.Contains(err.Error(), "a slip; the run continues") {
			t.Errorf("got %v", err)
		}
	}
	if text := <-faults; len(faults) != maxReportedPanics-1 || !strings.Contains(text, "socket_test.go") {
		t.Errorf("got %d faults; the first is %s", len(faults)+1, text)
	}
	if _, err := c.Why(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// TestAbandonedCallFreesItsSlot checks that an abandoned call also ends at the dispatcher and frees
// its slot.
func TestAbandonedCallFreesItsSlot(t *testing.T) {
	f := &fakeHandler{}
	c := dial(t, startServer(t, f))
	for range 3 * maxCalls {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if err := c.Wake(ctx, "x"); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
	polltest.Until(t, "no call waits at the dispatcher", func() bool { return f.waiting.Load() == 0 })
	if _, err := c.Why(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// TestCloseAnswersEachRequest checks that, when a dispatcher ends, each request is either carried
// out and answered, or reported as not taken.
func TestCloseAnswersEachRequest(t *testing.T) {
	for range 20 {
		// In virtual time, because Close waits for a second only until the answers are sent.
		synctest.Test(t, func(t *testing.T) {
			f := &fakeHandler{}
			s := newServer(options(f))
			var all sync.WaitGroup
			var done, left atomic.Int64
			for range 3 {
				ours, theirs := net.Pipe()
				s.serve(theirs, nil)
				c, err := newClient(t.Context(), ours, "run1")
				must(t, err)
				defer c.Close()
				for range 4 {
					all.Go(func() {
						for {
							if err := c.Request(t.Context(), "r", json.RawMessage("{}")); err != nil {
								if left.Add(1); !errors.Is(err, ErrNotTaken) {
									t.Errorf("got %v, want ErrNotTaken", err)
								}
								return
							}
							done.Add(1)
						}
					})
				}
			}
			polltest.Until(t, "some requests are done", func() bool { return done.Load() > 20 })
			s.Close()
			all.Wait()
			if n := len(f.done); int64(n) != done.Load() || left.Load() != 12 {
				t.Errorf("%d were carried out and %d answered; %d failed, want 12", n, done.Load(), left.Load())
			}
		})
	}
}

// TestCallsEndWithTheDispatcher checks that a call in flight ends with the dispatcher, and that
// later calls return ErrGone.
func TestCallsEndWithTheDispatcher(t *testing.T) {
	f := &fakeHandler{}
	s := startServer(t, f)
	c := dial(t, s)
	failed := make(chan error)
	go func() { failed <- c.Wake(t.Context(), "x") }()
	polltest.Until(t, "the call waits", func() bool { return f.waiting.Load() == 1 })
	s.Close()
	if err := <-failed; !errors.Is(err, ErrGone) || errors.Is(err, ErrNotTaken) {
		t.Errorf("got %v, want ErrGone", err)
	}
	<-c.Done()
	if err := c.Wake(t.Context(), "x"); !errors.Is(err, ErrGone) || !errors.Is(err, ErrNotTaken) {
		t.Errorf("got %v, want ErrGone and ErrNotTaken", err)
	}
	if _, err := Dial(t.Context(), s.Address(), "run1"); !errors.Is(err, ErrGone) {
		t.Errorf("dial: got %v, want ErrGone", err)
	}
}

// TestErrorsAfterTheDispatcherWasKilled checks the errors after a dispatcher was killed. A request
// that was already sent may have been carried out.
func TestErrorsAfterTheDispatcherWasKilled(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		io.WriteString(theirs, `{"dcs":2,"run":"run1"}`+"\n")
		bufio.NewReader(theirs).ReadString('\n')
	}()
	c, err := newClient(t.Context(), ours, "run1")
	must(t, err)
	defer c.Close()
	if err := c.Request(t.Context(), "r", json.RawMessage("{}")); !errors.Is(err, ErrGone) ||
		errors.Is(err, ErrNotTaken) {
		t.Errorf("got %v, want ErrGone", err)
	}
	if err := c.Request(t.Context(), "r", json.RawMessage("{}")); !errors.Is(err, ErrGone) ||
		!errors.Is(err, ErrNotTaken) {
		t.Errorf("got %v, want ErrGone and ErrNotTaken", err)
	}
}
