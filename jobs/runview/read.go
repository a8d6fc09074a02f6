package runview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Read returns a piece of what an attempt has printed, at most hosts.MaxChunk bytes.
// It waits for no Look, and no Look waits for it.
func (b *Board) Read(ctx context.Context, r Read) (*Piece, error) {
	if r.File != jobs.FileOut && r.File != jobs.FileErr {
		return nil, &Refused{Why: fmt.Sprintf("an attempt prints nothing into a file %q", string(r.File))}
	}
	if r.Limit <= 0 || r.Limit > hosts.MaxChunk {
		r.Limit = hosts.MaxChunk
	}
	type found struct {
		known, ran, over bool
		host, dir        string
	}
	answer := make(chan found, 1)
	if err := b.from.visit(ctx, func(k *desk) {
		var f found
		if a := k.table.Attempt(r.Attempt); a != nil {
			dir, _ := k.dir(a)
			f = found{true, a.Started != 0 || a.Outcome != nil, !a.State.Open(), a.Host, dir}
		}
		answer <- f
	}); err != nil {
		return nil, err
	}
	f := <-answer // before the read: what is over by now is whole in what is read
	switch {
	case !f.known:
		return nil, &Refused{Why: fmt.Sprintf("there is no attempt %s", r.Attempt)}
	case !f.ran && f.over:
		return nil, &Refused{Why: fmt.Sprintf("attempt %s has never started: it has printed nothing", r.Attempt)}
	}
	data, size, err := b.from.output(ctx, r, f.host, f.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.over: // it may be about to start
		return &Piece{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the output of %s, which ran on %s, is not there any more: %w", r.Attempt, f.host, err)
	case err != nil:
		return nil, err
	}
	at := r.Offset
	if at < 0 {
		at = max(0, size+at)
	}
	return &Piece{Offset: at, Data: data, Size: size, Over: f.over}, nil
}

func (l *liveSource) output(ctx context.Context, r Read, _, _ string) ([]byte, int64, error) {
	data, size, err := l.d.Output(ctx, r.Attempt, r.File, r.Offset, r.Limit)
	if err != nil && ctx.Err() == nil && isClosed(l.ended()) {
		return nil, 0, ErrGone
	}
	return data, size, err
}

func (r *replayed) output(ctx context.Context, m Read, host, dir string) ([]byte, int64, error) {
	path := jobs.AttemptFile(dir, m.Attempt, m.File)
	if filepath.IsAbs(path) {
		return r.files.Read(ctx, path, m.Offset, m.Limit)
	}
	// It may have been brought here since somebody looked.
	data, size, err := r.files.Read(ctx, jobs.AttemptFile(r.past.Run.Dir, m.Attempt, m.File), m.Offset, m.Limit)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return data, size, err
	case r.past.Far == nil:
		return nil, 0, fmt.Errorf("the output of %s is only on its host, dcs-tui fetch brings it here: %s", m.Attempt, path)
	}
	data, size, err = r.past.Far(ctx, host, m)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the output of %s is only on its host: %w", m.Attempt, err)
	}
	return data, size, err
}
