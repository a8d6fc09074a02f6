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

// The messages of the dispatcher follow. messages_host.go has those of hosts.

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
	ShareWeight  int    // of the run among the runs of its user; 0: it does not share slots, and sends no Share
	Cwd          string // where jobs run unless they say otherwise
	Shell        string // "": /bin/sh
	Setup        string // the host's and the run's, one after the other
	Env          []jobs.EnvVar
	Nice         int
	Pin          bool // each job is bound to cores of its own
	Slots        int  // 0: cores - Less
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
	Heartbeat time.Duration // interval of its heartbeats; 0: DefaultHeartbeat
	Check     bool          // the helper serves `hosts check` and stores nothing for later runs
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
	Restart int   `json:"r,omitempty"`
	Mem     int64 `json:"m,omitempty"` // bytes above which it is killed; 0: no limit
	GPUs    []int `json:"g,omitempty"` // numbers of its devices
	// Part of its device that it gets; 0: all of each device. A version before it takes all, too.
	GPUShare jobs.GPUs `json:"u,omitzero"`
	Files    *JobFiles `json:"f,omitempty"` // nil: it runs in Cwd, as it is
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
	Rule  int // slots of the host by the run's inventory, which it divides with other runs and users
	Slots int // the same less the load of others: at least 1
	Want  int // slots that the run would use
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
	File    jobs.File // jobs.FileOut, jobs.FileErr, jobs.FileStatus, or FileReturned
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
	Size int64  // of the whole manifest
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

// Pack reports that the outcomes of attempts, which are all in one directory and in order, are
// durable, and that no launch of them can be valid any more. A host that keeps the files of attempts
// in its work_dir may pack them. It does not answer.
type Pack struct {
	Epoch    int
	Attempts []jobs.AttemptID
}

// Bye ends the channel. With End the run is over on this host: processes that jobs left
// behind are killed (unless KeepChildren), and the spool is removed. With Pack, too, a host that
// keeps the files of attempts in its work_dir packs those of all attempts that have ended there.
type Bye struct{ End, Pack bool }

// MaxPackTime bounds how long a host packs after a Bye.
const MaxPackTime = 10 * time.Second

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
func (Pack) Kind() string      { return "pack" }
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
