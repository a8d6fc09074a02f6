package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

func (a *app) hostsCheckCmd() *cobra.Command {
	var o options
	var file string
	cmd := &cobra.Command{
		Use:   "check [flags] [HOST...]",
		Short: "Connect to the hosts and say what is wrong with them",
		Long: `Connect to the hosts, all at once, and say of each in a line what it has, or what is
wrong with it and how to correct it. Nothing is left there but the copy of the program
that the next run needs.

Exit code 0 when all are usable, 1 when one is not.`,
		ValidArgsFunction: completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runHostsCheck(&o, file, args)
		},
	}
	hostsFlag(cmd.Flags(), &file)
	sshFlags(cmd.Flags(), &o.SSHConfig, &o.AcceptNew)
	return cmd
}

// checkLimit bounds the whole of one host's check.
const checkLimit = 90 * time.Second

// checked is what the check of one host found.
type checked struct {
	host    *hosts.Host
	hello   *hosts.Hello
	beat    *hosts.Beat
	connect time.Duration // until the helper answered
	err     error
}

func (a *app) runHostsCheck(o *options, file string, names []string) error {
	_, list, err := a.chosenHosts(file, names)
	if err != nil {
		return err
	}
	connector, err := a.connector(o, list, func(string, string) {})
	if err != nil {
		return err
	}
	probe, err := newSharedProbe()
	if err != nil {
		return err
	}
	defer probe.remove()
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	a.listen() // so that an interrupt removes what was made here
	interrupted := make(chan os.Signal, 1)
	go firstSignal(a.signals, interrupted, func() {
		probe.remove()
		os.Exit(exit.Cancelled)
	})
	found := make(chan *checked, len(list))
	var leaving sync.WaitGroup
	for _, h := range list {
		leaving.Go(func() { check(ctx, connector, h, probe, found) })
	}
	out := console.New(a.stdout)
	bad, shared, own := 0, false, false
	for i := range list {
		if left := len(list) - i; left > 1 {
			a.con.Status(fmt.Sprintf("%d of %d hosts have answered", i, len(list)))
		}
		var c *checked
		select {
		case c = <-found:
		case sig := <-interrupted:
			return &exit.Problem{Err: fmt.Errorf("%s: the check was not finished", signalWord(sig)), Code: exit.Cancelled}
		}
		a.con.Status("")
		switch {
		case c.err != nil || c.hello.CwdError != "":
			bad++
		case c.hello.Shared:
			shared = true
		default:
			own = true
		}
		out.Line(c.lines(out, nameWidth(list))...)
	}
	if shared {
		out.Line("shared directory: the host sees this directory, and outputs are written here")
	}
	if own {
		out.Line("own directory: outputs stay on the host, below its work_dir, and are read through the link")
	}
	if len(list) > 1 {
		out.Line(fmt.Sprintf("%d of %s usable", len(list)-bad, jobs.Plural(len(list), "host")))
	}
	left := make(chan struct{})
	go func() {
		leaving.Wait()
		close(left)
	}()
	select {
	case <-left: // nothing of ours runs there any more
	case sig := <-interrupted:
		return &exit.Problem{Err: fmt.Errorf("%s: the check was not finished", signalWord(sig)), Code: exit.Cancelled}
	}
	if bad > 0 {
		a.code = exit.Failed
	}
	return nil
}

// firstSignal hands the first signal on. When a second one comes before anybody
// took it, the output hangs, and quit ends the program.
func firstSignal(signals <-chan os.Signal, first chan<- os.Signal, quit func()) {
	for sig := range signals {
		select {
		case first <- sig:
		default:
			quit()
			return
		}
	}
}

// sharedProbe is a directory here that the hosts are asked to look for.
type sharedProbe struct {
	dir, nonce, cwd string
}

func newSharedProbe() (*sharedProbe, error) {
	cwd, err := workDir("")
	if err != nil {
		return nil, err
	}
	p := &sharedProbe{nonce: rand.Text(), cwd: cwd}
	if p.dir, err = os.MkdirTemp(cwd, ".dcs-check-"); err != nil {
		p.dir = "" // not writable here: then it cannot be found out
		return p, nil
	}
	if err := os.WriteFile(filepath.Join(p.dir, rundir.NonceFile), []byte(p.nonce+"\n"), 0o600); err != nil {
		p.remove()
		p.dir = ""
	}
	return p, nil
}

func (p *sharedProbe) remove() {
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// check connects to one host, waits for its first beat, reports what it found, and
// takes leave.
func check(ctx context.Context, connector hosts.Connector, h *hosts.Host, p *sharedProbe, found chan<- *checked) {
	c := &checked{host: h}
	began := time.Now()
	// This name takes the place of that of a run. It must be unique, because the host
	// removes everything of that name: no other check, and no other host with the same
	// work_dir, may use it.
	uid := "check-" + rand.Text()
	w, err := connector.Connect(ctx, h, &hosts.Open{
		Version: hosts.ProtocolVersion, Run: uid, RunName: uid, Host: h.Name, Epoch: 1, RunDir: p.dir, Nonce: p.nonce,
		WorkDir: h.WorkDir, ShareDir: h.ShareDir, Cwd: p.cwd, Nice: h.Nice, Slots: h.Slots.Fixed, Less: h.Slots.Less, Check: true,
	})
	if err != nil {
		c.err = err
		found <- c
		return
	}
	defer w.Close()
	c.hello, c.connect = w.Hello(), time.Since(began)
	c.err = c.firstBeat(ctx, w)
	usable := c.err == nil
	found <- c // from now on another's
	if usable && w.Send(&hosts.Bye{End: true}) == nil {
		for drained := false; !drained; { // until it has cleaned up and gone
			select {
			case _, ok := <-w.Reports():
				drained = !ok
			case <-ctx.Done():
				drained = true
			}
		}
	}
}

func (c *checked) firstBeat(ctx context.Context, w hosts.Worker) error {
	for {
		select {
		case m, ok := <-w.Reports():
			if !ok {
				return w.Err()
			}
			switch m := m.(type) {
			case *hosts.Beat:
				c.beat = m
				return nil
			case *hosts.Trouble:
				if m.Fatal {
					return errors.New(m.Text)
				}
				c.hello.Warnings = append(c.hello.Warnings, m.Text)
			}
		case <-ctx.Done():
			return fmt.Errorf("%s: connected, but no sign of life within %s", c.host.Name, results.HumanDuration(checkLimit))
		}
	}
}

func nameWidth(hs []*hosts.Host) int {
	n := 0
	for _, h := range hs {
		n = max(n, len(h.Name))
	}
	return min(n, 30)
}

// lines say what was found, the first of them whether the host can be used.
func (c *checked) lines(out *console.Console, width int) []string {
	name := fmt.Sprintf("%-*s", width, console.CleanLine(c.host.Name))
	if c.err != nil {
		lines := []string{out.Paint(console.Red, out.Glyph("✗", "x")+" "+name+"  BAD") + "  " + console.CleanLine(withoutName(c.err, c.host.Name))}
		var e *hosts.Error
		if errors.As(c.err, &e) && e.Advice != "" {
			lines = append(lines, strings.Repeat(" ", width+9)+console.CleanLine(e.Advice))
		}
		return lines
	}
	h, b := c.hello, c.beat
	shared := "own directory"
	if h.Shared {
		shared = "shared directory"
	}
	disk := ""
	if b.DiskFree >= 0 {
		disk = ", disk " + results.HumanBytes(b.DiskFree) + " free"
	}
	memory := ""
	if b.MemFree >= 0 {
		memory = fmt.Sprintf(", memory %s of %s free", results.HumanBytes(b.MemFree), results.HumanBytes(h.MemBytes))
	}
	text := fmt.Sprintf("%s of %s, %.1f busy, load %.2f%s%s, %s, answered in %s",
		jobs.Plural(h.Slots, "slot"), jobs.Plural(h.Cores, "core"), b.Busy, b.Load[0], memory, disk, shared, results.HumanDuration(c.connect))
	if h.GPUs > 0 {
		text += ", " + jobs.Plural(h.GPUs, "GPU")
	}
	rows := out.Fill(text, ", ", width+9)
	lines := []string{out.Paint(console.Green, out.Glyph("✓", "+")+" "+name+"  up ") + "  " + rows[0]}
	for _, row := range rows[1:] {
		lines = append(lines, strings.Repeat(" ", width+9)+row)
	}
	if h.CwdError != "" {
		lines = append(lines[:0], out.Paint(console.Red, out.Glyph("✗", "x")+" "+name+"  BAD")+"  "+console.CleanLine(h.CwdError),
			strings.Repeat(" ", width+9)+"start dcs-tui in a directory that the host has too, or use --cwd")
	}
	for _, w := range h.Warnings {
		lines = append(lines, strings.Repeat(" ", width+9)+console.CleanLine(w))
	}
	return lines
}

// withoutName takes the host's name and the advice off an error: both have their
// own place in the line.
func withoutName(err error, name string) string {
	var e *hosts.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), name+": ")
}
