// Package provider runs the commands of a [[provider]] of the inventory: they create, list
// and terminate instances. It decides nothing about instances; dispatch/sched does.
package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Limits of the commands.
const (
	MinCreateTimeout = 5 * time.Minute // more if Startup says so
	ListTimeout      = time.Minute
	TerminateTimeout = 5 * time.Minute
	MaxOutput        = 1 << 20 // bytes of each of standard output and standard error

	pipeDelay   = 2 * time.Second // for what a command leaves running with its output open
	maxLastLine = 200             // runes of a command's output in an error
)

// Create runs the create command of an instance. An error does not prove that there is no
// instance: only List does.
func Create(ctx context.Context, p *hosts.Provider, prefix, name string) error {
	_, err := run(ctx, p, "create", p.Create, prefix, name, max(MinCreateTimeout, 3*p.Startup))
	return err
}

// Terminate runs the terminate command of an instance.
func Terminate(ctx context.Context, p *hosts.Provider, prefix, name string) error {
	_, err := run(ctx, p, "terminate", p.Terminate, prefix, name, TerminateTimeout)
	return err
}

// An Instance is what the list command tells of an instance.
type Instance struct {
	Name    string
	Hosts   []*hosts.Host // that it is: one, or the nodes of an allocation; none while it is pending
	Pending string        // why an allocation has not begun; "": it has
	Left    time.Duration // until its end; 0: none is known
}

// List runs the list command. It returns the instances whose names begin with the prefix
// and a dash, in the order of the list; whatever else is listed is left out. An error means
// that nothing is known: a list with a line that is no instance counts for nothing.
func List(ctx context.Context, p *hosts.Provider, prefix string) ([]Instance, error) {
	out, err := run(ctx, p, "list", p.List, prefix, "", ListTimeout)
	if err != nil {
		return nil, err
	}
	var list []Instance
	seen := map[string]bool{}
	n := 0
	parse, form := instanceLine, "an instance (name, then address and port if needed)"
	if p.Slurm != nil {
		parse, form = allocationLine, "an allocation in the format of squeue that was asked for ("+hosts.SlurmFormat+")"
	}
	for line := range strings.Lines(string(out)) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		in, err := parse(p, line, prefix+"-")
		if err != nil {
			return nil, fmt.Errorf("provider %s: the list command printed a line that is not %s: line %d, %q: %w", p.Name, form, n, jobs.Clean(line, maxLastLine), err)
		}
		if strings.HasPrefix(in.Name, prefix+"-") && !seen[in.Name] {
			seen[in.Name] = true
			list = append(list, in)
		}
	}
	return list, nil
}

// instanceLine reads a line with a name, an address and a port.
func instanceLine(p *hosts.Provider, line, _ string) (Instance, error) {
	fields := strings.Fields(line)
	var address string
	var port int
	var err error
	if len(fields) > 1 {
		address = fields[1]
	}
	if len(fields) > 2 {
		port, err = strconv.Atoi(fields[2])
	}
	switch {
	case len(fields) > 3:
		return Instance{}, errors.New("it has more than a name, an address and a port")
	case err != nil || len(fields) > 2 && (port < 1 || port > 65535):
		return Instance{}, errors.New("the port is not a number from 1 to 65535")
	}
	h, err := p.Instance(fields[0], address, port)
	return Instance{Name: fields[0], Hosts: []*hosts.Host{h}}, err
}

// run runs a command by /bin/sh and returns its standard output. The whole process group
// is killed when the time is up; what a successful command has left running goes on.
func run(ctx context.Context, p *hosts.Provider, what, command, prefix, name string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	idle := strconv.Itoa(int(max(1, p.Idle/time.Second)))
	script := strings.NewReplacer("{name}", quote(name), "{run}", quote(prefix), "{idle}", quote(idle)).Replace(command)
	var out, errs bounded
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, pipeDelay
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has succeeded
	}
	subject := fmt.Sprintf("provider %s: the %s command", p.Name, what)
	if name != "" {
		subject += " of " + name
	}
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s has not ended within %s and was killed", subject, timeout)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s was killed: %w", subject, ctx.Err())
	case err != nil:
		said := errs.lastLine()
		if said == "" {
			said = out.lastLine()
		}
		if said != "" {
			said = ": " + said
		}
		return nil, fmt.Errorf("%s failed (%w)%s", subject, err, said)
	case what == "list" && out.lost:
		return nil, fmt.Errorf("%s printed more than %d MiB; that is no list of instances", subject, MaxOutput>>20)
	}
	return out.b, nil
}

// quote returns s as one word for a shell. All but the simplest words get quotes.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// bounded keeps the first MaxOutput bytes and the last few thousand.
type bounded struct {
	b    []byte
	tail []byte
	lost bool
}

func (w *bounded) Write(p []byte) (int, error) {
	n := len(p)
	k := min(n, MaxOutput-len(w.b))
	w.b = append(w.b, p[:k]...)
	w.lost = w.lost || k < n
	const most = 4096
	w.tail = append(w.tail, p[max(0, n-most):]...)
	w.tail = w.tail[max(0, len(w.tail)-most):]
	return n, nil
}

// lastLine returns the last line with text, made fit for a message.
func (w *bounded) lastLine() string {
	lines := bytes.Split(bytes.TrimSpace(w.tail), []byte("\n"))
	return jobs.Clean(string(bytes.TrimSpace(lines[len(lines)-1])), maxLastLine)
}
