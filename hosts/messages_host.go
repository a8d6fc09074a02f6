package hosts

import (
	"time"

	"dcs-tui/jobs"
)

// Hello is the helper's first message.
type Hello struct {
	Version int
	// Random id, created by the first helper of the run on this machine; "": not known.
	Machine  string
	BootID   string
	Uptime   time.Duration // CLOCK_BOOTTIME
	OS, Arch string
	Cores    int   // that the session may use
	MemBytes int64 // that the session may use
	// MachineCores is the number of cores of the machine; 0: Cores.
	MachineCores int
	Limits       []CapacityLimit
	GPUs         int
	// GPUIDs are the sorted numbers of the GPUs; nil: 0, 1 … GPUs-1.
	GPUIDs []int
	// LockedGPUs are the devices that jobs of any run or user hold, PartGPUs those of
	// which a part is free.
	LockedGPUs []int
	PartGPUs   []GPUPart
	Sharing    *Sharing // as in Heartbeat, if the run wanted all slots
	Owner      Owner
	Slots      int // by the rule of Open, within MaxSlots
	// MaxSlots is the number of slots that the administrators of the host allow the user; 0: any number.
	MaxSlots int
	Shared   bool // the host sees the dispatcher's run directory
	// Directory that holds attempts/: the run directory, or below work_dir.
	Dir   string
	Spool string
	// A higher epoch that this host knows, with which the helper does nothing; 0: none.
	FencedBy int
	Warnings []string // one line each
	// EndsSessions reports that the host ends all processes of the session of this helper, jobs
	// included, when the connection ends.
	EndsSessions bool
	PID          int
	CwdError     string // why Open.Cwd cannot be used; "": it can
	WallClock    jobs.Stamp
	// ZoneSeconds is the offset of the host's local time from UTC (east is positive) at the
	// time of the hello. Quiet hours are in local time.
	ZoneSeconds int
	// Error is the reason why this host cannot run jobs: for example, work_dir is missing, not
	// writable, or full. The helper ends after such a Hello. "": the host can run jobs.
	Error string
	// Receives reports that files that every job gets are still missing. No job may be launched
	// before a Heartbeat without Receives.
	Receives bool
	Mirrors  bool    // the helper receives a mirror of the run directory in Dir
	Ballot   *Ballot // answers Open.Ballot
	// Passing reports that the cause of Error may pass (full, quota, stale handle, I/O error),
	// so a retry makes sense.
	Passing bool
}

// Owner describes who or what requests that a host is left alone.
type Owner struct {
	Who     string // in words; "": nobody
	Suspend bool   // running jobs are suspended
}

// GPUPart is a device of which a part is in use.
type GPUPart struct {
	GPU  int
	Used jobs.GPUs // less than jobs.WholeGPU
}

// Heartbeat is the heartbeat. It is sent every Open.Heartbeat, even while file systems hang, and
// once right after the hello.
type Heartbeat struct {
	// The first, whose Busy and Ours include the start of the helper itself.
	Early    bool  `json:",omitempty"`
	Seq      int64 // of the latest Ping received
	Uptime   time.Duration
	Load     [3]float64
	Busy     float64 // cores busy, all users, since the last heartbeat
	Ours     float64 // cores busy with our jobs, since the last heartbeat
	MemFree  int64   // bytes available; -1: unknown
	DiskFree int64   // bytes, on the fullest disk of attempts and work_dir; -1: not known in time
	FSDelay  time.Duration
	// ZoneSeconds is that of the hello at this time; nil: it is unchanged.
	ZoneSeconds *int `json:",omitempty"`
	Running     int
	Buffered    int
	// LockedGPUs are the devices that jobs of any run or user, this one included, or other
	// processes use. PartGPUs are those of which a part is free.
	LockedGPUs []int     `json:",omitempty"`
	PartGPUs   []GPUPart `json:",omitempty"`
	Sharing    *Sharing  `json:",omitempty"` // nil: nobody else shares the host
	Owner      Owner     `json:",omitzero"`
	// Total time for which jobs of the run have been suspended on this host.
	Suspended time.Duration `json:",omitempty"`
	Receives  bool          `json:",omitempty"` // files that every job gets are missing
	// Progress of receiving files, in words; "": none are being received.
	Files string `json:",omitempty"`
	// By attempt id: what its job wrote to DCS_PROGRESS, at most 64 bytes.
	Progress map[string]string `json:",omitempty"`
	// Cores that an attempt used since the last heartbeat, if more than one, by attempt id.
	Cores map[string]float64 `json:",omitempty"`
	// Reports are the lines that jobs have appended to DCS_REPORT since the last heartbeat, by
	// attempt id; of many lines the last ones.
	Reports map[string]string `json:",omitempty"`
}

// Sharing describes how runs and users share a host.
type Sharing struct {
	Slots  int   // slots that this run may use now
	Held   int   // slots that other runs hold
	Memory int64 `json:",omitempty"` // bytes that jobs of other runs may use
	Users  []SharedUser
}

// MaxSharedUsers bounds Sharing.Users.
const MaxSharedUsers = 32

// SharedUser describes what a user uses of a host.
type SharedUser struct {
	Name   string
	Slots  int
	Want   int      `json:",omitempty"` // slots, those in use included
	Memory int64    `json:",omitempty"` // bytes
	GPUs   []int    `json:",omitempty"`
	Runs   []string `json:",omitempty"`
	// OwnRuns are other runs of the user of this run that hold slots. Another user has none.
	OwnRuns []string `json:",omitempty"`
}

// Started reports attempts that have started.
type Started struct{ Jobs []StartedJob }

// StartedJob is one of them.
type StartedJob struct {
	Attempt jobs.AttemptID `json:"a"`
	Slot    int            `json:"s"` // 1 … slots
	At      jobs.Stamp     `json:"t"`
}

// Exits reports attempts that have ended. An attempt may be reported more than once.
type Exits struct{ Jobs []ExitedJob }

// ExitedJob is one of them.
type ExitedJob struct {
	Attempt jobs.AttemptID `json:"a"`
	Slot    int            `json:"s,omitempty"`
	Outcome jobs.Outcome   `json:"o"`
}

// Withdrawn reports attempts that will never start on this host: each was removed from the
// spool, or the helper created its claim as a tombstone.
type Withdrawn struct {
	Attempts []jobs.AttemptID
	Why      string
}

// Refused reports attempts of a Launch that were not accepted and will never start on this host
// (expired, fenced, spool full). This is not a failure of the jobs. With FencedBy it also answers a
// Kill, Withdraw or Probe that was not carried out, and is sent without attempts before a fenced
// helper ends. In that case it says nothing about the attempts.
type Refused struct {
	Attempts []jobs.AttemptID
	Why      string
	FencedBy int // the higher epoch; 0: that is not the reason
	// GPUs are the devices of the attempts that other runs or users hold, if that is the reason.
	GPUs []int
	// Limit is the limit on processes that the host has reached, if that is the reason.
	// Slots is the number of slots that it leaves, at least.
	Limit jobs.ProcessLimit
	Slots int
}

// Answer is the state of an attempt that a Probe found.
type Answer uint8

// The answers. NeverStarted is given only after the helper has created the claim itself, and
// Dead only on proof: claimed, no sentinel, and the process is gone or the host has rebooted.
const (
	Unknown Answer = iota // cannot be found out now
	Buffered
	IsRunning
	HasExited // Outcome is set
	NeverStarted
	Dead
)

var answerNames = [...]string{"unknown", "buffered", "running", "exited", "never started", "dead"}

// String returns the name of the answer.
func (a Answer) String() string { return answerNames[a] }

// Probed answers a Probe.
type Probed struct{ Jobs []ProbedJob }

// ProbedJob is the answer for one attempt.
type ProbedJob struct {
	Attempt jobs.AttemptID `json:"a"`
	Answer  Answer         `json:"r"`
	Slot    int            `json:"s,omitempty"`
	Started jobs.Stamp     `json:"t,omitempty"`
	Outcome *jobs.Outcome  `json:"o,omitempty"`
	Why     string         `json:"w,omitempty"`
}

// Inspected answers an Inspect.
type Inspected struct {
	Host string
	Jobs []ExitedJob // those with a complete sentinel
	// Those with a claim of the host and no sentinel: they have started, or are about to.
	Runs []jobs.AttemptID
	// Those with a tombstone: they will never start. Of the others nothing is known.
	Never []jobs.AttemptID
	// Content of the host's heartbeat file, which changes while the host is alive; "": there is
	// none.
	Heartbeat string
	// Machine is the id of the host's machine, as in its Hello, from its file in the directory; "":
	// there is none. It shows that the directory is the one in which that machine keeps its attempts.
	Machine string
	Why     string // why part of the directory could not be read; "": all was read
}

// Listed answers a List, in one or more parts: what a Probe would find of each attempt.
type Listed struct {
	Jobs []ProbedJob
	Last bool   // this is the last part
	All  bool   // on the last part: the list has every job
	Why  string // why the list may be incomplete; "": it is complete
	// LacksPack, on the last part: a pack is damaged or cannot be read, so the list may lack attempts that have
	// ended.
	LacksPack bool
}

// Want asks for a manifest of package files, or for a piece of contents that manifests list. It is
// answered by a Piece.
type Want struct {
	ID      int64
	Attempt jobs.AttemptID // of the manifest; zero: the manifest of what every job gets
	// Sums are those of the contents, at most MaxContents, of which the concatenation is meant; none:
	// a manifest is wanted.
	Sums   []string
	Offset int64 // less than the size of the first content
	Limit  int   // bytes, at most MaxChunk
}

// MaxContents is the largest number of contents in a Want.
const MaxContents = 64

// Trouble describes in one line a problem of the host, or of one attempt if Attempt is not
// zero.
type Trouble struct {
	Attempt jobs.AttemptID
	Text    string
	Fatal   bool // the helper cannot continue
}

// Chunk answers a Read. Size is the file's current size, or -1, with Why, if it cannot be
// read.
type Chunk struct {
	ID     int64
	Offset int64
	Size   int64
	Why    string
	None   bool   // there is no such file
	Bulk   []byte `json:"-"`
}

// Stored answers a Store.
type Stored struct {
	ID       int64
	FencedBy int    // epoch of the dispatcher that has taken over the mirror; 0: none
	Why      string // why nothing is known to be durable; "": everything is
	Asking   bool   // the standby there has asked for votes
	Watched  bool   // a standby watches there
	// NoStandby is why no standby could be started there; "": one watches, or none was requested.
	NoStandby string
}
