package hosttest

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"dcs-tui/hosts"
)

// flowRoom is how many bytes a flow holds, as the buffers of a real connection do.
const flowRoom = 1 << 20

// flow carries bytes in one direction under a Fault. The Fault's mutex guards it.
type flow struct {
	f      *Fault
	chunks []chunk
	held   int
	err    error // no more will be put in; what is held is still handed out
}

// chunk is what was written at once, and when it arrives.
type chunk struct {
	data []byte
	due  time.Time
}

// Write puts bytes in; it waits while the flow is full.
func (w *flow) Write(b []byte) (int, error) {
	f := w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	for w.held >= flowRoom && w.err == nil {
		f.cond.Wait()
	}
	if w.err != nil {
		return 0, w.err
	}
	w.chunks = append(w.chunks, chunk{append([]byte(nil), b...), time.Now().Add(f.delay)})
	w.held += len(b)
	if f.delay > 0 {
		time.AfterFunc(f.delay, f.cond.Broadcast)
	}
	f.cond.Broadcast()
	return len(b), nil
}

// Read takes bytes out, as soon as they have arrived and there is no silence.
func (w *flow) Read(b []byte) (int, error) {
	f := w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case w.err == io.ErrClosedPipe: // cut: nothing more is handed out
			return 0, w.err
		case f.silent:
		case len(w.chunks) > 0 && !time.Now().Before(w.chunks[0].due):
			n := copy(b, w.chunks[0].data)
			w.held -= n
			if w.chunks[0].data = w.chunks[0].data[n:]; len(w.chunks[0].data) == 0 {
				w.chunks = w.chunks[1:]
			}
			f.cond.Broadcast()
			return n, nil
		case len(w.chunks) == 0 && w.err != nil:
			return 0, w.err
		}
		f.cond.Wait()
	}
}

func (w *flow) end(err error) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	if w.err == nil || err == io.ErrClosedPipe {
		w.err = err
	}
	w.f.cond.Broadcast()
}

// faultyStream is a command's streams under a Fault.
type faultyStream struct {
	l             *faultyLink
	inner         hosts.Stream
	in, out, errs *flow

	gone chan struct{} // closed when the stream is cut
	once sync.Once

	ended    chan struct{} // closed when the command has ended and somebody has asked
	status   error         // after ended
	waitOnce sync.Once
}

func newFaultyStream(l *faultyLink, inner hosts.Stream) *faultyStream {
	s := &faultyStream{
		l: l, inner: inner, in: &flow{f: l.f}, out: &flow{f: l.f}, errs: &flow{f: l.f},
		gone: make(chan struct{}), ended: make(chan struct{}),
	}
	from := func(w *flow, r io.Reader) {
		if _, err := io.Copy(w, r); err != nil {
			w.end(err)
		} else {
			w.end(io.EOF)
		}
	}
	go from(s.out, inner)
	go from(s.errs, inner.Stderr())
	go s.send()
	return s
}

// send moves what was written to the host, as far as the budget goes.
func (s *faultyStream) send() {
	block := make([]byte, 32<<10)
	for {
		n, err := s.in.Read(block)
		if n > 0 {
			k, cut := s.l.f.spend(n)
			if k > 0 {
				if _, werr := s.inner.Stdin().Write(block[:k]); werr != nil {
					s.in.end(werr)
					return
				}
			}
			if cut {
				s.l.f.Cut()
				return
			}
			if k < n {
				continue // lost: the cut is silent
			}
		}
		if err != nil {
			if err == io.EOF {
				s.inner.Stdin().Close()
			}
			return
		}
	}
}

// spend says how many of n bytes may still go to the host, and whether a loud
// cut is due. A silent one begins here.
func (f *Fault) spend(n int) (k int, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.budget < 0 {
		return n, false
	}
	k = int(min(int64(n), f.budget))
	if f.budget -= int64(k); k < n {
		f.budget = -1
		if cut = f.loud; !cut {
			f.silent = true
			f.wake()
		}
	}
	return k, cut
}

func (s *faultyStream) Read(b []byte) (int, error) { return s.out.Read(b) }
func (s *faultyStream) Stderr() io.Reader          { return s.errs }
func (s *faultyStream) Stdin() io.WriteCloser      { return (*faultyStdin)(s) }

// Wait passes on how the command ended, unless there is silence.
func (s *faultyStream) Wait() error {
	s.waitOnce.Do(func() {
		go func() { s.status = s.inner.Wait(); close(s.ended) }()
	})
	select {
	case <-s.ended:
	case <-s.gone:
	}
	if err := s.l.f.pass(context.Background(), s.gone); err != nil {
		return s.l.fail(err)
	}
	select {
	case <-s.ended:
		return s.status
	default:
		return s.l.fail(errors.New("the stream is closed"))
	}
}

// cut ends the stream on this side; what is held is dropped.
func (s *faultyStream) cut(err error) {
	s.once.Do(func() { close(s.gone) })
	s.in.end(err)
	s.out.end(err)
	s.errs.end(err)
}

// Close ends the command and releases the wrapped stream.
func (s *faultyStream) Close() error {
	s.cut(io.ErrClosedPipe)
	s.l.mu.Lock()
	delete(s.l.streams, s)
	s.l.mu.Unlock()
	return s.inner.Close()
}

// faultyStdin is the writing half.
type faultyStdin faultyStream

func (w *faultyStdin) Write(b []byte) (int, error) { return w.in.Write(b) }
func (w *faultyStdin) Close() error                { w.in.end(io.EOF); return nil }
