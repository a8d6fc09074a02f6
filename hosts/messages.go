package hosts

import (
	"time"

	"dcs-tui/jobs"
)

// ProtocolVersion must be equal in Open and Hello.
const ProtocolVersion = 1

// Message is a message between dispatcher and helper. Package helper encodes it as a frame
// with all exported fields. Kind is the word in the frame that names its type.
type Message interface{ Kind() string }

// ---- dispatcher to host ----

// Open is the first message on a channel. It describes the run.
type Open struct {
	Version int
	Run     string // run uid
	RunName string
	Host    string // inventory name; the helper's directories carry it
	Epoch   int
	// Absolute path on the dispatcher's machine; "": the helper does not look for it.
	RunDir string
	// RunDir was a mirror. A host that shares the directory from which it was made keeps its
	// attempts there.
	Mirrored     bool
	Nonce        string // content of RunDir/nonce, which proves that the directory is shared
	WorkDir      string // "": ~/.dcs-tui
	ShareDir     string // holds the locks of GPUs; "": /var/tmp/dcs-share
	Cwd          string // where jobs run unless they say otherwise
	Shell        string // "": /bin/sh
	Setup        string // the host's and the run's, one after the other
	Env          []jobs.EnvVar
	Nice         int
	Slots        int // 0: cores - Less
	Less         int
	KeepChildren bool
	GraceSeconds float64 // between TERM and KILL; 0: 5
	// Signal is the number of the signal that warns a job of its end. It is sent WarnBefore
	// before the job's timeout; 0: no job is warned.
	Signal     int
	WarnBefore time.Duration
	Buffer     time.Duration
	// While a person uses the host: OwnerPause, OwnerSuspend, or "" for no effect.
	Owner string
	// How long a person counts as present after the last use; 0: DefaultOwnerIdle.
	OwnerIdle time.Duration
	Check     bool // the helper serves `hosts check` and stores nothing for later runs
	// With Sends the host asks for the files that every job gets (Want), before the first job
	// and after each Resend. With KeepFiles no file of a job is removed.
	Sends, KeepFiles bool
	// Reads requests a helper that only answers Read, beside any dispatcher of the run. Only
	// Version, Run, Host and WorkDir are used.
	Reads bool
	// Standby requests that the helper starts a standby dispatcher of the run in RunDir in
	// the background, and then ends. Only Version, Run, Host, Nonce, WorkDir and Env are
	// used; Env is added to the environment of the standby. If the host does not see RunDir and
	// Mirror is set, the helper receives a mirror of the run directory instead.
	Standby bool
	Mirror  *OpenMirror
	// Ballot requests a helper that only answers this ballot, in its hello.
	Ballot *Ballot
}

// OpenMirror describes the mirror that a helper receives. Package mirror has the protocol.
type OpenMirror struct {
	Generation string
	Epoch      int    // of the sender
	Boot       string // boot id of the sender's machine
	Exists     bool   // the mirror was begun before
}

// Ballot is a request to a voter of a generation of mirrors, or its answer. Without a Choice it
// makes the host a voter of the generation.
type Ballot struct {
	Generation string
	Epoch      int    // of the dispatcher that begins the generation; not in a vote
	Choice     string // asked for; in an answer the vote that the voter has cast
	Voter      string // in an answer: the id of the voter; "": the host has no vote
}

// Ping keeps the helper alive and extends the lease. Until LeaseUptime, in the host's own
// boot clock, a buffered job may start without the dispatcher.
type Ping struct {
	Seq         int64
	LeaseUptime time.Duration
}

// Launch sends attempts in the order in which they start. The helper refuses the batch if its
// clock is past ExpireUptime or if it knows a higher epoch. An attempt that it already has is
// acknowledged and not run again.
type Launch struct {
	Epoch        int
	ExpireUptime time.Duration
	Jobs         []LaunchJob
}

// LaunchJob is one attempt to start.
type LaunchJob struct {
	Attempt jobs.AttemptID `json:"a"`
	Command string         `json:"c"`
	Cwd     string         `json:"d,omitempty"` // "": Open.Cwd
	Setup   string         `json:"s,omitempty"` // "": Open.Setup
	Env     []jobs.EnvVar  `json:"e,omitempty"` // on top of Open.Env
	Params  []jobs.Param   `json:"p,omitempty"`
	Timeout time.Duration  `json:"t,omitempty"`
	Slots   int            `json:"n,omitempty"` // 0: 1
	// Number of earlier attempts of the job in this round that ran.
	Restart int       `json:"r,omitempty"`
	Mem     int64     `json:"m,omitempty"` // bytes above which it is killed; 0: no limit
	GPUs    []int     `json:"g,omitempty"` // numbers of its devices
	HalfGPU bool      `json:"h,omitempty"` // it gets half of each
	Files   *JobFiles `json:"f,omitempty"` // nil: it runs in Cwd, as it is
}

// JobFiles describes an attempt that runs in a directory of its own. A relative Cwd is below
// that directory.
type JobFiles struct {
	Own    bool     `json:"o,omitempty"` // it gets files that other attempts do not get: see Want
	Return []string `json:"r,omitempty"` // patterns of files that it returns
}

// Limit sets how many slots may be busy at once from now on (others' load, drain, pause).
// Running jobs continue. With 0 nothing starts.
type Limit struct{ Slots int }

// Share describes how many slots the run wants on a host that others use, too.
type Share struct {
	Slots  int // slots of the host for all runs that share it
	Want   int // slots that the run would use
	Weight int // weight of the run among the runs of its user; 0: it does not share slots
}

// Withdraw withdraws buffered attempts. Each is answered in Withdrawn.
type Withdraw struct {
	Epoch    int
	Attempts []jobs.AttemptID
}

// Kill kills running attempts and withdraws buffered ones: TERM, grace, KILL, repeated until
// none of their processes is left. Each is reported in Exits or Withdrawn. Processes that do
// not end are reported in a Trouble.
type Kill struct {
	Epoch    int
	Attempts []jobs.AttemptID
	Why      string
	Warn     bool // send only the warning signal of Open; the attempts continue
}

// Probe asks for the states of attempts. Each is answered in Probed.
type Probe struct {
	Epoch    int
	Attempts []jobs.AttemptID
}

// Inspect asks for what the directory of this host's attempts contains of attempts of another
// host, which cannot be asked now. It is answered by one Inspected.
type Inspect struct {
	Host     string // the other host
	Attempts []jobs.AttemptID
}

// List asks for the host's attempts of the given jobs, and for all that are in its spool.
// Without Jobs it asks for every attempt of the run of which the host has anything: if
// records of the journal are missing, only the hosts know of those attempts.
type List struct {
	Epoch int
	Jobs  jobs.Ranges // none: all
}

// Read asks for a piece of a file of an attempt. It is answered by a Chunk.
type Read struct {
	ID      int64
	Attempt jobs.AttemptID
	File    jobs.File // FileOut, FileErr, FileStatus, or FileReturned
	// FileReturned: below the directory of the attempt; "": the manifest of what it returns.
	Path   string
	Offset int64 // negative: counted from the end
	Limit  int   // bytes, at most MaxChunk
}

// MaxChunk is the largest Bulk of a Chunk.
const MaxChunk = 256 << 10

// FileReturned is the File of a Read of a file that an attempt returns.
const FileReturned jobs.File = "returned"

// Resend reports that the files which every job gets may have changed. The helper asks for
// their manifest again. Jobs that are launched later start with the new files.
type Resend struct{}

// Piece answers a Want.
type Piece struct {
	ID   int64
	Size int64  // of the whole content
	Why  string // why there is no Bulk; "": Bulk is valid
	Bulk []byte `json:"-"`
}

// Store writes pieces of files to a mirror, in this order, durably. It is answered by a Stored.
type Store struct {
	ID     int64
	Pieces []StorePiece
	// Describe is the new content of mirror.json, written after the pieces; nil: unchanged.
	Describe []byte
	Remove   bool // the mirror is not needed any more
	Check    bool // Stored.Watched is wanted
}

// StorePiece is a piece of a file of a run directory.
type StorePiece struct {
	Name   string // relative to the run directory
	Offset int64  // WholeFile: Bulk replaces the file
	Bulk   []byte `json:"-"`
}

// WholeFile is the Offset of a StorePiece that replaces a file.
const WholeFile = -1

// Returned reports that the outcomes of attempts and the files that they return are durable.
// The host may remove their directories.
type Returned struct{ Attempts []jobs.AttemptID }

// Bye ends the channel. With End the run is over on this host: processes that jobs left
// behind are killed (unless KeepChildren), and the spool is removed.
type Bye struct{ End bool }

// ---- host to dispatcher ----

// Hello is the helper's first message.
type Hello struct {
	Version int
	// Random id, created by the first helper of the run on this machine; "": not known.
	Machine  string
	BootID   string
	Uptime   time.Duration // CLOCK_BOOTTIME
	OS, Arch string
	Cores    int
	MemBytes int64
	GPUs     int
	// GPUIDs are the sorted numbers of the GPUs; nil: 0, 1 … GPUs-1.
	GPUIDs []int
	// LockedGPUs are the devices that jobs of any run or user hold, HalfGPUs those of
	// which half is free.
	LockedGPUs, HalfGPUs []int
	Sharing              *Sharing // as in Heartbeat, if the run wanted all slots
	Owner                Owner
	Slots                int  // by the rule of Open
	Shared               bool // the host sees the dispatcher's run directory
	// Directory that holds attempts/: the run directory, or below work_dir.
	Dir   string
	Spool string
	// A higher epoch that this host knows, with which the helper does nothing; 0: none.
	FencedBy  int
	Warnings  []string // one line each
	PID       int
	CwdError  string // why Open.Cwd cannot be used; "": it can
	WallClock jobs.Stamp
	// ZoneSeconds is the offset of the host's local time from UTC (east is positive) at the
	// time of the hello. Quiet hours are in local time.
	ZoneSeconds int
	// Why this host cannot run jobs (work_dir missing, not writable, full …); the helper then ends.
	Error string
	// No job may be launched before a Heartbeat without Receives, because files that every job gets
	// are missing.
	Receives bool
	Mirrors  bool    // the helper receives a mirror of the run directory in Dir
	Ballot   *Ballot // answers Open.Ballot
	// Error may pass (full, quota, read-only, stale handle, I/O error), so a retry makes sense.
	Passing bool
}

// Owner describes who or what requests that a host is left alone.
type Owner struct {
	Who     string // in words; "": nobody
	Suspend bool   // running jobs are suspended
}

// Heartbeat is the heartbeat. It is sent every 3 s, even while file systems hang, and once right
// after the hello.
type Heartbeat struct {
	// The first, whose Busy and Ours include the start of the helper itself.
	Early    bool  `json:",omitempty"`
	Seq      int64 // of the latest Ping received
	Uptime   time.Duration
	Load     [3]float64
	Busy     float64 // cores busy, all users, since the last heartbeat
	Ours     float64 // cores busy with our jobs, since the last heartbeat
	MemFree  int64   // bytes available; -1: unknown
	DiskFree int64   // bytes, where attempts are written; -1: not known in time
	FSDelay  time.Duration
	Running  int
	Buffered int
	// LockedGPUs are the devices that jobs of any run or user, this one included, or other
	// processes use. HalfGPUs are those of which half is free.
	LockedGPUs []int    `json:",omitempty"`
	HalfGPUs   []int    `json:",omitempty"`
	Sharing    *Sharing `json:",omitempty"` // nil: nobody else shares the host
	Owner      Owner    `json:",omitzero"`
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
	Why       string // why part of the directory could not be read; "": all was read
}

// Listed answers a List, in one or more parts: what a Probe would find of each attempt.
type Listed struct {
	Jobs []ProbedJob
	Last bool   // this is the last part
	All  bool   // on the last part: the list has every job
	Why  string // why the list may be incomplete; "": it is complete
}

// Want asks for a manifest of package files, or for a piece of a content that a manifest
// lists. It is answered by a Piece.
type Want struct {
	ID      int64
	Attempt jobs.AttemptID // of the manifest; zero: the manifest of what every job gets
	Sum     string         // of the content; "": a manifest is wanted
	Offset  int64
	Limit   int // bytes, at most MaxChunk
}

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

// Kind returns the kind of the frame.
func (Open) Kind() string      { return "open" }
func (Ping) Kind() string      { return "ping" }
func (Launch) Kind() string    { return "launch" }
func (Limit) Kind() string     { return "limit" }
func (Share) Kind() string     { return "share" }
func (Withdraw) Kind() string  { return "withdraw" }
func (Kill) Kind() string      { return "kill" }
func (Probe) Kind() string     { return "probe" }
func (Inspect) Kind() string   { return "inspect" }
func (List) Kind() string      { return "list" }
func (Read) Kind() string      { return "read" }
func (Bye) Kind() string       { return "bye" }
func (Hello) Kind() string     { return "hello" }
func (Heartbeat) Kind() string { return "heartbeat" }
func (Started) Kind() string   { return "started" }
func (Exits) Kind() string     { return "exits" }
func (Withdrawn) Kind() string { return "withdrawn" }
func (Refused) Kind() string   { return "refused" }
func (Probed) Kind() string    { return "probed" }
func (Inspected) Kind() string { return "inspected" }
func (Listed) Kind() string    { return "listed" }
func (Trouble) Kind() string   { return "trouble" }
func (Chunk) Kind() string     { return "chunk" }
func (Want) Kind() string      { return "want" }
func (Piece) Kind() string     { return "piece" }
func (Resend) Kind() string    { return "resend" }
func (Store) Kind() string     { return "store" }
func (Stored) Kind() string    { return "stored" }
func (Returned) Kind() string  { return "returned" }
