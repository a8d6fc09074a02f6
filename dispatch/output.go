package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

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

// Output reads a piece of an attempt's output file: from the run directory, or
// through the host's link when the host does not share it. A negative offset
// counts from the end; size is the file's size now.
func (d *Dispatcher) Output(ctx context.Context, id jobs.AttemptID, f jobs.File, offset int64, limit int) (data []byte, size int64, err error) {
	limit = min(limit, hosts.MaxChunk)
	var remote *agent
	known := false
	if !d.call(func(e *engine) {
		if a := e.core.Table().Attempt(id); a != nil {
			known = true
			if ag := e.agents[a.Host]; ag != nil && ag.filesDir(d.cfg.RunDir) != d.cfg.RunDir {
				remote = ag
			}
		}
	}) {
		return nil, 0, errEnded
	}
	if !known {
		return nil, 0, fmt.Errorf("there is no attempt %s", id)
	}
	if remote == nil {
		return readPiece(jobs.AttemptFile(d.cfg.RunDir, id, f), offset, limit)
	}
	req := readRequest{msg: hosts.Read{Attempt: id, File: f, Offset: offset, Limit: limit}, answer: make(chan readAnswer, 1)}
	select {
	case remote.mail <- req:
	case <-remote.ctx.Done():
		return nil, 0, errEnded
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	select {
	case r := <-req.answer:
		switch {
		case r.err != nil:
			return nil, 0, r.err
		case r.chunk.Size < 0:
			return nil, 0, fmt.Errorf("%s: output of %s: %s", remote.host.Name, id, r.chunk.Why)
		}
		return r.chunk.Bulk, r.chunk.Size, nil
	case <-remote.ctx.Done():
		return nil, 0, errEnded
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

func readPiece(path string, offset int64, limit int) ([]byte, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	if offset < 0 {
		offset = max(0, info.Size()+offset)
	}
	b := make([]byte, limit)
	n, err := file.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, info.Size(), err
	}
	return b[:n], info.Size(), nil
}

// read passes a request on; the helper answers with a chunk of the same id.
func (a *agent) read(r readRequest) {
	if a.worker == nil {
		r.answer <- readAnswer{err: fmt.Errorf("%s is not connected: its output cannot be read now", a.host.Name)}
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
		r.answer <- readAnswer{chunk: c}
	}
}

func (a *agent) dropReads() {
	for id, r := range a.reads {
		delete(a.reads, id)
		r.answer <- readAnswer{err: fmt.Errorf("the link to %s was lost while its output was being read", a.host.Name)}
	}
}
