//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
)

// serveReads is a helper that gives pieces of outputs and does nothing else
// (hosts.Open.Reads): it makes no file, passes no fence, touches no spool, and so may
// serve beside the helper of a dispatcher.
func serveReads(in *wire.Reader, stdout io.Writer, o *hosts.Open, lim limits) error {
	hello := &hosts.Hello{Version: hosts.ProtocolVersion, BootID: bootID(), Uptime: uptime(),
		OS: runtime.GOOS, Arch: runtime.GOARCH, PID: os.Getpid(), WallClock: wall()}
	h := &helper{open: o, out: newOutbox(wire.NewWriter(stdout)), reads: newWorker()}
	defer h.out.flush()
	if err := h.findOutputs(); err != nil {
		hello.Error, hello.Passing = err.Error(), passing(err)
		h.out.send(hello)
		return nil
	}
	hello.Dir = h.dir
	h.out.send(hello)
	asked := make(chan *hosts.Read)
	ended := make(chan error, 1)
	go func() { ended <- h.asks(in, asked) }()
	silence := time.NewTimer(lim.silence)
	defer silence.Stop()
	for {
		select {
		case m := <-asked:
			silence.Reset(lim.silence)
			if m != nil {
				h.read(m)
			}
		case err := <-ended:
			return err
		case err := <-h.out.broken:
			return fmt.Errorf("writing to who reads: %w", err)
		case <-silence.C:
			return fmt.Errorf("nothing heard for %v", lim.silence)
		}
	}
}

// asks passes on what is asked for, nil for a sign of life, until the channel ends or
// a Bye comes.
func (h *helper) asks(in *wire.Reader, asked chan<- *hosts.Read) error {
	for {
		m, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch m := m.(type) {
		case *hosts.Read:
			asked <- m
		case *hosts.Ping:
			asked <- nil
		case *hosts.Bye:
			return nil
		default:
			return fmt.Errorf("%q is nothing for a helper that only reads", m.Word())
		}
	}
}

// findOutputs finds the directory in which this host keeps what its attempts wrote,
// by the uid of the run alone.
func (h *helper) findOutputs() error {
	o := h.open
	if o.Version != hosts.ProtocolVersion {
		return fmt.Errorf("who asks speaks version %d, this helper %d", o.Version, hosts.ProtocolVersion)
	}
	if err := plainName("the run's uid", o.Run); err != nil {
		return err
	}
	if err := plainName("the host's name", o.Host); err != nil {
		return err
	}
	work, err := workPath(o.WorkDir)
	if err != nil {
		return err
	}
	h.dir = filepath.Join(work, o.Run)
	if err := notOthers(work); err != nil && !absent(err) {
		return fmt.Errorf("work_dir cannot be used: %w", err)
	}
	_, err = list(h.dir)
	if absent(err) {
		return fmt.Errorf("nothing of the run is in %s: %w; it was removed, or work_dir was another", work, err)
	}
	if err == nil {
		_, err = isOurs(h.dir) // work_dir may stand in /tmp
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
