//go:build linux

package remote

import (
	"encoding/base64"
	"errors"
	"fmt"

	wire "dcs-tui/hosts/helper"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// The kinds of report.
const (
	repStarted  = 'S' // the attempt runs: Job, At
	repExited   = 'E' // it has ended: Outcome
	repLapsed   = 'L' // it never started: the lease had run out
	repRefused  = 'R' // it never started and never will: Why, and the GPUs that others use
	repKnown    = 'K' // it was claimed before and is not run again
	repReturned = 'B' // it was not taken: another supervisor needs a token for it
	repTrouble  = 'T' // something a person should know: Why
)

// report is one line from a supervisor to the helper, in base64. It is only a hint, because
// it may be lost.
type report struct {
	Kind    byte
	Attempt jobs.AttemptID
	By      holder
	Job     int // pid and process group of the job's shell
	At      jobs.Stamp
	Outcome jobs.Outcome
	Why     string
	GPUs    []int             // devices of the refused attempt that others use
	Limit   jobs.ProcessLimit // that refused a process of the refused attempt
}

// maxReport keeps a line below PIPE_BUF, so that it is written completely or not at all.
const maxReport = 4096

// append appends the line, with long texts cut.
func (r *report) append(b []byte) []byte {
	short := *r
	short.Why = text.ShortenBytes(r.Why, 900) // long enough for a long path and the reason after it
	short.Limit.Path, short.Outcome.ProcessLimit.Path = text.ShortenBytes(r.Limit.Path, maxLimitPath),
		text.ShortenBytes(r.Outcome.ProcessLimit.Path, maxLimitPath)
	short.Outcome.Error, short.Outcome.LastLine = text.ShortenBytes(r.Outcome.Error, 400),
		text.ShortenBytes(r.Outcome.LastLine, attempts.MaxLastLine)
	return append(base64.StdEncoding.AppendEncode(b, wire.Append(nil, short)), '\n')
}

// maxLimitPath is the number of bytes of the path of a limit in a report.
const maxLimitPath = 400

var errReport = errors.New("not a supervisor's report")

// parseReport decodes a line without its newline.
func parseReport(line []byte) (r report, err error) {
	b, err := base64.StdEncoding.Strict().AppendDecode(nil, line)
	if err == nil {
		err = wire.Decode(b, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%w: %.40q: %w", errReport, line, err)
	}
	return r, nil
}
