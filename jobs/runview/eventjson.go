package runview

import (
	"time"

	"dcs-tui/jobs"
)

// EventJSON is what `events --json` prints of a record. Text is for people, and not
// cleaned: JSON quotes it.
type EventJSON struct {
	V       int            `json:"v"`
	At      time.Time      `json:"at"`
	Epoch   int            `json:"epoch"` // the dispatcher that recorded it
	Kind    jobs.Kind      `json:"kind"`
	Job     jobs.ID        `json:"job,omitempty"`
	Attempt string         `json:"attempt,omitempty"`
	Host    string         `json:"host,omitempty"`
	State   *jobs.JobState `json:"state,omitempty"`   // what the job became
	Count   int            `json:"count,omitempty"`   // jobs, of kinds accepted and request
	Request string         `json:"request,omitempty"` // name of the request that caused it
	Refused string         `json:"refused,omitempty"` // why that request was not carried out
	Text    string         `json:"text"`
}

// EventOf returns the event of a record that the dispatcher epoch wrote.
func EventOf(epoch int, r *jobs.Record) *EventJSON {
	e := &EventJSON{V: 1, At: r.At.Time().UTC(), Epoch: epoch, Kind: r.Kind, Job: r.Job, Host: r.Host, Count: r.Count, Request: r.Request, Text: Text(r)}
	if r.Kind == jobs.KindRequest {
		e.Refused = r.Reason
	}
	switch r.Kind {
	case jobs.KindLaunching, jobs.KindRunning:
		state := jobs.Running
		e.State, e.Attempt = &state, r.Attempt().String()
	case jobs.KindForgiven:
		e.Attempt = r.Attempt().String()
	case jobs.KindExited, jobs.KindLost, jobs.KindSuperseded, jobs.KindCancelled:
		e.State, e.Attempt = &r.Next, r.Attempt().String()
	case jobs.KindJob:
		e.State = &r.Next
	case jobs.KindRound, jobs.KindEdited:
		state := jobs.Queued
		e.State = &state
	}
	return e
}
