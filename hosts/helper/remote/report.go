//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"dcs-tui/jobs"
)

// The kinds of report, a supervisor's lines to the helper.
const (
	repStarted = 'S' // the attempt runs: holder, pid of the job, time
	repExited  = 'E' // it is over: outcome
	repLapsed  = 'L' // it never started: the lease had run out
	repRefused = 'R' // it never started and never will; carries why, and the GPUs that others use
	repKnown   = 'K' // it was claimed before: not run again
	repTrouble = 'T' // something a person should know: why
)

// report is one line. It is a sign, not a fact on record: it may be lost.
type report struct {
	kind    byte
	attempt jobs.AttemptID
	by      holder
	job     int // pid and process group of the job's shell
	at      jobs.Stamp
	outcome jobs.Outcome
	why     string
	gpus    []int // devices of the refused attempt that others use
}

// maxReport keeps a line below PIPE_BUF, so that it is written whole or not at all.
const maxReport = 4096

// append writes the line.
func (r *report) append(b []byte) []byte {
	b = append(b, r.kind, ' ')
	b = r.attempt.Append(b)
	num := func(n int64) { b = strconv.AppendInt(append(b, ' '), n, 10) }
	text := func(s string) { b = strconv.AppendQuote(append(b, ' '), s) }
	num(int64(r.by.slot))
	num(int64(r.by.pid))
	num(int64(r.by.start))
	switch r.kind {
	case repStarted:
		num(int64(r.job))
		num(int64(r.at))
	case repExited:
		o := &r.outcome
		num(int64(o.Exit))
		num(int64(o.Started))
		num(int64(o.Ended))
		num(int64(o.CPU))
		num(o.MaxRSSBytes)
		num(int64(o.Suspended))
		flags := int64(0)
		if o.TimedOut {
			flags |= 1
		}
		if o.Stopped {
			flags |= 2
		}
		if o.DiskFull {
			flags |= 4
		}
		if o.Unreturned {
			flags |= 8
		}
		num(flags)
		num(int64(o.LeftChildren))
		num(int64(o.Files))
		text(o.Signal)
		text(cut(o.Error, 400)) // quoted, a byte takes at most four
		text(cut(o.LastLine, maxLastLine))
		text(o.Memory)
	case repRefused:
		text(cut(r.why, 900))
		num(int64(len(r.gpus)))
		for _, n := range r.gpus {
			num(int64(n))
		}
	default:
		text(cut(r.why, 900)) // paths can be long, and the reason stands behind them
	}
	return append(b, '\n')
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

var errReport = errors.New("not a supervisor's report")

// parseReport reads a line without its newline.
func parseReport(line []byte) (r report, err error) {
	p := reportReader{b: line}
	if len(line) < 2 || line[1] != ' ' {
		return r, fmt.Errorf("%w: %.40q", errReport, line)
	}
	r.kind = line[0]
	p.b = line[2:]
	word, rest, _ := bytes.Cut(p.b, []byte{' '})
	p.b = rest
	if r.attempt, err = jobs.ParseAttemptID(string(word)); err != nil {
		return r, fmt.Errorf("%w: %v", errReport, err)
	}
	r.by = holder{int(p.int()), int(p.int()), uint64(p.int())}
	switch r.kind {
	case repStarted:
		r.job, r.at = int(p.int()), jobs.Stamp(p.int())
	case repExited:
		o := &r.outcome
		o.Exit, o.Started, o.Ended = int(p.int()), jobs.Stamp(p.int()), jobs.Stamp(p.int())
		o.CPU, o.MaxRSSBytes = time.Duration(p.int()), p.int()
		o.Suspended = time.Duration(p.int())
		flags := p.int()
		o.TimedOut, o.Stopped, o.DiskFull = flags&1 != 0, flags&2 != 0, flags&4 != 0
		o.Unreturned = flags&8 != 0
		o.LeftChildren, o.Files = int(p.int()), int(p.int())
		o.Signal, o.Error, o.LastLine, o.Memory = p.text(), p.text(), p.text(), p.text()
	case repRefused:
		r.why = p.text()
		for n := p.int(); n > 0 && !p.bad; n-- {
			r.gpus = append(r.gpus, int(p.int()))
		}
	case repLapsed, repKnown, repTrouble:
		r.why = p.text()
	default:
		p.bad = true
	}
	if p.bad || len(p.b) != 0 {
		return r, fmt.Errorf("%w: %.40q", errReport, line)
	}
	return r, nil
}

type reportReader struct {
	b   []byte
	bad bool
}

func (p *reportReader) int() int64 {
	word, rest, _ := bytes.Cut(p.b, []byte{' '})
	p.b = rest
	n, err := strconv.ParseInt(string(word), 10, 64)
	p.bad = p.bad || err != nil
	return n
}

func (p *reportReader) text() string {
	q, err := strconv.QuotedPrefix(string(p.b))
	if err != nil {
		p.bad = true
		return ""
	}
	p.b = bytes.TrimPrefix(p.b[len(q):], []byte{' '})
	s, err := strconv.Unquote(q)
	p.bad = p.bad || err != nil
	return s
}
