package dispatch

import (
	"time"

	"dcs-tui/dispatch/commit"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// Journal makes records durable. jobs/journal implements it.
type Journal interface {
	commit.Journal
	// Fenced returns the epoch of a dispatcher that has taken over the run, or 0 if there is none.
	Fenced() (int, error)
	// Heartbeat shows other dispatchers that this one is alive.
	Heartbeat() error
}

// Config configures a dispatcher. Table is the folded journal, which is empty for a new run. The
// dispatcher owns it from Start on.
type Config struct {
	RunUID  string
	RunName string
	RunDir  string // absolute
	Created jobs.Stamp

	Sched     sched.Config
	Inventory *hosts.Inventory
	Connector hosts.Connector
	Journal   Journal
	Table     *jobs.Table
	// StoreSpecs makes accepted jobs durable before they are submitted to the core.
	StoreSpecs func([]*jobs.Spec) error
	// Inspect reads the attempts of another host in the run directory, through this machine's
	// mount. It may block as long as the mount hangs. nil: nothing can be read.
	Inspect func(host string, attempts []jobs.AttemptID) *hosts.Inspected
	// IsDeleted reports whether the run directory was deleted. It is called when the journal cannot
	// be found, and may block as long as the mount hangs. nil: never deleted.
	IsDeleted func() bool
	// Open is sent to each helper, with Host, Slots, Less, Nice, WorkDir, Setup
	// and Epoch filled in for it.
	Open hosts.Open
	// Files describes the files that are sent to hosts with jobs, and returned.
	Files Files
	// HostDirs holds, for hosts that do not share the run directory, "host:dir" with the directory
	// of their attempts' files, as far as earlier dispatchers knew it. It may be nil.
	HostDirs map[string]string
	// If the run has at least PackFiles jobs, hosts pack the files of attempts that they keep, at the
	// latest when it ends; 0: never.
	PackFiles int
	// MaxUnpacked is the number of attempts that have ended, and whose files wait for Recorded and Packed, from
	// which on such a run launches nothing; 0: it does not wait. Attempts whose claims Recorded has found to be
	// needed do not count.
	MaxUnpacked int
	// Provide starts to carry out a command about instances. The dispatcher's goroutine calls it,
	// so it must not block. The answers go to Do. nil: there are no providers.
	Provide func(sched.Command)
	// Notify receives messages for people, in order. The dispatcher's goroutine calls it, so it
	// must not block. It may be nil.
	Notify func(Notice)
	// OnResults receives results whose records are durable. OnReport receives the last lines that a
	// job has written to DCS_REPORT, and whether the job has ended. It returns the lines to keep as
	// events of the job. Both are called from the dispatcher's goroutine and must not block. They
	// may be nil.
	OnResults func([]*Result)
	OnReport  func(job jobs.ID, over bool, text string) []jobs.Reported
	// OnInventoryRequest receives the durable requests of people to add or remove a host, which are
	// carried out already. The dispatcher's goroutine calls it, so it must not block. It may be nil.
	OnInventoryRequest func(host string, q jobs.HostRequest)
	// RereadInventory asks for the inventory to be read again. The dispatcher's goroutine calls it,
	// so it must not block. The caller answers with SetInventory if it has changed. It may be nil.
	RereadInventory func()
}

// Notice is a message for people about a host or a job.
type Notice struct {
	At   time.Time
	Host string  // "" if it is not about a host
	Job  jobs.ID // 0 if it is not about a job
	Text string  // not cleaned for a terminal
	// The same for programs; "" if they need not know.
	ReasonKind jobs.ReasonKind
	Canceling  bool // the running job is being canceled
}

// Result is the result of one round of a job, in completion order.
type Result = results.Result

// Snapshot is an immutable copy of the state of the run, bounded in size.
type Snapshot struct {
	Counts    [jobs.Skipped + 1]int // jobs by state
	Total     int                   // accepted jobs
	Retries   int                   // failed attempts of this dispatcher whose jobs were retried
	InputOpen bool                  // more jobs may come (standard input is open)
	Hosts     []sched.HostView
	Rate      float64       // finished jobs per second, smoothed over the last minute
	ETA       time.Duration // time until the queue is done; 0: not known
	Paused    bool
	Problem   string // the journal cannot be written, …: "" if all is well
	Deleted   bool   // the run directory was deleted, so nothing can be recorded
	Finished  bool
}
