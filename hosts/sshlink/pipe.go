package sshlink

import "sync"

// pipeBuffer is how many bytes may wait in a pipe.
const pipeBuffer = 256 << 10

// pipe is a bounded buffer between a writer and a reader.
type pipe struct {
	mu   sync.Mutex
	cond sync.Cond
	buf  []byte
	err  error // set once: no more bytes will come
}

func newPipe() *pipe {
	p := &pipe{}
	p.cond.L = &p.mu
	return p
}

// Write waits for room; it returns an error once the pipe has been ended.
func (p *pipe) Write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		for len(p.buf) >= pipeBuffer && p.err == nil {
			p.cond.Wait()
		}
		if p.err != nil {
			return n, p.err
		}
		k := min(len(b), pipeBuffer-len(p.buf))
		p.buf = append(p.buf, b[:k]...)
		n, b = n+k, b[k:]
		p.cond.Broadcast()
	}
	return n, nil
}

// Read waits for bytes; the error comes after the last of them.
func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && p.err == nil {
		p.cond.Wait()
	}
	if len(p.buf) == 0 {
		return 0, p.err
	}
	n := copy(b, p.buf)
	if p.buf = p.buf[n:]; len(p.buf) == 0 {
		p.buf = nil
	}
	p.cond.Broadcast()
	return n, nil
}

// end lets no more bytes in; drop forgets those that wait.
func (p *pipe) end(err error, drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	if drop {
		p.buf = nil
	}
	p.cond.Broadcast()
}
