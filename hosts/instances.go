package hosts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dcs-tui/internal/text"
)

// Limits of the commands of a [[provider]].
const (
	minCreateTimeout = 5 * time.Minute // more if Startup says so
	listTimeout      = time.Minute
	terminateTimeout = 5 * time.Minute
	maxOutput        = 1 << 20 // bytes of each of standard output and standard error
	maxTail          = 4 << 10 // bytes in which the last line is looked for

	pipeDelay   = 2 * time.Second // for processes that a command leaves behind with its output open
	maxLastLine = 200             // runes of a command's output in an error
)

// CreateInstance runs the create command of an instance. After an error the instance may exist
// nevertheless: see Instances.
func (p *Provider) CreateInstance(ctx context.Context, prefix, name string) error {
	_, err := p.run(ctx, "create", p.Create, prefix, name, max(minCreateTimeout, 3*p.Startup))
	return err
}

// TerminateInstance runs the terminate command of an instance.
func (p *Provider) TerminateInstance(ctx context.Context, prefix, name string) error {
	_, err := p.run(ctx, "terminate", p.Terminate, prefix, name, terminateTimeout)
	return err
}

// Instance is an instance as the list command prints it.
type Instance struct {
	Name    string
	Hosts   []*Host       // one, or the nodes of an allocation; none while it is pending
	Pending string        // why an allocation has not begun; "": it has begun
	Left    time.Duration // time until its end; 0: not known
}

// Instances runs the list command. It returns the instances whose names begin with the prefix and a
// dash, in the order of the list. If there is an error, even in a single line, nothing is known
// about any instance.
func (p *Provider) Instances(ctx context.Context, prefix string) ([]Instance, error) {
	out, err := p.run(ctx, "list", p.List, prefix, "", listTimeout)
	if err != nil {
		return nil, err
	}
	var list []Instance
	seen := map[string]bool{}
	n, numHosts := 0, 0
	parse, form := instanceLine, "an instance (name, then address and port if needed)"
	if p.Slurm != nil {
		parse, form = allocationLine, "an allocation in the format of squeue that was asked for ("+SlurmFormat+")"
	}
	for line := range strings.Lines(string(out)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		in, err := parse(p, line, prefix+"-")
		if err != nil {
			return nil, fmt.Errorf("provider %s: the list command printed a line that is not %s: line %d, %q: %w",
				p.Name, form, n, text.Clean(line, maxLastLine), err)
		}
		if !strings.HasPrefix(in.Name, prefix+"-") || seen[in.Name] {
			continue
		}
		seen[in.Name] = true
		list = append(list, in)
		numHosts += max(1, len(in.Hosts))
		if numHosts > MaxHosts {
			return nil, fmt.Errorf("provider %s: the list command printed more than %d hosts", p.Name, MaxHosts)
		}
	}
	return list, nil
}

// instanceLine parses a line with a name, an address and a port.
func instanceLine(p *Provider, line, _ string) (Instance, error) {
	fields := strings.Fields(line)
	var address string
	var port int
	var err error
	if len(fields) > 1 {
		address = fields[1]
	}
	if len(fields) > 2 {
		port, err = ParsePort(fields[2])
	}
	switch {
	case len(fields) > 3:
		return Instance{}, errors.New("it has more than a name, an address and a port")
	case err != nil:
		return Instance{}, err
	}
	h, err := p.Instance(fields[0], address, port)
	return Instance{Name: fields[0], Hosts: []*Host{h}}, err
}

// run runs a command with /bin/sh and returns its standard output. At the timeout the whole
// process group is killed. Processes that a successful command has left running continue.
func (p *Provider) run(ctx context.Context, what, command, prefix, name string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	idle := strconv.Itoa(int(max(1, p.Idle/time.Second)))
	script := strings.NewReplacer("{name}", text.ShellWord(name), "{run}", text.ShellWord(prefix),
		"{idle}", idle).Replace(command)
	var out, errs cappedOutput
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, pipeDelay
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the command has succeeded
	}
	subject := fmt.Sprintf("provider %s: the %s command", p.Name, what) + text.If(name != "", " of "+name)
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s has not ended within %s and was killed", subject, timeout)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s was killed: %w", subject, ctx.Err())
	case err != nil:
		output := cmp.Or(errs.lastLine(), out.lastLine())
		if output != "" {
			output = ": " + output
		}
		return nil, fmt.Errorf("%s failed (%w)%s", subject, err, output)
	case what == "list" && out.truncated:
		return nil, fmt.Errorf("%s printed more than %d MiB, which is not a list of instances", subject, maxOutput>>20)
	}
	return out.head, nil
}

// cappedOutput keeps the first maxOutput bytes and the last maxTail bytes.
type cappedOutput struct {
	head      []byte
	tail      []byte
	truncated bool // part of the output is in neither
}

func (w *cappedOutput) Write(p []byte) (int, error) {
	n := len(p)
	k := min(n, maxOutput-len(w.head))
	w.head = append(w.head, p[:k]...)
	w.truncated = w.truncated || k < n
	w.tail = append(w.tail, p[max(0, n-maxTail):]...)
	w.tail = w.tail[max(0, len(w.tail)-maxTail):]
	return n, nil
}

// lastLine returns the last line that is not blank, cleaned for a message.
func (w *cappedOutput) lastLine() string {
	lines := bytes.Split(bytes.TrimSpace(w.tail), []byte("\n"))
	return text.Clean(string(bytes.TrimSpace(lines[len(lines)-1])), maxLastLine)
}
