package sched

import (
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// HostState is where a host stands.
type HostState uint8

// The host states of DESIGN section 2.
const (
	Connecting HostState = iota
	Up
	Suspect
	Lost
	BackingOff
	Draining
	Disabled
)

var hostStateNames = [...]string{"connecting", "up", "suspect", "lost", "backing_off", "draining", "disabled"}

// String returns the word used in JSON and on the screen.
func (s HostState) String() string { return hostStateNames[s] }

// HostView is what a screen may know of a host: a copy, safe to keep.
type HostView struct {
	Name     string
	State    HostState
	Slots    int           // as the rule gives
	Usable   float64       // slots less what others use (the formula of DESIGN 7)
	Running  int           // slots in use by running attempts
	Buffered int           // attempts handed over and not known to have started
	Failures int           // connection failures in a row
	RetryAt  time.Duration // Time.Mono of the next connection attempt; 0: none
	LastBeat time.Duration // Time.Mono; 0: never
	Beat     hosts.Beat
	Hello    *hosts.Hello // nil before the first connection
	Reason   string       // why it is not up
	Done     int          // jobs finished there
	Failed   int
}

// Hosts returns a view of every host, in inventory order.
func (c *Core) Hosts() []HostView { return nil }

// Why says in one sentence why a job is not running, or what it is doing.
func (c *Core) Why(now Time, id jobs.ID) string { return "" }
