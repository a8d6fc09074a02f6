//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// serveReads serves a channel that only reads outputs (hosts.Open.Reads). It creates no file
// and touches neither the fence nor the spool, so it can run beside a dispatcher's helper.
func serveReads(in *wire.Reader, out *outbox, o *hosts.Open, limits limits) error {
	hello := newHello()
	h := &helper{open: o, outbox: out, reads: newWorker()}
	if err := h.findOutputs(); err != nil {
		setError(hello, err)
		out.send(hello)
		return nil
	}
	hello.Dir = h.dir
	out.send(hello)
	return serveChannel(in, out, limits.silence, func(m hosts.Message) (done bool, err error) {
		switch m := m.(type) {
		case *hosts.Read:
			h.read(m)
		case *hosts.Ping:
		case *hosts.Bye:
			return true, nil
		default:
			return true, fmt.Errorf("%q is refused by a read-only helper", m.Kind())
		}
		return false, nil
	})
}

// findOutputs sets the directory in which this host keeps the outputs of the run. It knows
// only the uid of the run.
func (h *helper) findOutputs() error {
	o := h.open
	if err := checkOpen(o); err != nil {
		return err
	}
	work, err := workPath(o.WorkDir)
	if err != nil {
		return err
	}
	h.workDir = filepath.Join(work, o.Run)
	h.dir, h.disk = h.workDir, rundir.WithCalls(h.workDir, call)
	if err := checkOwner(work); err != nil && !isAbsent(err) {
		return fmt.Errorf("work_dir cannot be used: %w", err)
	}
	_, err = listNames(h.dir)
	if isAbsent(err) {
		return fmt.Errorf("nothing of the run is in %s: %w; it was removed, or work_dir was another", work, err)
	}
	if err == nil {
		_, err = checkOwnDir(h.dir) // work_dir may be below /tmp
	}
	if err != nil {
		return err
	}
	note, err := readFile(filepath.Join(h.dir, filePlace+o.Host))
	if place, dir := cutPlace(note); err == nil && place == placeShared {
		return errors.New("it keeps its outputs in the run directory " + dir)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// read sends a piece of an output file. The file is read in a goroutine that may hang.
func (h *helper) read(m *hosts.Read) {
	if !h.reads.do(func() { h.outbox.send(h.readOutput(m)) }) {
		h.outbox.send(&hosts.Chunk{ID: m.ID, Size: -1, Why: whyHangs})
	}
}

// readOutput reads a piece of an output of an attempt, of a file that it returns, or, without a
// path, of the list of these files.
func (h *helper) readOutput(m *hosts.Read) *hosts.Chunk {
	if m.File == hosts.FileReturned {
		store, id := files.Store{Dir: filesDir(h.workDir, h.open.Host)}, m.Attempt.String()
		if m.Path == "" {
			text, err := store.Returned(id)
			return readPiece(m, bytes.NewReader(text), int64(len(text)), err, !isTransient(err))
		}
		f, err := store.OpenReturned(id, m.Path)
		if err != nil {
			return readPiece(m, nil, 0, err, !isTransient(err))
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return readPiece(m, nil, 0, err, !isTransient(err))
		}
		return readPiece(m, f, st.Size(), nil, false)
	}
	if m.File != jobs.FileOut && m.File != jobs.FileErr && m.File != jobs.FileStatus {
		return readPiece(m, nil, 0, fmt.Errorf("%q is not an output file", m.File), false)
	}
	f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, m.Attempt, m.File), os.O_RDONLY, 0)
	if err != nil {
		return readPiece(m, nil, 0, err, errors.Is(err, fs.ErrNotExist))
	}
	defer f.Close()
	size, err := f.Size()
	return readPiece(m, f, size, err, false)
}

// readPiece reads the part of f that m asks for. If err is not nil, the answer reports it, and
// none means that there is no such file.
func readPiece(m *hosts.Read, f io.ReaderAt, size int64, err error, none bool) *hosts.Chunk {
	if err != nil {
		return &hosts.Chunk{ID: m.ID, Size: -1, Why: err.Error(), None: none}
	}
	c := &hosts.Chunk{ID: m.ID, Size: size, Offset: m.Offset}
	if m.Offset < 0 {
		c.Offset = max(0, size+m.Offset)
	}
	c.Bulk = make([]byte, min(int64(max(0, m.Limit)), hosts.MaxChunk, max(0, size-c.Offset)))
	n, err := f.ReadAt(c.Bulk, c.Offset)
	c.Bulk = c.Bulk[:n]
	if err != nil && err != io.EOF {
		c.Size, c.Why = -1, err.Error()
	}
	return c
}
