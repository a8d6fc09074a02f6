package client

import (
	"context"
	"sync/atomic"
	"time"

	"dcs-tui/hosts"
)

// Options say how to connect.
type Options struct {
	Opener hosts.Opener
	// Log takes each line that a helper writes to standard error (for the file
	// hosts/<host>.log, D9), cleaned of control characters. It is called from
	// several goroutines and should not block. nil: the lines are dropped.
	Log func(host, line string)
	// ConnectTimeout bounds everything up to the hello, the sending of the binary
	// apart. 0: 20 s.
	ConnectTimeout time.Duration
	// StallTimeout is how long the sending of the binary may make no progress.
	// 0: 60 s.
	StallTimeout time.Duration
	// Bases replaces /var/tmp/dcs-UID and /tmp/dcs-UID: absolute paths joined by
	// colons. "": those two. work_dir is tried last in any case.
	Bases string
}

// Connector makes Workers. It is safe for concurrent use.
type Connector struct {
	opt      Options
	binaries *binaries
	unsent   atomic.Int64 // bytes queued in the mailboxes of all hosts
}

var _ hosts.Connector = (*Connector)(nil)

// New returns a Connector.
func New(o Options) *Connector {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 20 * time.Second
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = time.Minute
	}
	return &Connector{opt: o, binaries: newBinaries()}
}

// Connect opens a link to h, brings the helper there if it is not there yet,
// and exchanges open for its hello. ctx counts only until Connect returns.
// Errors are of the classes of package hosts, or a *hosts.FencedError when
// another dispatcher has taken the run over.
func (c *Connector) Connect(ctx context.Context, h *hosts.Host, open *hosts.Open) (hosts.Worker, error) {
	if err := checkLines(h, open); err != nil {
		return nil, err
	}
	go c.binaries.own() // hash our program while the link is being opened
	s := newSession(ctx, c, h, open)
	w, err := s.connect()
	if err = s.finish(err); err != nil {
		return nil, err
	}
	w.start()
	return w, nil
}
