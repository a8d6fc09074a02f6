package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// driver is a process of driver.py with a pool.
type driver struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	events chan event // closed when it has ended
	log    string
	first  float64 // seconds from its start to the result of its first call
}

// event is a line that a driver prints.
type event struct {
	Event   string
	Seconds float64
	Pids    []int // the processes that hold the queue
	Version string
	Reason  string // why it failed
}

func (c *contest) drive(p *program, args ...string) (*driver, error) {
	names := make([]string, len(c.sshd))
	for i := range names {
		names[i] = hostName(i)
	}
	dir := c.runDir()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	lab, err := json.Marshal(map[string]any{"hosts": names, "slots": contestSlots, "config": c.sshConfig, "dir": dir,
		"client": c.client, "program": c.bin, "inventory": c.inventory(len(names), contestSlots),
		"started": float64(time.Now().UnixNano()) / 1e9})
	if err != nil {
		return nil, err
	}
	d := &driver{
		cmd:    exec.Command(c.python, append([]string{filepath.Join(c.drivers, "driver.py"), p.pool}, args...)...),
		events: make(chan event, 100),
		log:    c.file("driver.log", ""),
	}
	d.cmd.Dir, d.cmd.Env = dir, c.env("LAB="+string(lab))
	log, err := os.OpenFile(d.log, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d.cmd.Stderr = log
	in, err1 := d.cmd.StdinPipe()
	out, err2 := d.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	d.in = in
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go d.read(out)
	return d, nil
}

func (d *driver) read(out io.Reader) {
	defer close(d.events)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			d.events <- e
		}
	}
}

// driverLimit is how long a driver may take for its next event.
const driverLimit = 4 * time.Minute

func (d *driver) await(name string) (event, error) {
	limit := time.After(driverLimit)
	for {
		select {
		case e, isOpen := <-d.events:
			if !isOpen {
				text, _ := os.ReadFile(d.log)
				lines := strings.Split(strings.TrimSpace(string(text)), "\n")
				return e, fmt.Errorf("it ended: %s\n%s", lines[len(lines)-1], text)
			}
			switch e.Event {
			case name:
				return e, nil
			case "failed":
				text, _ := os.ReadFile(d.log)
				return e, fmt.Errorf("%s\n%s", e.Reason, text)
			}
		case <-limit:
			return event{}, fmt.Errorf("it did not reach %q within %v", name, driverLimit)
		}
	}
}

// round lets the driver run jobs or calls.
func (d *driver) round(what string) (time.Duration, error) {
	if _, err := fmt.Fprintln(d.in, what); err != nil {
		return 0, err
	}
	e, err := d.await("round")
	return time.Duration(e.Seconds * float64(time.Second)), err
}

// session returns the driver that serves the measurements of a program. It is started once.
func (c *contest) session(p *program) (*driver, error) {
	if c.serving != nil {
		return c.serving, nil
	}
	d, err := c.drive(p, "serve")
	if err != nil {
		return nil, err
	}
	e, err := d.await("first")
	if err != nil {
		d.stop()
		return nil, err
	}
	d.first, c.serving = e.Seconds, d
	return d, nil
}

// endSession ends the driver that serves, if there is one, and what it has left behind.
func (c *contest) endSession() {
	d := c.serving
	if d == nil {
		return
	}
	c.serving = nil
	if err := d.end(); err != nil {
		fmt.Fprintln(os.Stderr, "a pool did not end well:", err)
	}
	c.sweep()
}

// end lets the driver leave.
func (d *driver) end() error {
	d.in.Close()
	_, err := d.await("end")
	if err != nil {
		d.cmd.Process.Kill()
	}
	d.cmd.Wait()
	return err
}

// stop ends the driver without its consent.
func (d *driver) stop() {
	d.cmd.Process.Kill()
	d.cmd.Wait()
}

func (c *contest) poolVersion(p *program) (string, error) {
	d, err := c.drive(p, "version")
	if err != nil {
		return "", err
	}
	e, err := d.await("version")
	d.cmd.Wait()
	return e.Version, err
}
