package cli

import (
	"context"
	"sync"

	"github.com/spf13/pflag"

	"dcs-tui/hosts/fetch"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// farReader reads a piece of what an attempt printed on its host, and the size of all
// of it.
type farReader = func(ctx context.Context, host string, r runview.Read) (data []byte, size int64, err error)

// farOutputs is a farReader that connects to a host when it is first asked, as the run
// did.
type farOutputs struct {
	app *app
	run *rundir.Run

	mu      sync.Mutex
	readers map[string]*fetch.Reader // by host
}

func (f *farOutputs) read(ctx context.Context, host string, r runview.Read) ([]byte, int64, error) {
	reader, err := f.reader(host)
	if err != nil {
		return nil, 0, err
	}
	// It has deadlines of its own, and what is left of ctx may not do for a connection.
	return reader.Read(context.WithoutCancel(ctx), fetch.Piece{Host: host, Attempt: r.Attempt, File: r.File, Offset: r.Offset, Limit: r.Limit})
}

func (f *farOutputs) reader(host string) (*fetch.Reader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.readers[host]; r != nil {
		return r, nil
	}
	var o options
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	sshFlags(fs, &o.SSHConfig, &o.AcceptNew)
	if err := restoreFlags(fs, f.run.Asked.Options); err != nil {
		return nil, err
	}
	r, err := f.app.outputsReader(f.run, &o, "", host)
	if err != nil {
		return nil, err
	}
	if f.readers == nil {
		f.readers = map[string]*fetch.Reader{}
	}
	f.readers[host] = r
	return r, nil
}

func (f *farOutputs) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.readers {
		r.Close()
	}
}
