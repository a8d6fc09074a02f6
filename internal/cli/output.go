package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// file is an *os.File or an *output.
type file interface {
	io.Writer
	Fd() uintptr
}

// output is standard output. It keeps the first error of a write, so that no command succeeds whose
// result was not written. It is used by one goroutine.
type output struct {
	File *os.File
	err  error
}

// Write writes b to the file. A closed pipe is no error to keep: its reader wants no more.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.File.Write(b)
	if o.err == nil && !errors.Is(err, syscall.EPIPE) {
		o.err = err
	}
	return n, err
}

func (o *output) Fd() uintptr { return o.File.Fd() }

// cobraOutput writes to an output, which keeps the errors. Cobra would print them a second time.
type cobraOutput struct{ *output }

func (o cobraOutput) Write(b []byte) (int, error) {
	o.output.Write(b)
	return len(b), nil
}

// outputTimeout bounds reading a piece of output over a link.
const outputTimeout = 30 * time.Second

// resultPrinter writes finished jobs to standard output: a line of JSON for each, or their outputs.
type resultPrinter struct {
	out        *os.File
	con        *console // suspended for each write if out is a terminal
	tty        bool
	json       bool
	run        *run.Run
	buf        []byte
	withOutput bool        // with json: each result has the output of its job
	maxOutput  int64       // bytes; larger outputs are left out
	mu         sync.Mutex  // serializes writes to out
	tag        bool        // begin each line of output with the values of the job
	broken     atomic.Bool // a write has failed; no other will be tried

	// With order, results wait in held until those of all earlier jobs have been printed.
	inOrder bool
	held    map[jobs.ID]*results.Result
	nextJob jobs.ID
}

func newResultPrinter(a *app, flags *runFlags, r *run.Run) *resultPrinter {
	return &resultPrinter{out: a.stdout.File, con: a.con, tty: isTerminal(a.stdout), json: flags.json,
		withOutput: flags.json && flags.output, maxOutput: cmp.Or(flags.maxOutput, maxOutput), run: r,
		tag: flags.tag, inOrder: flags.order, held: map[jobs.ID]*results.Result{}, nextJob: 1}
}

// Print writes a result, and those that waited for it. After an error a part of a result may have
// been written.
func (p *resultPrinter) Print(r *results.Result) (errs []error) {
	if !p.inOrder || r.Job < p.nextJob {
		return p.printAll(r)
	}
	p.held[r.Job] = new(*r)
	var ready []*results.Result
	for ; p.held[p.nextJob] != nil; p.nextJob++ {
		ready = append(ready, p.held[p.nextJob])
		delete(p.held, p.nextJob)
	}
	return p.printAll(ready...)
}

// printHeld prints the results that wait for others, which will not arrive.
func (p *resultPrinter) printHeld() (errs []error) {
	var all []*results.Result
	for _, id := range slices.Sorted(maps.Keys(p.held)) {
		all = append(all, p.held[id])
	}
	return p.printAll(all...)
}

// printAll prints results. One whose output cannot be read keeps no other from being printed.
func (p *resultPrinter) printAll(all ...*results.Result) (errs []error) {
	for _, r := range all {
		err := p.printNow(r)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if p.broken.Load() {
			break
		}
	}
	return errs
}

func (p *resultPrinter) printNow(r *results.Result) error {
	if p.json {
		if p.withOutput && r.Stdout != "" {
			own := *r // r is shared
			p.addOutput(&own)
			r = &own
		}
		p.buf = r.AppendJSON(p.buf[:0])
		return p.write(p.buf)
	}
	if r.Stdout == "" {
		return nil // the job never ran
	}
	if err := p.printOutput(r); err != nil {
		return fmt.Errorf("job %d: %w", r.Job, err)
	}
	return nil
}

// printReply writes the reply to a line of the input.
func (p *resultPrinter) printReply(r *run.Reply) error {
	var line bytes.Buffer
	if err := writeJSON(&line, p.tty, r); err != nil {
		return err
	}
	return p.write(line.Bytes())
}

// maxOutput is the default of --output-max, in bytes.
const maxOutput = 32 << 20

// addOutput adds the standard output of a job to its result, or the size of an output that is too
// large.
func (p *resultPrinter) addOutput(r *results.Result) {
	r.Output = []byte{}
	err := p.readOutput(r, func(piece []byte, size int64, _ bool) error {
		if size > p.maxOutput {
			r.OutputBytes = size
			return fmt.Errorf("the output has %d bytes, more than --output-max %s: %s prints it", size,
				jobs.FormatSize(p.maxOutput), logsCommand(p.run.Dir(), r.Attempt, jobs.FileOut))
		}
		r.Output = append(r.Output, piece...)
		return nil
	})
	if err != nil {
		r.Output, r.OutputErr = nil, err
	}
}

// readOutput calls f with the pieces of the standard output of a job, and the size of the whole, so
// that a gigabyte needs no memory.
func (p *resultPrinter) readOutput(r *results.Result, f func(piece []byte, size int64, isLast bool) error) error {
	for at := int64(0); ; {
		ctx, cancel := context.WithTimeout(context.Background(), outputTimeout)
		piece, size, err := p.run.Output(ctx, r.Attempt, jobs.FileOut, at, hosts.MaxChunk)
		cancel()
		if err != nil {
			return fmt.Errorf("cannot read its output: %w", err)
		}
		at += int64(len(piece))
		isLast := len(piece) == 0 || at >= size
		if err := f(piece, size, isLast); err != nil || isLast {
			return err
		}
	}
}

// tagOf returns what --tag writes before each line of a job's output.
func tagOf(r *results.Result) string {
	tag := cmp.Or(r.Name, r.Command)
	if len(r.Params) > 0 {
		tag = strings.Join(text.Each(r.Params, func(p jobs.Param) string { return p.Value }), " ")
	}
	return text.Clean(tag, 0) + "\t"
}

// printOutput prints the standard output of a job.
func (p *resultPrinter) printOutput(r *results.Result) error {
	clean := lineCleaner{asIs: !p.tty}
	if p.tag {
		clean.tag = tagOf(r)
	}
	return p.readOutput(r, func(piece []byte, _ int64, isLast bool) error {
		if p.tty || p.tag {
			piece = clean.next(piece, isLast)
		}
		return p.write(piece)
	})
}

// write writes all of b. While the disk is full, write reports that and waits, until the disk has
// space or the run is asked to stop. The run continues meanwhile.
func (p *resultPrinter) write(b []byte) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if err != nil {
			p.broken.Store(true)
		}
	}()
	if p.tty && len(b) > 0 {
		return p.con.Suspend(func() error { _, err := p.out.Write(b); return err })
	}
	for waited := false; len(b) > 0; {
		n, err := p.out.Write(b)
		b = b[n:]
		if err == nil {
			if waited {
				p.con.Line("results are printed again")
			}
			return nil
		}
		if !rundir.IsFull(err) {
			return err
		}
		if !waited {
			waited = true
			later := "logs"
			if p.json {
				later = "resume --json"
			}
			p.con.Line("waiting until standard output has space for results (Ctrl-C twice leaves them to " +
				later + "): " + text.Line(err.Error()))
		}
		select {
		case <-p.run.Stopping():
			return err
		case <-time.After(time.Second):
		}
	}
	return nil
}

// lineCleaner cleans the output of a job for the terminal. Pieces may end in the middle of a line
// or of a character.
type lineCleaner struct {
	rest []byte // of a line whose end is missing
	asIs bool   // do not clean lines: the output is a file
	tag  string // to write before each line
	open bool   // the last line that was written had no end
}

// maxHeld bounds the part of a line that is held back until the line ends, in bytes.
const maxHeld = 64 << 10

func (l *lineCleaner) next(piece []byte, last bool) []byte {
	l.rest = append(l.rest, piece...)
	var out []byte
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		out = append(l.append(out, l.rest[:i]), '\n')
		l.rest, l.open = l.rest[i+1:], false
	}
	if len(l.rest) > 0 && (last || len(l.rest) > maxHeld) {
		out = l.append(out, l.rest)
		l.rest, l.open = nil, true
	}
	if last && l.open && (!l.asIs || l.tag != "") {
		out = append(out, '\n') // the next output begins on a line of its own
	}
	return out
}

// append appends a line, or a part of it.
func (l *lineCleaner) append(out, line []byte) []byte {
	if !l.open {
		out = append(out, l.tag...)
	}
	if l.asIs {
		return append(out, line...)
	}
	return append(out, text.Clean(string(bytes.TrimSuffix(line, []byte("\r"))), 0)...)
}
