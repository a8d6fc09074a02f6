package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dcs-tui/internal/polltest"
)

// launched is a program that runs jobs.
type launched struct {
	pids  []int // the processes that hold the queue
	ended chan error
}

// launch starts a program. mode is that of driver.py for a pool, whose jobs have then been submitted.
func (c *contest) launch(p *program, list jobList, mode string) (*launched, error) {
	c.endSession()
	l := &launched{ended: make(chan error, 1)}
	if p.command != nil {
		cmd := c.prepared(p, list)
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		l.pids = []int{cmd.Process.Pid}
		go func() { l.ended <- cmd.Wait() }()
		return l, nil
	}
	d, err := c.drive(p, mode, list.file, list.state)
	if err != nil {
		return nil, err
	}
	e, err := d.await("queued")
	if err != nil {
		d.stop()
		return nil, err
	}
	l.pids = e.Pids
	go func() { l.ended <- d.end() }()
	return l, nil
}

// kill kills the processes that hold the queue, and nothing else, and waits for their end.
func (l *launched) kill() {
	for _, pid := range l.pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	<-l.ended
}

// wait waits for the end of the program. It kills a program that does not end.
func (l *launched) wait(limit time.Duration) (inTime bool) {
	select {
	case <-l.ended:
		return true
	case <-time.After(limit):
		l.kill()
		return false
	}
}

const (
	faultJobs  = 160              // of one second: 10 s for 16 slots
	faultDelay = 3 * time.Second  // from the start of the first job to the fault
	faultLimit = 90 * time.Second // for the end of the program after the fault
)

// notes are files in which jobs note that they start and end.
type notes struct{ file, starts, ends string }

func (c *contest) notes() notes {
	n := notes{starts: c.file("starts", ""), ends: c.file("ends", "")}
	var lines strings.Builder
	for i := range faultJobs {
		fmt.Fprintf(&lines, "echo %d >>%s; sleep 1; echo %d >>%s\n", i+1, n.starts, i+1, n.ends)
	}
	n.file = c.file("noting.txt", lines.String())
	return n
}

// tally counts what became of the jobs.
func (n notes) tally() (tally, error) {
	starts, err := os.ReadFile(n.starts)
	if err != nil {
		return tally{}, err
	}
	ends, err := os.ReadFile(n.ends)
	return tallyOf(faultJobs, string(starts), string(ends)), err
}

// hostDies kills one of the hosts with all of its processes while jobs run. It does not come back.
func (c *contest) hostDies(p *program) (string, error) {
	host := c.sshd[len(c.sshd)-1]
	return c.withFault(p, func(l *launched, list jobList) (*launched, error) {
		host.Stop()
		killMarked("\x00HOME=" + host.Home() + "\x00")
		return l, nil
	}, host.Start)
}

// dispatcherDies kills the processes that hold the queue, and starts the program again at once.
func (c *contest) dispatcherDies(p *program) (string, error) {
	return c.withFault(p, func(l *launched, list jobList) (*launched, error) {
		l.kill()
		list.again = true
		return c.launch(p, list, "once")
	}, func() error { return nil })
}

// withFault runs jobs of one second, causes a fault while they run, and returns what became of them.
// The fault returns the program that runs then. repair undoes it.
func (c *contest) withFault(p *program, fault func(*launched, jobList) (*launched, error),
	repair func() error) (string, error) {
	n := c.notes()
	list := jobList{file: n.file, state: filepath.Join(c.runDir(), "state")}
	if err := os.Mkdir(filepath.Dir(list.state), 0o700); err != nil {
		return "", err
	}
	l, err := c.launch(p, list, "once")
	if err != nil {
		return "", err
	}
	if !polltest.Within(time.Minute, func() bool {
		info, err := os.Stat(n.starts)
		return err == nil && info.Size() > 0
	}) {
		l.kill()
		return "", fmt.Errorf("no job has started")
	}
	began := time.Now()
	time.Sleep(faultDelay) // the jobs run for some time
	l, err = fault(l, list)
	if err != nil {
		return "", err
	}
	inTime := l.wait(faultLimit)
	took := time.Since(began)
	time.Sleep(2 * time.Second) // jobs that nothing waits for end, too
	c.sweep()
	if err := repair(); err != nil {
		return "", err
	}
	t, err := n.tally()
	text := fmt.Sprintf("%v; %.0f s", t, took.Seconds())
	if !inTime {
		text = fmt.Sprintf("%v; does not end within %.0f s", t, faultLimit.Seconds())
	}
	return text, err
}
