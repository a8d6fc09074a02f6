//go:build linux

package remote

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
	"dcs-tui/jobs"
)

// far is a helper with the dispatcher's end of its channel.
type far struct {
	w       *world
	cmd     *exec.Cmd
	in      io.WriteCloser
	stdout  io.Closer
	out     *wire.Writer
	msgs    chan hosts.Message
	readErr error
	stderr  strings.Builder
	hello   *hosts.Hello
	pending []hosts.Message
	ended   bool
	mayDie  bool // supervisors are killed on purpose
}

func (w *world) start(open *hosts.Open) *far {
	w.t.Helper()
	f := &far{w: w, msgs: make(chan hosts.Message, 4096)}
	f.cmd = exec.Command(filepath.Join(w.base, "bin", "dcs-tui-test"), wordHost)
	f.cmd.Stderr = &f.stderr
	in, err1 := f.cmd.StdinPipe()
	out, err2 := f.cmd.StdoutPipe()
	if err := f.cmd.Start(); err1 != nil || err2 != nil || err != nil {
		w.t.Fatal(err1, err2, err)
	}
	f.in, f.stdout, f.out = in, out, wire.NewWriter(in)
	go func() {
		defer close(f.msgs)
		r := wire.NewReader(out)
		for {
			m, err := r.Read()
			if err != nil {
				f.readErr = err
				return
			}
			f.msgs <- m
		}
	}()
	w.t.Cleanup(func() {
		if !f.ended {
			f.cmd.Process.Kill()
			f.cmd.Wait()
		}
	})
	f.send(open)
	f.hello = await(f, func(h *hosts.Hello) bool { return true })
	if f.hello.Error == "" && f.hello.FencedBy == 0 {
		f.ping(time.Hour)
	}
	return f
}

func (f *far) send(msgs ...hosts.Message) {
	f.w.t.Helper()
	if err := f.out.Write(msgs...); err != nil {
		f.w.t.Fatalf("to the helper: %v; it said %q", err, f.stderr.String())
	}
}

func (f *far) ping(lease time.Duration) { f.send(&hosts.Ping{Seq: 1, LeaseUptime: uptime() + lease}) }

func (f *far) launch(list ...hosts.LaunchJob) {
	f.w.t.Helper()
	f.send(&hosts.Launch{Epoch: 1, ExpireUptime: uptime() + time.Minute, Jobs: list})
}

// await returns the first message of type T that ok accepts; others stay for later.
func await[T any, P interface {
	*T
	hosts.Message
}](f *far, ok func(P) bool) P {
	f.w.t.Helper()
	for i, m := range f.pending {
		if p, is := m.(P); is && ok(p) {
			f.pending = append(f.pending[:i:i], f.pending[i+1:]...)
			return p
		}
	}
	late := time.After(bound)
	for {
		select {
		case m, open := <-f.msgs:
			if !open {
				f.w.t.Fatalf("the helper ended (%v) before it sent %T; it said %q; pending %s", f.readErr, *new(T), f.stderr.String(), show(f.pending))
			}
			if p, is := m.(P); is && ok(p) {
				return p
			}
			f.pending = append(f.pending, m)
		case <-late:
			f.w.t.Fatalf("no %T came; the helper said %q; pending %s", *new(T), f.stderr.String(), show(f.pending))
		}
	}
}

func show(msgs []hosts.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "\n\t%s %+v", m.Word(), m)
	}
	return b.String()
}

// exit waits for the outcome of one attempt. It stays to be found again.
func (f *far) exit(id string) jobs.Outcome {
	f.w.t.Helper()
	var o jobs.Outcome
	await(f, func(m *hosts.Exits) bool {
		for _, j := range m.Jobs {
			if j.Attempt.String() == id {
				o = j.Outcome
				f.pending = append(f.pending, m)
				return true
			}
		}
		return false
	})
	return o
}

func (f *far) probed(id string) hosts.ProbedJob {
	f.w.t.Helper()
	var p hosts.ProbedJob
	await(f, func(m *hosts.Probed) bool {
		for _, j := range m.Jobs {
			if j.Attempt.String() == id {
				p = j
				return true
			}
		}
		return false
	})
	return p
}

func (f *far) probe(id string) hosts.ProbedJob {
	f.w.t.Helper()
	f.send(&hosts.Probe{Epoch: 1 << 20, Attempts: []jobs.AttemptID{attemptID(f.w.t, id)}})
	return f.probed(id)
}

func (f *far) withdrawn(id string) *hosts.Withdrawn {
	f.w.t.Helper()
	return await(f, func(m *hosts.Withdrawn) bool {
		for _, a := range m.Attempts {
			if a.String() == id {
				return true
			}
		}
		return false
	})
}

func (f *far) refused(id string) *hosts.Refused {
	f.w.t.Helper()
	return await(f, func(m *hosts.Refused) bool {
		for _, a := range m.Attempts {
			if a.String() == id {
				return true
			}
		}
		return false
	})
}

// kill9 ends the helper as a crash would.
func (f *far) kill9() {
	f.w.t.Helper()
	f.cmd.Process.Kill()
	f.cmd.Wait()
	f.ended = true
}

// wait waits until the helper has ended by itself, and returns how.
func (f *far) wait() error {
	f.w.t.Helper()
	late := time.AfterFunc(bound, func() { f.cmd.Process.Kill() })
	for m := range f.msgs {
		f.pending = append(f.pending, m)
	}
	f.ended = true
	err := f.cmd.Wait()
	if !late.Stop() {
		f.w.t.Fatalf("the helper did not end; pending %s", show(f.pending))
	}
	return err
}

// bye ends the run on the host and waits until the helper has ended.
func (f *far) bye() {
	f.w.t.Helper()
	f.send(&hosts.Bye{End: true})
	for m := range f.msgs {
		f.pending = append(f.pending, m)
	}
	if err := f.cmd.Wait(); err != nil {
		f.w.t.Errorf("the helper ended with %v: %q", err, f.stderr.String())
	}
	f.ended = true
	for _, m := range f.pending {
		if m, ok := m.(*hosts.Trouble); ok && strings.Contains(m.Text, "died") && !f.mayDie {
			f.w.t.Errorf("trouble: %s", m.Text)
		}
	}
	if _, err := os.Stat(f.w.spool().dir); !os.IsNotExist(err) {
		f.w.t.Errorf("the spool is still there after Bye: %v", err)
	}
}
