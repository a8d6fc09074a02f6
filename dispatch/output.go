package dispatch

import (
	"cmp"
	"context"
	"fmt"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

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

// output reads a part of a file on the host.
func (a *agent) output(ctx context.Context, m hosts.Read) ([]byte, int64, error) {
	reads := a.reads.Load()
	if reads == nil {
		return nil, 0, fmt.Errorf("%s is not connected: its output cannot be read now", a.name)
	}
	return reads.Read(ctx, m)
}
