package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/term"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// outputTimeout bounds one piece of output that comes over a link.
const outputTimeout = 30 * time.Second

// resultPrinter writes finished jobs to standard output: a JSON line each, or
// what they printed themselves.
type resultPrinter struct {
	out  *os.File
	con  *console.Console // to be moved out of the way when out is a terminal
	tty  bool
	json bool
	run  *run.Run
	buf  []byte
}

func newResultPrinter(a *app, asJSON bool, r *run.Run) *resultPrinter {
	return &resultPrinter{out: a.stdout, con: a.con, tty: term.IsTerminal(int(a.stdout.Fd())), json: asJSON, run: r}
}

// Print writes one result whole. After an error part of it may have been written.
func (p *resultPrinter) Print(r *results.Result) error {
	if p.json {
		p.buf = r.AppendJSON(p.buf[:0])
		return p.write(p.buf)
	}
	if r.Stdout == "" {
		return nil // it never ran
	}
	return p.output(r)
}

// output copies the job's stdout in pieces, so that a gigabyte needs no memory.
func (p *resultPrinter) output(r *results.Result) error {
	var clean lineCleaner
	for at := int64(0); ; {
		ctx, cancel := context.WithTimeout(context.Background(), outputTimeout)
		piece, size, err := p.run.Output(ctx, r.Attempt, jobs.FileOut, at, hosts.MaxChunk)
		cancel()
		if err != nil {
			return fmt.Errorf("its output cannot be read: %w", err)
		}
		at += int64(len(piece))
		last := len(piece) == 0 || at >= size
		if p.tty {
			piece = clean.next(piece, last)
		}
		if err := p.write(piece); err != nil || last {
			return err
		}
	}
}

// write writes all of b. While there is no room for it, it says so and waits: results
// are late then, the run goes on. Only a person who asks to stop ends the waiting.
func (p *resultPrinter) write(b []byte) error {
	if p.tty && len(b) > 0 {
		return p.con.Suspend(func() error { _, err := p.out.Write(b); return err })
	}
	for waited := false; len(b) > 0; {
		n, err := p.out.Write(b)
		b = b[n:]
		if err == nil {
			if waited {
				p.con.Line("results are written again")
			}
			return nil
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		if !waited {
			waited = true
			p.con.Line("results wait until standard output has room: " + console.CleanLine(err.Error()))
		}
		select {
		case <-p.run.Stopping():
			return err
		case <-time.After(time.Second):
		}
	}
	return nil
}

// lineCleaner makes pieces of a job's output safe for a terminal, line by line:
// a piece may end in the middle of a character.
type lineCleaner struct{ rest []byte }

// longestLine is how much of a line without an end is held back.
const longestLine = 64 << 10

func (l *lineCleaner) next(piece []byte, last bool) []byte {
	l.rest = append(l.rest, piece...)
	var out []byte
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		out = append(out, jobs.Clean(string(bytes.TrimSuffix(l.rest[:i], []byte("\r"))), 0)...)
		out = append(out, '\n')
		l.rest = l.rest[i+1:]
	}
	if last || len(l.rest) > longestLine {
		out = append(out, jobs.Clean(string(l.rest), 0)...)
		l.rest = nil
		if last && len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n') // what comes next begins at the margin
		}
	}
	return out
}
