package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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
// attempt runs there or when the host does not share the run directory, else from the
// run directory. A negative offset counts from the end; size is the file's size now.
// It waits for nothing but this file, and no longer than ctx.
func (d *Dispatcher) Output(ctx context.Context, id jobs.AttemptID, f jobs.File, offset int64, limit int) (data []byte, size int64, err error) {
	if limit <= 0 || limit > hosts.MaxChunk {
		limit = hosts.MaxChunk
	}
	var remote *agent
	var known, shared bool
	var dir string
	if err := d.Inspect(ctx, func(in *Inside) {
		a := in.Table.Attempt(id)
		if known = a != nil; !known {
			return
		}
		dir = in.FilesDir(a.Host)
		shared = dir == d.cfg.RunDir
		ag := in.e.agents[a.Host]
		if ag != nil && (!shared || a.State.Open() && ag.host.Link != "local" && in.Core.Linked(a.Host)) {
			remote = ag
		}
	}); err != nil {
		return nil, 0, err
	}
	if !known {
		return nil, 0, fmt.Errorf("there is no attempt %s", id)
	}
	path := jobs.AttemptFile(dir, id, f)
	switch {
	case remote != nil:
		data, size, err = remote.output(ctx, hosts.Read{Attempt: id, File: f, Offset: offset, Limit: limit})
		if err == nil || !shared || ctx.Err() != nil {
			return data, size, err
		}
	case !shared:
		return nil, 0, fmt.Errorf("the output of %s is only on its host, which is not in the inventory any more: %s", id, path)
	}
	return d.readHere(ctx, path, offset, limit)
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
		case r.chunk.Size < 0:
			return nil, 0, fmt.Errorf("%s: output of %s: %s", a.host.Name, m.Attempt, r.chunk.Why)
		}
		return r.chunk.Bulk, r.chunk.Size, nil
	case <-a.ctx.Done():
		return nil, 0, errEnded
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// maxHostReads bounds the pieces that a host is asked for and has not given yet,
// whoever still waits for them: its beats and results come over the same link.
const maxHostReads = 8

// reply answers a read and gives its place back.
func (a *agent) reply(r readRequest, is readAnswer) {
	r.answer <- is
	<-a.reading
}

// maxReads bounds the reads of files that are under way at once: each may hang for
// as long as its file system does.
const maxReads = 16

// readHere reads a file of this machine.
func (d *Dispatcher) readHere(ctx context.Context, path string, offset int64, limit int) ([]byte, int64, error) {
	type answer struct {
		data []byte
		size int64
		err  error
	}
	select {
	case d.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	got := make(chan answer, 1)
	go func() {
		defer func() { <-d.reading }()
		var a answer
		a.data, a.size, a.err = ReadPiece(path, offset, limit)
		got <- a
	}()
	select {
	case a := <-got:
		return a.data, a.size, a.err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// ReadPiece reads at most limit bytes of a file and returns its size. A negative
// offset counts from the end. On NFS a file that another machine has just made may
// show only when its directory is read.
func ReadPiece(path string, offset int64, limit int) ([]byte, int64, error) {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		if d, derr := os.Open(filepath.Dir(path)); derr == nil {
			d.Readdirnames(-1) // an error shows in the next line
			d.Close()
		}
		file, err = openRegular(path)
	}
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", path)
	}
	if offset < 0 {
		offset = max(0, info.Size()+offset)
	}
	n := min(int64(limit), info.Size()-offset)
	if n <= 0 {
		return nil, info.Size(), nil
	}
	b := make([]byte, n)
	k, err := file.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, info.Size(), err
	}
	return b[:k], info.Size(), nil
}

// openRegular opens for reading without waiting, should a job have put a pipe there;
// a terminal does not become ours.
func openRegular(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// read passes a request on; the helper answers with a chunk of the same id.
func (a *agent) read(r readRequest) {
	if a.worker == nil {
		a.reply(r, readAnswer{err: fmt.Errorf("%s is not connected: its output cannot be read now", a.host.Name)})
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
		a.reply(r, readAnswer{err: fmt.Errorf("the link to %s was lost while its output was being read", a.host.Name)})
	}
}
