package control

import (
	"sync"
	"time"

	"dcs-tui/jobs/runview"
)

// lazySource is a source that is there while somebody looks, and for a moment
// afterwards: who types two commands in a row does not pay twice.
type lazySource struct {
	open func() (source runview.Source, let func(), err error)

	mu     sync.Mutex
	source runview.Source
	let    func() // lets go of it
	users  int
	linger *time.Timer
	closed bool
}

// acquire gives the source to one more user, who calls release once.
func (l *lazySource) acquire() (runview.Source, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, runview.ErrGone
	case l.source == nil:
		source, let, err := l.open()
		if err != nil {
			return nil, err
		}
		l.source, l.let = source, let
	}
	if l.linger != nil {
		l.linger.Stop()
		l.linger = nil
	}
	l.users++
	return l.source, nil
}

func (l *lazySource) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 || l.closed {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(lingerFor, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.linger == t {
			l.drop()
		}
	})
	l.linger = t
}

// close ends it for good.
func (l *lazySource) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.drop()
}

func (l *lazySource) drop() {
	if l.linger != nil {
		l.linger.Stop()
		l.linger = nil
	}
	if l.source != nil {
		l.let()
	}
	l.source, l.let = nil, nil
}
