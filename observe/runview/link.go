package runview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// dialInterval is the time between attempts to connect to a dispatcher.
const dialInterval = 2 * time.Second

// link is the connection of a View to the dispatcher, and what was received over it. View.mu guards
// it.
type link struct {
	conn    Conn // nil: there is none
	token   string
	dialing bool
	after   time.Time // no attempt to connect before this time
	lost    bool      // the connection was lost: read at once who dispatches the run
	follows bool      // the dispatcher pushes over the connection

	durable live.Durable
	state   *live.State
}

// keepConnected connects to the dispatcher, and disconnects from one that has lost the run. mu is
// held.
func (v *View) keepConnected() {
	l, owner := &v.link, v.facts.owner
	if l.conn != nil && (owner == nil || owner.Token != l.token) {
		v.disconnect()
	}
	if v.opt.Socket == nil || l.conn != nil || l.dialing || v.closed || !v.facts.dispatched || owner.Socket == "" ||
		time.Now().Before(l.after) {
		return
	}
	l.dialing = true
	v.all.Go(func() { v.dial(owner) })
}

// disconnect forgets the connection; dial closes it. mu is held.
func (v *View) disconnect() {
	v.link.conn, v.link.follows, v.link.durable, v.link.state = nil, false, live.Durable{}, nil
}

// dial connects, and returns when the connection has ended or is no longer wanted.
func (v *View) dial(owner *journal.Owner) {
	conn, err := v.opt.Socket(v.ctx, owner)
	if err == nil {
		v.mu.Lock()
		v.link.conn, v.link.token = conn, owner.Token
		v.mu.Unlock()
		err = conn.Follow(v.ctx, func(d live.Durable) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.link.conn == conn {
				v.link.durable = d
				v.pollSoon()
			}
		}, func(s *live.State) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.link.conn == conn && s.Token == owner.Token && s.Epoch == owner.Epoch {
				v.link.state = s
				if v.facts.dispatched && v.facts.owner.Token == owner.Token {
					v.setState(s)
					v.changed()
				}
			}
		})
	}
	if err == nil {
		v.mu.Lock()
		v.link.follows = v.link.conn == conn
		v.changed()
		v.mu.Unlock()
		v.awaitDisconnect(conn)
	}
	if conn != nil {
		conn.Close()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	l := &v.link
	l.dialing, l.after = false, time.Now().Add(dialInterval)
	defer v.changed()
	if conn != nil && l.conn == conn {
		v.disconnect()
		l.lost, l.after = true, time.Time{}
		v.pollSoon()
	}
}

// awaitDisconnect waits until conn has ended or is no longer the connection of the View.
func (v *View) awaitDisconnect(conn Conn) {
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	v.all.Go(func() {
		select {
		case <-conn.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	_ = v.waitFor(ctx, func() bool { return v.link.conn != conn || v.closed })
}

// connection returns the connection, or nil if there is none.
func (v *View) connection() Conn {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.link.conn
}

// Connect waits until the View is connected to the dispatcher and shows what the dispatcher knows.
// It returns earlier if there is no dispatcher, if connecting fails, or if it takes too long.
func (v *View) Connect(ctx context.Context) {
	soon, cancel := context.WithTimeout(ctx, dialInterval)
	defer cancel()
	connected := func() bool {
		l := &v.link
		pushed := l.follows && l.state != nil
		return pushed || !v.facts.dispatched || v.opt.Socket == nil || v.facts.owner.Socket == "" || !l.after.IsZero()
	}
	if v.waitFor(soon, connected) == nil {
		v.refresh(ctx)
	}
}

// Read returns a part of an attempt's output, at most hosts.MaxChunk bytes.
func (v *View) Read(ctx context.Context, r Read) (*Piece, error) {
	if r.Limit <= 0 || r.Limit > hosts.MaxChunk {
		r.Limit = hosts.MaxChunk
	}
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	v.mu.Lock()
	var a *jobs.Attempt // read before the output, so that the output of an ended attempt is whole
	var there string
	if at := v.table.Attempt(r.Attempt); at != nil {
		a, there = new(*at), v.place.HostDirs[at.Host]
	}
	conn := v.link.conn
	v.mu.Unlock()
	return socket.ReadPiece(r, a, func() ([]byte, int64, error) { return v.output(ctx, r, a, there, conn) })
}

// output reads a part of a file. While the attempt runs, the dispatcher reads it on the host: that
// is newer than what a file server shows, and works if only the host has the file. there is the
// place of the file on a host that does not share the run directory.
func (v *View) output(ctx context.Context, r Read, a *jobs.Attempt, there string,
	conn Conn) (data []byte, size int64, err error) {
	path := jobs.AttemptFile(v.run.Dir, r.Attempt, r.File)
	var far error // why the dispatcher could not read it
	if conn != nil && (a.State.Open() || there != "") {
		piece, err := conn.Read(ctx, socket.Read(r))
		if err == nil {
			return piece.Data, piece.Size, nil
		}
		far = err
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
	}
	data, size, err = v.files.Read(ctx, path, r.Offset, r.Limit) // it may have been copied here
	switch {
	case there == "" || !errors.Is(err, fs.ErrNotExist):
		return data, size, err
	case far != nil && !errors.Is(far, socket.ErrGone):
		return nil, 0, far
	case v.opt.Far == nil:
		return nil, 0, fmt.Errorf("the output of %s is only on its host, dcs-tui fetch copies it here: %s", r.Attempt,
			jobs.AttemptFile(there, r.Attempt, r.File))
	}
	data, size, err = v.opt.Far(ctx, a.Host, r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the output of %s is only on its host: %w", r.Attempt, err)
	}
	return data, size, err
}

// farDir returns the host:directory of an attempt's output if only its host has that, or "". mu is held.
func (v *View) farDir(a *jobs.Attempt) string {
	there := v.place.HostDirs[a.Host]
	if there == "" || v.fetched[a.ID] {
		return ""
	}
	return filepath.Join(there, rundir.AttemptsDir)
}
