package dispatch

import (
	"context"
	"fmt"
	"io/fs"
	"runtime/debug"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// readRequest asks a host for a piece of an output file.
type readRequest struct {
	msg    hosts.Read
	answer chan readAnswer // room for one
}

type readAnswer struct {
	chunk *hosts.Chunk
	err   error
}

// Output reads a piece of an attempt's output file: through the host's link while the
// attempt runs there or when the host does not share the run directory, else, or when
// that fails, from the run directory. A negative offset counts from the end; size is the
// file's size now. It waits for nothing but this file, and no longer than ctx.
func (d *Dispatcher) Output(ctx context.Context, id jobs.AttemptID, f jobs.File, offset int64, limit int) (data []byte, size int64, err error) {
	if limit <= 0 || limit > hosts.MaxChunk {
		limit = hosts.MaxChunk
	}
	var remote *agent
	var known, shared bool
	var dir string
	if err := d.look(ctx, func(e *engine) {
		a := e.core.Table().Attempt(id)
		if known = a != nil; !known {
			return
		}
		dir = e.filesDir(a.Host)
		shared = dir == d.cfg.RunDir
		ag := e.agents[a.Host]
		if ag != nil && (!shared || a.State.Open() && ag.host.Load().Link != "local" && e.core.Linked(a.Host)) {
			remote = ag
		}
	}); err != nil {
		return nil, 0, err
	}
	if !known {
		return nil, 0, fmt.Errorf("there is no attempt %s", id)
	}
	var away error
	if remote != nil {
		if data, size, err = remote.output(ctx, hosts.Read{Attempt: id, File: f, Offset: offset, Limit: limit}); err == nil || ctx.Err() != nil {
			return data, size, err
		}
		away = err
	} else if !shared {
		away = fmt.Errorf("the output of %s is only on its host, which is not in the inventory any more: %s", id, jobs.AttemptFile(dir, id, f))
	}
	data, size, err = d.here.Read(ctx, jobs.AttemptFile(d.cfg.RunDir, id, f), offset, limit)
	if err != nil && !shared { // nobody has brought it here
		err = away
	}
	return data, size, err
}

// Attempt returns a copy of an attempt; nil: there is none. It must not be changed.
func (d *Dispatcher) Attempt(ctx context.Context, id jobs.AttemptID) (*jobs.Attempt, error) {
	found := make(chan *jobs.Attempt, 1)
	if err := d.look(ctx, func(e *engine) {
		a := e.core.Table().Attempt(id)
		if a != nil {
			is := *a
			a = &is
		}
		found <- a
	}); err != nil {
		return nil, err
	}
	return <-found, nil
}

// Why explains in a sentence why a job is not running, or what it is doing. known reports
// whether the run has that job.
func (d *Dispatcher) Why(ctx context.Context, id jobs.ID) (text string, known bool, err error) {
	said := make(chan string, 1)
	if err := d.look(ctx, func(e *engine) {
		if e.core.Table().Job(id) == nil {
			close(said)
			return
		}
		said <- e.core.Why(e.now(), id)
	}); err != nil {
		return "", false, err
	}
	text, known = <-said
	return text, known, nil
}

// look runs f in the engine's goroutine and waits for it, no longer than ctx; f may then
// still run later. It changes nothing and takes no more than about a millisecond. A panic
// of f is the caller's: whoever looks must not end the run.
func (d *Dispatcher) look(ctx context.Context, f func(*engine)) error {
	fault := make(chan any, 1)
	err := d.within(ctx, func(e *engine) {
		defer func() {
			if p := recover(); p != nil {
				fault <- fmt.Sprintf("%v (in the engine)\n%s", p, debug.Stack())
			}
		}()
		f(e)
	})
	select {
	case p := <-fault:
		panic(p)
	default:
		return err
	}
}

// filesDir returns the directory that holds attempts/ of a host's attempts: the run
// directory, or "host:dir" when the host does not share it.
func (e *engine) filesDir(host string) string {
	if a := e.agents[host]; a != nil {
		return a.filesDir(e.cfg.RunDir)
	}
	if dir := e.cfg.HostDirs[host]; dir != "" {
		return dir
	}
	return e.cfg.RunDir
}

// output asks the host for a piece of a file.
func (a *agent) output(ctx context.Context, m hosts.Read) ([]byte, int64, error) {
	req := readRequest{msg: m, answer: make(chan readAnswer, 1)}
	select {
	case a.reading <- struct{}{}:
	case <-a.ctx.Done():
		return nil, 0, errEnded
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	select {
	case a.mail <- req: // which gives the place back with the answer
	case <-a.ctx.Done():
		return nil, 0, errEnded
	case <-ctx.Done():
		<-a.reading
		return nil, 0, ctx.Err()
	}
	select {
	case r := <-req.answer:
		switch {
		case r.err != nil:
			return nil, 0, r.err
		case r.chunk.Size < 0 && r.chunk.None:
			return nil, 0, fmt.Errorf("%s: %s: %s (%w)", a.name, m.Attempt, r.chunk.Why, fs.ErrNotExist)
		case r.chunk.Size < 0:
			return nil, 0, fmt.Errorf("%s: output of %s: %s", a.name, m.Attempt, r.chunk.Why)
		}
		return r.chunk.Bulk, r.chunk.Size, nil
	case <-a.ctx.Done():
		return nil, 0, errEnded
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// maxHostReads bounds the pieces that a host is requested and has not given yet,
// whoever still waits for them: its beats and results come over the same link.
const maxHostReads = 8

// reply answers a read and gives its place back.
func (a *agent) reply(r readRequest, is readAnswer) {
	r.answer <- is
	<-a.reading
}

// read passes a request on; the helper answers with a chunk of the same id.
func (a *agent) read(r readRequest) {
	if a.worker == nil {
		a.reply(r, readAnswer{err: fmt.Errorf("%s is not connected: its output cannot be read now", a.name)})
		return
	}
	a.readID++
	r.msg.ID = a.readID
	a.reads[a.readID] = r
	a.say(&r.msg)
}

func (a *agent) chunk(c *hosts.Chunk) {
	if r, ok := a.reads[c.ID]; ok {
		delete(a.reads, c.ID)
		a.reply(r, readAnswer{chunk: c})
	}
}

func (a *agent) dropReads() {
	for id, r := range a.reads {
		delete(a.reads, id)
		a.reply(r, readAnswer{err: fmt.Errorf("the link to %s was lost while its output was being read", a.name)})
	}
}
