package hosts

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

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Limits of the commands of a [[provider]], which create, list and terminate instances.
const (
	minCreateTimeout = 5 * time.Minute // more if Startup says so
	listTimeout      = time.Minute
	terminateTimeout = 5 * time.Minute
	maxOutput        = 1 << 20 // bytes of each of standard output and standard error

	pipeDelay   = 2 * time.Second // for what a command leaves running with its output open
	maxLastLine = 200             // runes of a command's output in an error
)

// CreateInstance runs the create command of an instance. An error does not prove that there is no
// instance: only Instances does.
func (p *Provider) CreateInstance(ctx context.Context, prefix, name string) error {
	_, err := p.run(ctx, "create", p.Create, prefix, name, max(minCreateTimeout, 3*p.Startup))
	return err
}

// TerminateInstance runs the terminate command of an instance.
func (p *Provider) TerminateInstance(ctx context.Context, prefix, name string) error {
	_, err := p.run(ctx, "terminate", p.Terminate, prefix, name, terminateTimeout)
	return err
}

// An Instance is what the list command tells of an instance.
type Instance struct {
	Name    string
	Hosts   []*Host       // that it is: one, or the nodes of an allocation; none while it is pending
	Pending string        // why an allocation has not begun; "": it has
	Left    time.Duration // until its end; 0: none is known
}

// Instances runs the list command. It returns the instances whose names begin with the prefix
// and a dash, in the order of the list; whatever else is listed is left out. An error means
// that nothing is known: a list with a line that is no instance counts for nothing.
func (p *Provider) Instances(ctx context.Context, prefix string) ([]Instance, error) {
	out, err := p.run(ctx, "list", p.List, prefix, "", listTimeout)
	if err != nil {
		return nil, err
	}
	var list []Instance
	seen := map[string]bool{}
	n := 0
	parse, form := instanceLine, "an instance (name, then address and port if needed)"
	if p.Slurm != nil {
		parse, form = allocationLine, "an allocation in the format of squeue that was asked for ("+SlurmFormat+")"
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
func instanceLine(p *Provider, line, _ string) (Instance, error) {
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
	return Instance{Name: fields[0], Hosts: []*Host{h}}, err
}

// run runs a command by /bin/sh and returns its standard output. The whole process group
// is killed when the time is up; what a successful command has left running continues.
func (p *Provider) run(ctx context.Context, what, command, prefix, name string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	idle := strconv.Itoa(int(max(1, p.Idle/time.Second)))
	script := strings.NewReplacer("{name}", text.ShellWord(name), "{run}", text.ShellWord(prefix), "{idle}", idle).Replace(command)
	var out, errs cappedOutput
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
		return nil, fmt.Errorf("%s printed more than %d MiB; that is no list of instances", subject, maxOutput>>20)
	}
	return out.b, nil
}

// cappedOutput keeps the first maxOutput bytes and the last few thousand.
type cappedOutput struct {
	b    []byte
	tail []byte
	lost bool
}

func (w *cappedOutput) Write(p []byte) (int, error) {
	n := len(p)
	k := min(n, maxOutput-len(w.b))
	w.b = append(w.b, p[:k]...)
	w.lost = w.lost || k < n
	const most = 4096
	w.tail = append(w.tail, p[max(0, n-most):]...)
	w.tail = w.tail[max(0, len(w.tail)-most):]
	return n, nil
}

// lastLine returns the last line with text, made fit for a message.
func (w *cappedOutput) lastLine() string {
	lines := bytes.Split(bytes.TrimSpace(w.tail), []byte("\n"))
	return jobs.Clean(string(bytes.TrimSpace(lines[len(lines)-1])), maxLastLine)
}

// allocationLine reads a line of squeue in SlurmFormat. Lines about jobs of other
// names are not examined.
func allocationLine(p *Provider, line, prefix string) (Instance, error) {
	fields := strings.Split(line, "|")
	in := Instance{Name: fields[0]}
	if len(fields) > 1 && !strings.HasPrefix(in.Name, prefix) {
		return in, nil // a job of somebody's own; its name may have bars in it
	}
	if len(fields) != 6 {
		return in, errors.New("it does not have six fields")
	}
	id, state, left, nodes, reason := fields[1], fields[2], fields[3], fields[4], fields[5]
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return in, errors.New("the second field is not the number of a job")
	}
	switch state {
	case "PENDING", "CONFIGURING":
		in.Pending = jobs.Clean(reason, maxLastLine)
		if state == "CONFIGURING" || reason == "None" || reason == "" {
			in.Pending = strings.ToLower(state)
		}
		return in, nil
	case "SUSPENDED":
	case "RUNNING":
		var err error
		if in.Left, err = timeLeft(left); err != nil {
			return in, err
		}
	default:
		return in, fmt.Errorf("the state %q was not asked for", state)
	}
	names, err := nodeNames(nodes)
	if err != nil {
		return in, err
	}
	for _, node := range names {
		h, err := p.Instance(in.Name+"."+node, node, 0)
		if err != nil {
			return in, err
		}
		for i, word := range h.Command {
			h.Command[i] = strings.ReplaceAll(word, "{job}", id)
		}
		in.Hosts = append(in.Hosts, h)
	}
	return in, nil
}

// timeLeft reads days-hours:minutes:seconds, of which the days and hours may be missing.
// 0: there is no end, or none is known. An allocation whose time is over has a second left.
func timeLeft(s string) (time.Duration, error) {
	switch s {
	case "UNLIMITED", "NOT_SET", "INVALID", "N/A":
		return 0, nil
	}
	days, clock, dated := strings.Cut(s, "-")
	if !dated {
		days, clock = "0", s
	}
	parts := strings.Split(clock, ":")
	if n := len(parts); n < 2 || n > 3 {
		return 0, fmt.Errorf("%q is not a time that is left", s)
	}
	total := 0
	for i, part := range append([]string{days}, parts...) {
		n, err := strconv.ParseUint(part, 10, 20)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time that is left", s)
		}
		unit := 60
		if i == 1 && len(parts) == 3 {
			unit = 24
		}
		if i == 1 && len(parts) == 2 {
			unit = 24 * 60
		}
		total = total*unit + int(n)
	}
	return max(time.Second, time.Duration(total)*time.Second), nil
}

// nodeNames expands a list of nodes such as a[01-03,7],login2.
func nodeNames(list string) ([]string, error) {
	var names []string
	depth, from := 0, 0
	for i, r := range list + "," {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			if i == from {
				return nil, fmt.Errorf("%q is not a list of nodes", list)
			}
			some, err := Expand(list[from:i])
			if err != nil {
				return nil, err
			}
			if names, from = append(names, some...), i+1; len(names) > MaxHosts {
				return nil, fmt.Errorf("%q are more than %d nodes", list, MaxHosts)
			}
		}
	}
	return names, nil
}
