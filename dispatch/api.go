package dispatch

import (
	"time"

	"dcs-tui/dispatch/commit"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// Journal is where facts become durable; jobs/journal implements it.
type Journal interface {
	commit.Journal
	// Fenced returns the epoch of a dispatcher that took the run over, 0 if none.
	Fenced() (int, error)
	// Beat shows other dispatchers that this one is alive.
	Beat() error
}

// Config describes what a dispatcher needs. Table is the folded journal (empty for a
// new run); the dispatcher owns it from Start on.
type Config struct {
	RunUID  string
	RunName string
	RunDir  string // absolute
	Created jobs.Stamp

	Sched     sched.Config
	Hosts     []*hosts.Host
	Connector hosts.Connector
	Journal   Journal
	Table     *jobs.Table
	// StoreSpecs makes accepted jobs durable before the core learns of them.
	StoreSpecs func([]*jobs.Spec) error
	// Look reads the attempts of another host in the run directory, through this machine's mount.
	// It may block as long as the mount hangs. nil: nothing can be read.
	Look func(host string, attempts []jobs.AttemptID) *hosts.Looked
	// Deleted reports whether the run directory was deleted. It is called when the journal cannot
	// be found, and may block as long as the mount hangs. nil: never deleted.
	Deleted func() bool
	// Open is sent to each helper, with Host, Slots, Less, Nice, WorkDir, Setup
	// and Epoch filled in for it.
	Open hosts.Open
	// Files describes what travels with jobs to hosts and back.
	Files Files
	// HostDirs has, for hosts that do not share the run directory, the place of their attempts'
	// files, "host:dir", as far as earlier dispatchers knew it. May be nil.
	HostDirs map[string]string
	// Provide starts to carry out a command about instances. The dispatcher's goroutine calls it:
	// it must not block. The answers go to Do. nil: there are no providers.
	Provide func(sched.Command)
	// Notify receives messages for people, in order. The dispatcher's goroutine calls it: it must
	// not block. May be nil.
	Notify func(Notice)
	// Ended receives results whose records are durable, and Reported the last lines that a job
	// has written to DCS_REPORT, and whether the job is over; it returns what to keep of them as
	// events of the job. They are called from the dispatcher's goroutine and must not block. May be nil.
	Ended    func([]*Result)
	Reported func(job jobs.ID, over bool, text string) []string
	// InventoryAsked receives the requests of people to add or remove a host. The dispatcher's
	// goroutine calls it: it must not block. The caller answers with SetHosts. May be nil.
	InventoryAsked func(host string, q jobs.HostRequest)
}

// Notice is a message for people about a host or a job.
type Notice struct {
	At   time.Time
	Host string  // "" if it is not about a host
	Job  jobs.ID // 0 if it is not about a job
	Text string  // as it came: clean it before it reaches a terminal
}

// Result is one finished job (one round of it), in completion order.
type Result = results.Result

// Snapshot is an immutable copy of the state of the run, bounded in size.
type Snapshot struct {
	At       time.Time
	Counts   [jobs.Skipped + 1]int // jobs by state
	Total    int                   // accepted jobs
	Retries  int                   // failed attempts of this dispatcher whose jobs were retried
	More     bool                  // more jobs may come (standard input is open)
	Hosts    []sched.HostView
	Rate     float64       // finished jobs per second, smoothed over the last minute
	ETA      time.Duration // until the queue is done; 0: not known
	Paused   bool
	Problem  string // the journal cannot be written, …: "" if all is well
	Deleted  bool   // the run directory was deleted: nothing can be recorded
	Finished bool
}
