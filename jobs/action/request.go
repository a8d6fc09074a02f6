// Package action declares the actions of people: cancel, pause, drain a host, and so on. Table has
// one declaration per action, with its fields, its texts, and its effect in each state of a run.
// A Request is an action with its arguments. The screen and the commands make one, a file or the
// socket takes it to the dispatcher, and the core carries it out.
package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// MaxRequest is the maximum size of a request, in bytes.
const MaxRequest = 16 << 20

// maxText is the maximum length of a text in a request, in bytes.
const maxText = 1000

// Spare names jobs that a request leaves alone, by their state when it is carried out.
type Spare string

// The values of Spare.
const (
	SpareNone      Spare = ""
	SpareSucceeded Spare = "succeeded" // edit and requeue: succeeded jobs are not run again
	SpareStarted   Spare = "started"   // cancel of single jobs: jobs that have started are not ended
)

// Request is a user's request to the dispatcher.
type Request struct {
	V        int         `json:"v"` // of jobs.FormatRequest
	Do       Name        `json:"do"`
	Jobs     jobs.Ranges `json:"jobs,omitempty"` // jobs that the run does not have are ignored
	All      bool        `json:"all,omitempty"`  // cancel: every job, instead of Jobs
	Priority int         `json:"priority,omitempty"`
	Why      string      `json:"why,omitempty"` // reason, shown to users
	By       string      `json:"by,omitempty"`  // user and machine, shown to users
	At       time.Time   `json:"at"`            // by the clock of that machine, shown to users

	Spare Spare        `json:"spare,omitempty"` // cancel, requeue, edit
	Edit  *jobs.Change `json:"edit,omitempty"`  // edit
	Specs string       `json:"specs,omitempty"` // submit: SpecsText

	Host    string `json:"host,omitempty"`    // drain-host, stop-host, use-host, slots, add-host, remove-host
	Options string `json:"options,omitempty"` // add-host: "slots=4 tags=gpu"
	Number  int    `json:"number,omitempty"`  // slots
	// Priority, slots: the value is added to what the jobs or the host have when the request is
	// carried out.
	Relative bool `json:"relative,omitempty"`
	// Drain, stop: epoch of the dispatcher that the request is for; others refuse it.
	Epoch int `json:"epoch,omitempty"`

	// Drain: a STOP file asks for it. Continue: its removal does, which ends only such a drain.
	ByFile bool `json:"-"`
}

// Reason returns the reason for a request.
func (q *Request) Reason() string {
	switch {
	case q.Why != "":
		return q.Why
	case q.Do == Cancel: // becomes the reason of each job, so it names nobody
		return "canceled by a person"
	case q.By != "":
		return "asked for by " + q.By
	}
	return "asked for by a person"
}

// Encode returns the JSON of a request, or an error if no dispatcher could carry it out.
func (q *Request) Encode() ([]byte, error) {
	sent := *q
	sent.V = jobs.FormatRequest.Version
	sent.Why, sent.By = shorten(q.Why), shorten(q.By)
	if why := sent.Problem(); why != "" {
		return nil, fmt.Errorf("the request cannot be sent: %s", why)
	}
	text, err := json.Marshal(&sent)
	if err != nil {
		return nil, err
	}
	if len(text) >= MaxRequest {
		return nil, errors.New("the request cannot be sent: it names too many single jobs; " +
			"use ranges such as 3-900, or several requests")
	}
	return text, nil
}

// Decode decodes a request. why describes the problem, or is "".
func Decode(text []byte) (q *Request, why string) {
	q, why = decode(text)
	return q, shorten(why)
}

func decode(text []byte) (q *Request, why string) {
	if len(text) > MaxRequest {
		return nil, "its file is too long"
	}
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, "it is not JSON: " + err.Error()
	}
	if err := jobs.FormatRequest.Check(version.V); err != nil {
		return nil, err.Error()
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	q = new(Request)
	if err := dec.Decode(q); err != nil {
		return nil, err.Error()
	}
	return q, q.Problem()
}

// MaxSubmit is the maximum length of the SpecsText of a request, in bytes. Quoted in the request,
// it is still shorter than MaxRequest.
const MaxSubmit = 6 << 20

// SpecsText returns the jobs of a submit request: a line each, as in jobs.jsonl, without
// checksum. They are numbered from 1, and depend only on each other.
func SpecsText(specs []*jobs.Spec) string {
	var b []byte
	for _, s := range specs {
		b = append(jobs.AppendSpecJSON(b, s), '\n')
	}
	return string(b)
}

// NewJobs returns the jobs to submit.
func (q *Request) NewJobs() ([]*jobs.Spec, error) {
	var reader jobs.SpecReader
	var specs []*jobs.Spec
	for line := range strings.Lines(q.Specs) {
		s, err := reader.Read([]byte(strings.TrimSuffix(line, "\n")))
		n := jobs.ID(len(specs) + 1)
		switch {
		case err != nil:
			return nil, fmt.Errorf("its job %d cannot be read: %w", n, err)
		case s.ID != n:
			return nil, fmt.Errorf("its job %d has the number %d", n, s.ID)
		case strings.TrimSpace(s.Command) == "" || strings.IndexByte(s.Command, 0) >= 0:
			return nil, fmt.Errorf("its job %d has no command that a shell can be given", n)
		case s.Damage != "":
			return nil, fmt.Errorf("its job %d is damaged", n)
		}
		for dep := range s.After().All() {
			if dep < 1 || dep >= n {
				return nil, fmt.Errorf("its job %d comes after job %d, which is not before it in the request", n, dep)
			}
		}
		specs = append(specs, s)
	}
	return specs, nil
}

// checkSubmit returns why no dispatcher could submit the jobs.
func checkSubmit(q *Request) string {
	specs, err := q.NewJobs()
	switch {
	case err != nil:
		return shorten(err.Error())
	case len(specs) == 0:
		return "it has no jobs"
	}
	return ""
}
