//go:build linux

package remote

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// read answers with a piece of an output file, from a goroutine that may hang
// with its file system.
func (h *helper) read(m *hosts.Read) {
	if !h.reads.do(func() { h.out.send(h.chunk(m)) }) {
		h.out.send(&hosts.Chunk{ID: m.ID, Size: -1, Why: "the file system does not answer"})
	}
}

func (h *helper) chunk(m *hosts.Read) *hosts.Chunk {
	c := &hosts.Chunk{ID: m.ID, Size: -1}
	if m.File == hosts.FileReturned {
		h.returned(m, c)
		return c
	}
	if m.File != jobs.FileOut && m.File != jobs.FileErr && m.File != jobs.FileStatus {
		c.Why = fmt.Sprintf("%q is not an output file", m.File)
		return c
	}
	path := jobs.AttemptFile(h.dir, m.Attempt, m.File)
	fd, err := openPlain(path) // a job may have put a pipe there
	if err != nil {
		c.Why, c.None = err.Error(), errors.Is(err, unix.ENOENT)
		return c
	}
	defer closeFile(fd, path)
	var st unix.Stat_t
	if err := fstat(fd, path, &st); err != nil {
		c.Why = err.Error()
		return c
	}
	c.Size, c.Offset = st.Size, m.Offset
	if m.Offset < 0 {
		c.Offset = max(0, c.Size+m.Offset)
	}
	room := min(int64(max(0, m.Limit)), hosts.MaxChunk, max(0, c.Size-c.Offset))
	c.Bulk = make([]byte, room)
	have := 0
	for have < len(c.Bulk) {
		n, err := pread(fd, path, c.Bulk[have:], c.Offset+int64(have))
		if err != nil {
			c.Size, c.Why = -1, err.Error()
		}
		if n == 0 {
			break
		}
		have += n
	}
	c.Bulk = c.Bulk[:have]
	return c
}
