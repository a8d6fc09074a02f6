package runview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Read returns a piece of what an attempt has printed, at most hosts.MaxChunk bytes.
func (v *View) Read(ctx context.Context, r Read) (*Piece, error) {
	if r.Limit <= 0 || r.Limit > hosts.MaxChunk {
		r.Limit = hosts.MaxChunk
	}
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	v.mu.Lock()
	var a *jobs.Attempt // as it is before the read: what is over by now is whole in what is read
	var there string
	if at := v.table.Attempt(r.Attempt); at != nil {
		copied := *at
		a, there = &copied, v.place.HostDirs[at.Host]
	}
	conn := v.link.conn
	v.mu.Unlock()
	return socket.ReadPiece(r, a, func() ([]byte, int64, error) { return v.output(ctx, r, a, there, conn) })
}

// output reads a piece of a file. The dispatcher reads it on the host while the attempt
// runs, which is newer than what a file server shows, and where only the host has it.
// there is where a host that does not share the run directory keeps it.
func (v *View) output(ctx context.Context, r Read, a *jobs.Attempt, there string, conn Conn) (data []byte, size int64, err error) {
	path := jobs.AttemptFile(v.run.Dir, r.Attempt, r.File)
	var far error // why the dispatcher could not read it
	if conn != nil && (a.State.Open() || there != "") {
		piece, err := conn.Read(ctx, socket.Read(r))
		if err == nil {
			return piece.Data, piece.Size, nil
		}
		if far = err; ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
	}
	data, size, err = v.files.Read(ctx, path, r.Offset, r.Limit) // it may have been brought here
	switch {
	case there == "" || !errors.Is(err, fs.ErrNotExist):
		return data, size, err
	case far != nil && !errors.Is(far, socket.ErrGone):
		return nil, 0, far
	case v.opt.Far == nil:
		return nil, 0, fmt.Errorf("the output of %s is only on its host, dcs-tui fetch brings it here: %s", r.Attempt, jobs.AttemptFile(there, r.Attempt, r.File))
	}
	data, size, err = v.opt.Far(ctx, a.Host, r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the output of %s is only on its host: %w", r.Attempt, err)
	}
	return data, size, err
}

// fileOf is where a file of an attempt is. mu is held.
func (v *View) fileOf(a *jobs.Attempt, f jobs.File) string {
	dir := v.run.Dir
	if there := v.place.HostDirs[a.Host]; there != "" && !v.brought[a.ID] {
		dir = there
	}
	return jobs.AttemptFile(dir, a.ID, f)
}
