package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// readRequest requests a part of an output file from a host.
type readRequest struct {
	message hosts.Read
	answer  chan readAnswer // capacity 1
}

type readAnswer struct {
	chunk *hosts.Chunk
	err   error
}

// source tells where the output of an attempt is.
type source struct {
	dir    string // as returned by filesDir
	remote *agent // agent of the host to read from; nil: read the run directory
}

// Output reads a part of an attempt's output file. It reads through the host's link if the attempt
// runs there, or if the host does not share the run directory. Otherwise, or if that fails, it
// reads the run directory. A negative offset counts from the end. size is the current size of the
// file. Output blocks only for this file, and at most until ctx is done.
func (d *Dispatcher) Output(ctx context.Context, id jobs.AttemptID, f jobs.File, offset int64,
	limit int) (data []byte, size int64, err error) {
	if limit <= 0 || limit > hosts.MaxChunk {
		limit = hosts.MaxChunk
	}
	at, err := query(ctx, d, func(e *engine) *source {
		a := e.core.Table().Attempt(id)
		if a == nil {
			return nil
		}
		s, ag := &source{dir: e.filesDir(a.Host)}, e.agents[a.Host]
		if ag != nil && (s.dir != d.cfg.RunDir || a.State.Open() && ag.host.Load().Link != "local" &&
			e.core.Linked(a.Host)) {
			s.remote = ag
		}
		return s
	})
	switch {
	case err != nil:
		return nil, 0, err
	case at == nil:
		return nil, 0, fmt.Errorf("there is no attempt %s", id)
	}
	shared := at.dir == d.cfg.RunDir
	var away error
	if at.remote != nil {
		if data, size, err = at.remote.output(ctx,
			hosts.Read{Attempt: id, File: f, Offset: offset, Limit: limit}); err == nil || ctx.Err() != nil {
			return data, size, err
		}
		away = err
	} else if !shared {
		away = fmt.Errorf("the output of %s is only on its host, which is not in the inventory any more: %s", id,
			jobs.AttemptFile(at.dir, id, f))
	}
	data, size, err = d.files.Read(ctx, jobs.AttemptFile(d.cfg.RunDir, id, f), offset, limit)
	if err != nil && !shared { // it was not fetched
		err = away
	}
	return data, size, err
}

// Attempt returns a copy of an attempt, or nil if there is none. The caller must not change it.
func (d *Dispatcher) Attempt(ctx context.Context, id jobs.AttemptID) (*jobs.Attempt, error) {
	return query(ctx, d, func(e *engine) *jobs.Attempt {
		a := e.core.Table().Attempt(id)
		if a == nil {
			return nil
		}
		clone := *a
		return &clone
	})
}

// Why explains in a sentence why a job is not running, or what it is doing. It returns "" if the
// run does not have the job.
func (d *Dispatcher) Why(ctx context.Context, id jobs.ID) (string, error) {
	return query(ctx, d, func(e *engine) string {
		if e.core.Table().Job(id) == nil {
			return ""
		}
		return e.core.Why(e.now(), id)
	})
}

// filesDir returns the directory that holds attempts/ of a host: the run directory, or "host:dir"
// if the host does not share it.
func (e *engine) filesDir(host string) string {
	if a := e.agents[host]; a != nil {
		switch h := a.hello.Load(); {
		case h != nil && h.Shared:
			return e.cfg.RunDir
		case h != nil:
			return host + ":" + h.Dir
		}
	}
	return cmp.Or(e.cfg.HostDirs[host], e.cfg.RunDir)
}

// output requests a part of a file from the host.
func (a *agent) output(ctx context.Context, m hosts.Read) ([]byte, int64, error) {
	req := readRequest{message: m, answer: make(chan readAnswer, 1)}
	select {
	case a.readTokens <- struct{}{}:
	case <-a.ctx.Done():
		return nil, 0, errEnded
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	select {
	case a.commands <- req: // reply returns the token
	case <-a.ctx.Done():
		return nil, 0, errEnded
	case <-ctx.Done():
		<-a.readTokens
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

// maxHostReads bounds the number of concurrent reads of a host, because its heartbeats and results
// use the same link.
const maxHostReads = 8

// answerRead answers a read and returns its token.
func (a *agent) answerRead(r readRequest, is readAnswer) {
	r.answer <- is
	<-a.readTokens
}

// read passes a request to the helper, which answers with a Chunk of the same id.
func (a *agent) read(r readRequest) {
	if a.worker == nil {
		a.answerRead(r, readAnswer{err: fmt.Errorf("%s is not connected: its output cannot be read now", a.name)})
		return
	}
	a.readID++
	r.message.ID = a.readID
	a.reads[a.readID] = r
	a.sendHost(&r.message)
}

func (a *agent) handleChunk(c *hosts.Chunk) {
	if r, ok := a.reads[c.ID]; ok {
		delete(a.reads, c.ID)
		a.answerRead(r, readAnswer{chunk: c})
	}
}

func (a *agent) failReads() {
	for id, r := range a.reads {
		delete(a.reads, id)
		a.answerRead(r, readAnswer{err: fmt.Errorf("the link to %s was lost while its output was being read", a.name)})
	}
}
