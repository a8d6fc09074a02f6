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
	if r.File != jobs.FileOut && r.File != jobs.FileErr {
		return nil, refuse("an attempt prints nothing into a file %q", string(r.File))
	}
	if r.Limit <= 0 || r.Limit > hosts.MaxChunk {
		r.Limit = hosts.MaxChunk
	}
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	v.mu.Lock()
	var a jobs.Attempt // as it is before the read: what is over by now is whole in what is read
	at := v.table.Attempt(r.Attempt)
	if at != nil {
		a = *at
	}
	there, conn := v.place.HostDirs[a.Host], v.link.conn
	v.mu.Unlock()
	over := !a.State.Open()
	switch {
	case at == nil:
		return nil, refuse("there is no attempt %s", r.Attempt)
	case over && a.Started == 0 && a.Outcome == nil:
		return nil, refuse("attempt %s has never started: it has printed nothing", r.Attempt)
	}
	data, size, err := v.output(ctx, r, &a, there, conn)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !over: // it may be about to start
		return &Piece{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the output of %s, which ran on %s, is not there any more: %w", r.Attempt, a.Host, err)
	case err != nil:
		return nil, err
	}
	offset := r.Offset
	if offset < 0 {
		offset = max(0, size+offset)
	}
	return &Piece{Offset: offset, Data: data, Size: size, Over: over}, nil
}

// output reads a piece of a file. The dispatcher reads it on the host while the attempt
// runs, which is newer than what a file server shows, and where only the host has it.
// there is where a host that does not share the run directory keeps it.
func (v *View) output(ctx context.Context, r Read, a *jobs.Attempt, there string, conn Conn) (data []byte, size int64, err error) {
	path := jobs.AttemptFile(v.run.Dir, r.Attempt, r.File)
	var far error // why the dispatcher could not read it
	if conn != nil && (a.State.Open() || there != "") {
		piece, err := conn.Read(ctx, socket.Read{Attempt: r.Attempt, File: r.File, Offset: r.Offset, Limit: r.Limit})
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
