//go:build linux

package remote

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
)

// link is one channel to a helper.
type link struct {
	cmd    *exec.Cmd
	out    *wire.Writer
	msgs   chan hosts.Message
	stderr bytes.Buffer
	over   bool
}

// maxStarts is how many helpers one fault may cost at most: it happens once.
const maxStarts = 4

// connect starts helpers until one says hello and is content.
func (d *driver) connect() {
	d.t.Helper()
	for {
		if d.starts++; d.starts > maxStarts && d.p.How != howFull || d.starts > 100 {
			d.t.Fatalf("no helper stays; said:\n\t%s", strings.Join(d.said, "\n\t"))
		}
		d.p.Helper = min(d.starts, 2)
		l := &link{msgs: make(chan hosts.Message, 1024)}
		l.cmd = exec.Command(filepath.Join(d.w.base, "bin", "dcs-tui-test"), wordHost)
		l.cmd.Env = append(os.Environ(), d.p.env(), beatEnv+"=100ms", nowhereEnv+"=1h")
		l.cmd.Stderr = &l.stderr
		in, err1 := l.cmd.StdinPipe()
		out, err2 := l.cmd.StdoutPipe()
		if err := l.cmd.Start(); err1 != nil || err2 != nil || err != nil {
			d.t.Fatal(err1, err2, err)
		}
		l.out = wire.NewWriter(in)
		var read sync.WaitGroup
		read.Go(func() {
			defer close(l.msgs)
			for r := wire.NewReader(out); ; {
				m, err := r.Read()
				if err != nil {
					return
				}
				l.msgs <- m
			}
		})
		d.link = l
		l.out.Write(d.open)
		m, ok := d.receive(bound)
		if h, is := m.(*hosts.Hello); ok && is && h.Error == "" && h.FencedBy == 0 {
			for _, s := range append(h.Warnings, h.CwdError) {
				d.say("hello", s)
			}
			d.ping()
			return
		} else if is {
			d.say("hello", h.Error)
		} else if ok {
			d.t.Fatalf("it began with %s", m.Word())
		}
		d.hangUp()
	}
}

// hangUp waits until a helper that is leaving has left.
func (d *driver) hangUp() {
	l := d.link
	for _, ok := d.receive(bound); ok; _, ok = d.receive(bound) {
	}
	if !l.over {
		d.t.Fatalf("the helper does not leave; said:\n\t%s", strings.Join(d.said, "\n\t"))
	}
}

// receive takes in one message; false when none came in time or none will come.
func (d *driver) receive(wait time.Duration) (hosts.Message, bool) {
	l := d.link
	if l.over {
		return nil, false
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case m, ok := <-l.msgs:
		if ok {
			d.hear(m)
			return m, true
		}
		l.over = true
		l.cmd.Wait()
		for line := range strings.Lines(l.stderr.String()) {
			d.say("stderr", line)
		}
	case <-late.C:
	}
	return nil, false
}

func (d *driver) ping() {
	d.link.out.Write(&hosts.Ping{Seq: 1, LeaseUptime: uptime() + time.Hour})
}
