package sched

import (
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Config holds the choices of a run that the core needs.
type Config struct {
	Seed          uint64        // of the jitter
	Tries         int           // attempts in all of a job that says nothing; 0: 3
	Timeout       time.Duration // of a job that says nothing; 0: none
	RetryTimeouts bool          // a timeout is not final
	OnLost        jobs.OnLost   // of a job that says nothing; default: requeue
	MaxSlots      int           // busy at once over all hosts; 0: no limit
	Buffer        time.Duration // how long hosts must stay busy without us (B3); 0: short
	HaltFailures  int           // drain after so many failed jobs; 0: never
	HaltPercent   float64       // … or after this share of failed among finished ones; 0: never
	GiveUp        time.Duration // finish when no host could be used for so long; 0: 10 min
	BackoffCap    time.Duration // longest pause between connection attempts (B1); 0: 1 min
}

// Core is the state machine. It is not safe for concurrent use: one goroutine
// owns it and the table in it.
type Core struct {
	cfg   Config
	table *jobs.Table
}

// New builds a core around a folded table. Open attempts in the table are of
// unknown fate until their hosts have been asked: recovery is the normal start.
func New(cfg Config, t *jobs.Table, hs []*hosts.Host) *Core {
	return &Core{cfg: cfg, table: t}
}

// Table returns the run's state; the caller must not change it.
func (c *Core) Table() *jobs.Table { return c.table }

// Step takes one event and returns what to record and then what to do. The
// records have already been folded into the table. The returned slices are the
// caller's.
func (c *Core) Step(now Time, ev Event) (records []jobs.Record, orders []Order) { return nil, nil }

// Next returns when (in Time.Mono) the core wants a Tick at the latest; false
// means that only events can change anything.
func (c *Core) Next() (time.Duration, bool) { return 0, false }
