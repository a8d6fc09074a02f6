package main

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// contest runs the same jobs through several programs. Programs that use hosts have the four hosts
// of the lab with contestSlots slots each, and the others have as many slots on this machine.
type contest struct {
	*lab
	table     *comparison
	sshConfig string // names the hosts of the lab
	python    string // the interpreter that has the pools
	drivers   string // directory of driver.py
	client    string // directory of the package dcs_tui
	serving   *driver
}

const contestSlots = 4

//go:embed compare/*.py
var driverFiles embed.FS

// measurement is a column of the comparison. Its function returns the text of a cell.
type measurement struct {
	name, column string
	applies      func(*program) bool
	run          func(*contest, *program) (string, error)
}

var measurements = []measurement{
	{"start", "one job, start included", isAny, (*contest).first},
	{"throughput", "jobs/s (`sleep 0`)", runsCommands, (*contest).throughput},
	{"efficiency", "efficiency, jobs of 1 s", runsCommands, (*contest).efficiency},
	{"calls", "calls/s, 0 ms", callsFunctions, callsPerSecond("nothing")},
	{"calls10", "calls/s, 10 ms", callsFunctions, callsPerSecond("10ms")},
	{"calls1", "efficiency, calls of 1 s", callsFunctions, (*contest).callsOf1s},
	{"arrays", "MB/s, arrays of 10 MB", callsFunctions, (*contest).arrays},
	{"memory", "memory, 10⁵ jobs queued", runsCommands, (*contest).memory},
	{"host", "a host dies", runsOnHosts, (*contest).hostDies},
	{"kill", "`kill -9`, started again", runsCommands, (*contest).dispatcherDies},
}

func isAny(*program) bool            { return true }
func runsCommands(p *program) bool   { return p.jobs > 0 }
func callsFunctions(p *program) bool { return p.calls }
func runsOnHosts(p *program) bool    { return p.jobs > 0 && p.remote }

// compare runs the comparison. It prints the table and writes it to the file out unless that is "".
// only and some are lists of measurements and of programs; "": all.
func compare(o options, python, only, some, out string) error {
	l, err := prepare(o)
	if err != nil {
		return err
	}
	defer l.close()
	columns := []string{"slots"}
	for _, m := range measurements {
		columns = append(columns, m.column)
	}
	c := &contest{lab: l, table: newComparison(columns...), python: python}
	if err := c.writeFiles(); err != nil {
		return err
	}
	where := o.conditions()
	list := c.present(some)
	for _, p := range list {
		for _, m := range measurements {
			if isChosen(m.name, only) && m.applies(p) {
				c.measure(&m, p)
			}
		}
		c.endSession()
	}
	text := c.table.text(where)
	fmt.Println(text)
	if out == "" {
		return nil
	}
	return writeTable(out, text)
}

// isChosen reports whether a name is in a list with commas. An empty list contains all names.
func isChosen(name, list string) bool {
	return list == "" || strings.Contains(","+list+",", ","+name+",")
}

// present returns the chosen programs that are installed, and notes the others.
func (c *contest) present(some string) (list []*program) {
	for i := range programs {
		p := &programs[i]
		if !isChosen(p.name, some) {
			continue
		}
		version, err := p.version(c, p)
		if err != nil {
			reason, _, _ := strings.Cut(err.Error(), "\n")
			c.table.remark("%s was left out: %s.", p.name, reason)
			fmt.Fprintf(os.Stderr, "== %s is left out: %v\n", p.name, err)
			continue
		}
		p.row = strings.TrimSpace(p.name + " " + version)
		c.table.set(p.row, "slots", p.where)
		list = append(list, p)
	}
	return list
}

// measure fills a cell. A program that fails does not end the comparison.
func (c *contest) measure(m *measurement, p *program) {
	load, start := loadNow(), time.Now()
	text, err := m.run(c, p)
	if c.serving == nil {
		c.sweep()
	}
	c.table.loads = append(c.table.loads, load)
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		c.table.remark("%s, %s: %s", p.name, m.column, reason)
		fmt.Fprintf(os.Stderr, "%s, %s: %v\n", p.name, m.name, err)
		text = cmp.Or(text, "failed")
	}
	c.table.set(p.row, m.column, text)
	fmt.Fprintf(os.Stderr, "%s, %s: %s   (%.0f s, load %.2f)\n", p.name, m.name, text, time.Since(start).Seconds(),
		load)
}

// writeFiles writes the files that the programs need.
func (c *contest) writeFiles() error {
	config, err := os.ReadFile(c.sshd[0].ConfigFile)
	if err != nil {
		return err
	}
	text := string(config)
	for i, s := range c.sshd {
		text += fmt.Sprintf("Host %s\n\tHostName 127.0.0.1\n\tPort %d\n", hostName(i), s.Port)
	}
	c.sshConfig = c.file("ssh_config", text)
	c.drivers = filepath.Join(c.dir, "drivers")
	if err := errors.Join(os.Mkdir(c.drivers, 0o700), os.Mkdir(c.home(), 0o700)); err != nil {
		return err
	}
	files, err := driverFiles.ReadDir("compare")
	for _, f := range files {
		text, err2 := driverFiles.ReadFile("compare/" + f.Name())
		err = errors.Join(err, err2, os.WriteFile(filepath.Join(c.drivers, f.Name()), text, 0o600))
	}
	if err != nil {
		return err
	}
	if c.python, err = filepath.Abs(c.python); err != nil {
		return err
	}
	c.client, err = filepath.Abs("clients/python")
	return err
}

func hostName(i int) string { return fmt.Sprintf("ws%d", i+1) }

// env returns the environment of the programs. They have a home of their own, in which some of them
// keep files.
func (c *contest) env(more ...string) []string {
	return append(append(os.Environ(), "HOME="+c.home()), more...)
}

func (c *contest) home() string { return filepath.Join(c.dir, "home") }

// sweep kills what a program has left behind here and on the hosts.
func (c *contest) sweep() { killMarked(labMarks(c.dir)...) }
