package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/link"
)

// fleetLinks measures a dispatcher with links to many hosts over ssh, first without jobs. The dispatcher
// is in this process. Another process plays sshd and the helpers of all hosts.
func fleetLinks(l *lab, r *report) error {
	const span, deadline = 30 * time.Second, 3 * time.Minute
	dir := filepath.Join(l.dir, "links")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	end, err := startLinksEnd(dir)
	if err != nil {
		return err
	}
	defer end.stop()
	config, err := link.LoadSSHConfig(filepath.Join(dir, "ssh_config"))
	if err != nil {
		return err
	}
	list := make([]*hosts.Host, fleetHosts)
	for i := range list {
		list[i] = hosttest.FleetHost(end.port, i)
		list[i].Slots.Fixed = fleetSlots
	}
	var connector *countingConnector
	load := &linksLoad{begin: make(chan struct{})}
	before := measureSelf()
	made := l.newRun("links")
	running, err := l.dispatch(made, run.Options{
		Inventory: &hosts.Inventory{Hosts: list},
		Connector: func(log func(host, line string)) (hosts.Connector, error) {
			opener := link.NewSSH(link.SSHOptions{Config: config})
			connector = &countingConnector{Connector: helper.New(helper.Options{Opener: opener, Log: log})}
			return connector, nil
		},
		Lines: run.JobLines(load.next),
	})
	if err != nil {
		return err
	}
	r.table("measure", "goal", "measured")
	await := func(what string, n int64) error {
		start, was := time.Now(), measureSelf()
		for connector.numUp.Load() < n {
			if time.Since(start) > deadline {
				return fmt.Errorf("%d of %d connections after %v", connector.numUp.Load(), n, deadline)
			}
			time.Sleep(10 * time.Millisecond)
		}
		now := measureSelf()
		r.row(what, "", fmt.Sprintf("%.1f s, %.1f s of CPU and %.1f s in ssh -G; %d attempts",
			time.Since(start).Seconds(), (now.cpu-was.cpu).Seconds(), (now.childCPU-was.childCPU).Seconds(),
			connector.numTried.Load()))
		return nil
	}
	if err := await("all hosts connected", fleetHosts); err != nil {
		return err
	}
	time.Sleep(10 * time.Second) // answers of ssh -G are forgotten, and each host has sent heartbeats
	measureSelf()                // collects garbage
	idle := measureUse()
	time.Sleep(span)
	used := measureUse()
	after := measureSelf()
	heartbeats := fleetHosts * span.Seconds() / hosts.DefaultHeartbeat.Seconds()
	cpu := (used.cpu - idle.cpu).Seconds()
	r.row("CPU while idle", "below 5 % of a core", fmt.Sprintf("%.1f %%", 100*cpu/span.Seconds()))
	r.row("CPU per heartbeat", "", fmt.Sprintf("%.0f µs", 1e6*cpu/heartbeats))
	r.row("allocations per heartbeat", "", fmt.Sprintf("%.0f, %.1f KiB", float64(used.mallocs-idle.mallocs)/heartbeats,
		float64(used.allocated-idle.allocated)/heartbeats/1024))
	r.row("threads", "", fmt.Sprint(after.threads))
	r.row("goroutines per link", "", fmt.Sprintf("%.1f", float64(after.goroutines-before.goroutines)/fleetHosts))
	perLink := func(now, was int64) string { return fmt.Sprintf("%d KiB", (now-was)/fleetHosts>>10) }
	r.row("memory per link: heap, stacks", "",
		perLink(after.heap, before.heap)+", "+perLink(after.stacks, before.stacks))
	r.row("resident memory of the process", "", mib(after.rss)+", at most "+mib(after.peak))
	if err := end.ask("cut"); err != nil {
		return err
	}
	if err := await("all links cut at once, and connected again", 2*fleetHosts); err != nil {
		return err
	}
	err = load.measure(end, made, running, r)
	_, cerr := running.Close() // Close leaves running jobs alone; there are none
	return errors.Join(err, cerr)
}

type countingConnector struct {
	hosts.Connector
	numTried, numUp atomic.Int64
}

func (c *countingConnector) Connect(ctx context.Context, h *hosts.Host, open *hosts.Open) (hosts.Worker, error) {
	c.numTried.Add(1)
	w, err := c.Connector.Connect(ctx, h, open)
	if err == nil {
		c.numUp.Add(1)
	}
	return w, err
}

// selfUse is what this process uses.
type selfUse struct {
	proc
	threads, goroutines int
	heap, stacks        int64
	mallocs, allocated  uint64 // number and bytes of all allocations
}

// measureSelf measures this process after a garbage collection.
func measureSelf() selfUse {
	runtime.GC()
	return measureUse()
}

func measureUse() (u selfUse) {
	cpu, childCPU := usedCPU(syscall.RUSAGE_SELF), usedCPU(syscall.RUSAGE_CHILDREN)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.proc, _ = readProc(os.Getpid())
	u.cpu, u.childCPU = cpu, childCPU
	u.heap, u.stacks, u.goroutines = int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()
	u.mallocs, u.allocated = m.Mallocs, m.TotalAlloc
	tasks, _ := os.ReadDir("/proc/self/task")
	u.threads = len(tasks)
	return u
}

// usedCPU returns the CPU time of this process or of its children.
func usedCPU(who int) time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// linksEnd is the process that plays the hosts.
type linksEnd struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	port int
}

func startLinksEnd(dir string) (*linksEnd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	e := &linksEnd{cmd: exec.Command(exe, "-links-end", dir)}
	e.cmd.Stderr = os.Stderr
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e.out = bufio.NewReader(out)
	if err := e.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(e.out, &e.port); err != nil {
		e.stop()
		return nil, fmt.Errorf("the simulated hosts: %w", err)
	}
	return e, nil
}

// ask sends a command to the process, and returns when it has carried it out.
func (e *linksEnd) ask(line string) error {
	if _, err := fmt.Fprintln(e.in, line); err != nil {
		return err
	}
	_, err := e.out.ReadString('\n')
	return err
}

func (e *linksEnd) stop() {
	e.in.Close()
	e.cmd.Wait()
}

// playLinks plays hosts until standard input ends. A line there cuts all links, or is the time that
// jobs take from then on.
func playLinks(dir string) error {
	ends := &linksHosts{}
	f, err := hosttest.NewFleet(dir, &hosttest.Hostiles{Serve: ends.serve})
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Println(f.Port())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "cut" {
			f.Cut()
		} else if took, err := time.ParseDuration(in.Text()); err == nil {
			ends.took.Store(int64(took))
		}
		fmt.Println("done")
	}
	return nil
}

// linksHosts are simulated hosts of fleetSlots slots behind ssh.
type linksHosts struct{ took atomic.Int64 } // how long a job takes, in ns

func (x *linksHosts) serve(host string, in *helper.Reader, out *helper.Writer) error {
	if _, err := in.Read(); err != nil { // hosts.Open
		return err
	}
	c := &fleetConnector{slots: fleetSlots, took: func() time.Duration { return time.Duration(x.took.Load()) }}
	w := c.newWorker(hosts.Hello{Machine: host, BootID: host, Dir: "/far/" + host})
	defer w.Cut(nil)
	if err := out.Write(w.Hello()); err != nil {
		return err
	}
	go func() {
		for m := range w.Reports() {
			out.Write(m) // after an error it does nothing until the link is cut
		}
	}()
	for {
		m, err := in.Read()
		if err != nil {
			return err
		}
		w.Send(m)
		if _, leaves := m.(*hosts.Bye); leaves {
			return nil
		}
	}
}
