package hosts

import (
	"time"

	"dcs-tui/jobs"
)

// ProtocolVersion is the version both sides must agree on in Open and Hello.
const ProtocolVersion = 1

// Message is anything that travels between dispatcher and helper. wire frames
// it: the type name is the frame's word; every exported field travels.
type Message interface{ Word() string }

// ---- dispatcher to host ----

// Open is the first message on a channel: what the helper must know of the run.
type Open struct {
	Version      int
	Run          string // run uid
	RunName      string
	Host         string // inventory name; the helper's directories carry it
	Epoch        int
	RunDir       string // absolute path on the dispatcher's machine; "" if it must not be looked for
	Nonce        string // content of RunDir/nonce: seeing it proves a shared directory
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
	// Signal is the number of the signal that warns a job of its end, and WarnBefore how
	// long before its timeout it is sent; 0: no job is warned.
	Signal     int
	WarnBefore time.Duration
	Buffer     time.Duration
	Owner      string        // OwnerPause, OwnerSuspend, or "": what is done while a person uses the host
	OwnerIdle  time.Duration // how long a person counts as present after the last use; 0: DefaultOwnerIdle
	Check      bool          // it only looks: what it sees says nothing about the next time
	// Sends reports whether the host is to ask for files that every job gets (Want), before the
	// first job and after each Resend; KeepFiles that no file of a job is removed.
	Sends, KeepFiles bool
	// Reads asks for a helper that answers Read and nothing else, anyone who dispatches the
	// run or has. Of the rest only Version, Run, Host and WorkDir count.
	Reads bool
	// Standby asks for a standby dispatcher of the run in RunDir, which the helper starts in
	// the background. Then the helper ends. Of the rest only Version, Run, Host, Nonce,
	// WorkDir and Env count; Env is added to the environment of the standby.
	Standby bool
}

// Ping keeps the helper alive and extends the lease: until LeaseUptime (in the
// host's own boot clock) a buffered job may still start without us.
type Ping struct {
	Seq         int64
	LeaseUptime time.Duration
}

// Launch hands over attempts, in the order in which they shall start. The
// helper refuses the batch when its clock is past ExpireUptime or Epoch is not
// the highest it knows. Repeats of an attempt it has are acknowledged, not run.
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
	Restart int            `json:"r,omitempty"` // how many attempts of the job ran before it in this round
	Mem     int64          `json:"m,omitempty"` // it is ended when it uses more bytes; 0: no limit
	GPUs    []int          `json:"g,omitempty"` // numbers of its devices
	HalfGPU bool           `json:"h,omitempty"` // half of each
	Files   *JobFiles      `json:"f,omitempty"` // nil: it runs in Cwd, as it is
}

// JobFiles reports that an attempt runs in a directory of its own. Cwd is relative to that
// unless it is absolute.
type JobFiles struct {
	Own    bool     `json:"o,omitempty"` // it gets files that others do not get: see Want
	Return []string `json:"r,omitempty"` // patterns of what it returns
}

// Limit describes how many slots may be busy at once from now on (others' load,
// drain, pause): supervisors beyond it take no new job. 0 takes none at all.
type Limit struct{ Slots int }

// Share describes what the run wants of a host that others use, too.
type Share struct {
	Slots  int // that there are for all who share the host
	Want   int // that the run would use of them
	Weight int // of the run among the runs of its user; 0: it does not share
}

// Withdraw takes back buffered attempts. Each is answered in Withdrawn.
type Withdraw struct {
	Epoch    int
	Attempts []jobs.AttemptID
}

// Kill ends running attempts (and withdraws buffered ones): TERM, grace, KILL,
// repeated until none of their processes is left. Each ends in an Exits or Withdrawn
// report; what cannot be ended is named in a Trouble.
type Kill struct {
	Epoch    int
	Attempts []jobs.AttemptID
	Why      string
	Warn     bool // only the warning signal of Open is sent; the attempts continue
}

// Probe asks what is known of attempts. Each is answered in Probed.
type Probe struct {
	Epoch    int
	Attempts []jobs.AttemptID
}

// Look asks what the directory of this host's attempts shows of attempts that
// another host has and that cannot be asked now. Answered by one Looked.
type Look struct {
	Host     string // whose they are
	Attempts []jobs.AttemptID
}

// List asks for the attempts that this host has of the given jobs, and for all that are
// in its spool. Without Jobs it asks for every attempt of the run that the host has
// anything of: if records of the journal are missing, only the hosts know of those
// attempts.
type List struct {
	Epoch int
	Jobs  jobs.Ranges // none: all
}

// Read asks for a piece of an attempt's output file. Answered by Chunk.
type Read struct {
	ID      int64
	Attempt jobs.AttemptID
	File    jobs.File // FileOut, FileErr, FileStatus, or FileReturned
	Path    string    // FileReturned: below the directory of the attempt; "": the manifest of what it returns
	Offset  int64     // negative: counted from the end
	Limit   int       // bytes, at most MaxChunk
}

// MaxChunk is the largest Bulk of a Chunk.
const MaxChunk = 256 << 10

// FileReturned is what an attempt returns (Read).
const FileReturned jobs.File = "returned"

// Resend reports that the files which every job gets may have changed: the helper asks for
// their manifest again. Jobs that are launched later start with what is new.
type Resend struct{}

// Piece answers a Want.
type Piece struct {
	ID   int64
	Size int64  // of the whole
	Why  string // why it cannot be had; "" if Bulk is it
	Bulk []byte `json:"-"`
}

// Returned reports that the outcomes of attempts and the files that they return are durable:
// the host may remove their directories.
type Returned struct{ Attempts []jobs.AttemptID }

// Bye ends the channel. With End the run is over on this host: children that
// jobs left behind are ended (unless KeepChildren), the spool is removed.
type Bye struct{ End bool }

// ---- host to dispatcher ----

// Hello is the helper's first message.
type Hello struct {
	Version  int
	Machine  string // random, made by the first helper of the run on this machine; "": not known
	BootID   string
	Uptime   time.Duration // CLOCK_BOOTTIME
	OS, Arch string
	Cores    int
	MemBytes int64
	GPUs     int
	// GPUIDs are the numbers of the GPUs, in their order; nil: 0, 1 … GPUs-1.
	GPUIDs []int
	// LockedGPUs are the devices that jobs of any run or user hold, HalfGPUs those of
	// which half is free.
	LockedGPUs, HalfGPUs []int
	Sharing              *Sharing // as of Beat, if the run wanted all slots
	Owner                Owner
	Slots                int // as the rule of Open gives for this host
	Shared               bool
	Dir                  string // directory that holds attempts/: the run directory, or below work_dir
	Spool                string
	FencedBy             int      // a higher epoch that this host knows; 0: none. If set, the helper does nothing.
	Warnings             []string // one line each
	PID                  int
	CwdError             string // Open.Cwd does not exist here
	WallClock            jobs.Stamp
	// ZoneSeconds is how far the host's local time is ahead of UTC (east is positive) at
	// the time of the hello: quiet hours count in it.
	ZoneSeconds int
	Error       string // why this host cannot run jobs (work_dir missing, not writable, full …); the helper then ends
	Receives    bool   // files that every job gets are not there yet: no job may be launched before a Beat without Receives
	Passing     bool   // Error is of a kind that passes (full, quota, read-only, stale handle, I/O error): worth another try
}

// Owner describes who or what asks that a host is left alone.
type Owner struct {
	Who     string // in words; "": nobody
	Suspend bool   // running jobs are suspended
}

// Beat is sent every 3 s, whatever the file systems do, and once at once after
// the hello: that one is Early.
type Beat struct {
	Early    bool  `json:",omitempty"` // the first: Busy and Ours are of a moment in which the helper itself was starting
	Seq      int64 // of the newest Ping seen
	Uptime   time.Duration
	Load     [3]float64
	Busy     float64 // cores busy, all users, since the last beat
	Ours     float64 // cores busy with our jobs, since the last beat
	MemFree  int64   // bytes available; -1: unknown
	DiskFree int64   // bytes, where attempts are written; -1: not known in time
	FSDelay  time.Duration
	Running  int
	Buffered int
	// LockedGPUs are the devices that jobs of any run or user, ours included, or other
	// processes use, HalfGPUs those of which half is free.
	LockedGPUs []int              `json:",omitempty"`
	HalfGPUs   []int              `json:",omitempty"`
	Sharing    *Sharing           `json:",omitempty"` // nil: nobody else shares the host
	Owner      Owner              `json:",omitzero"`
	Suspended  time.Duration      `json:",omitempty"` // for how long jobs of the run have been suspended on this host, in all
	Receives   bool               `json:",omitempty"` // files that every job gets are not there yet
	Files      string             `json:",omitempty"` // what it receives of files, in words; "": nothing
	Progress   map[string]string  `json:",omitempty"` // attempt id: what its job wrote to DCS_PROGRESS, at most 64 bytes
	Cores      map[string]float64 `json:",omitempty"` // attempt id: cores that it has used since the last beat, of those that used more than one
	// Reports are the lines that jobs have appended to DCS_REPORT since the last heartbeat, by
	// attempt id; of many lines the last ones.
	Reports map[string]string `json:",omitempty"`
}

// Sharing is what other runs and users leave of a host, and who uses what there.
type Sharing struct {
	Slots  int   // that our run may use now
	Held   int   // that other runs hold
	Memory int64 `json:",omitempty"` // bytes that jobs of other runs may use
	Users  []SharedUser
}

// MaxSharedUsers bounds Sharing.Users.
const MaxSharedUsers = 32

// SharedUser is what a user has on a host.
type SharedUser struct {
	Name   string
	Slots  int
	Want   int      `json:",omitempty"` // slots, those that it has included
	Memory int64    `json:",omitempty"` // bytes
	GPUs   []int    `json:",omitempty"`
	Runs   []string `json:",omitempty"`
}

// Started reports attempts that began to run.
type Started struct{ Jobs []StartedJob }

// StartedJob is one of them.
type StartedJob struct {
	Attempt jobs.AttemptID `json:"a"`
	Slot    int            `json:"s"` // 1 … slots
	At      jobs.Stamp     `json:"t"`
}

// Exits reports attempts that are over. Repeats are possible.
type Exits struct{ Jobs []ExitedJob }

// ExitedJob is one of them.
type ExitedJob struct {
	Attempt jobs.AttemptID `json:"a"`
	Slot    int            `json:"s,omitempty"`
	Outcome jobs.Outcome   `json:"o"`
}

// Withdrawn reports attempts that will never start here: each was taken back
// from the spool, or its claim was made by us as a tombstone.
type Withdrawn struct {
	Attempts []jobs.AttemptID
	Why      string
}

// Refused reports attempts of a Launch that were not accepted and will never
// start here (expired, fenced, spool full). Infrastructure, not the job's fault.
// With FencedBy it also answers a Kill, Withdraw or Probe that was not carried
// out, and comes without attempts before a helper that is shut out leaves: then
// it says nothing about the attempts, only that this dispatcher is fenced.
type Refused struct {
	Attempts []jobs.AttemptID
	Why      string
	FencedBy int // the higher epoch, 0 if that is not the reason
	// GPUs are the devices of the attempts that other runs or users hold, if that is the reason.
	GPUs []int
}

// Answer is what a Probe found.
type Answer uint8

// The answers. "Never started" is given only after the prober has itself made
// the claim; "dead" only on proof: claimed, no sentinel, process gone or host rebooted.
const (
	Unknown Answer = iota // could not be found out now: a state, not an error
	Buffered
	IsRunning
	HasExited // Outcome is set
	NeverStarted
	Dead
)

var answerNames = [...]string{"unknown", "buffered", "running", "exited", "never started", "dead"}

// String names the answer.
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

// Looked answers a Look.
type Looked struct {
	Host  string
	Jobs  []ExitedJob      // those whose whole sentinel is there
	Runs  []jobs.AttemptID // those without one that the host has claimed: they have started, or are just about to
	Never []jobs.AttemptID // those with a tombstone: they will never start. Of the others nothing is known.
	Beat  string           // content of the host's heartbeat file: that it changes is what counts; "" if none is shown
	Why   string           // why the directory could not be read in whole; "" if it could
}

// Listed answers a List: what a Probe would find of each attempt.
type Listed struct {
	Jobs []ProbedJob
	Last bool   // no further piece follows
	All  bool   // on the last piece: it lists every job
	Why  string // why the list may not be whole; "" if it is
}

// Want asks for a manifest of package files, or for a piece of a content that stands in
// one. Answered by Piece.
type Want struct {
	ID      int64
	Attempt jobs.AttemptID // whose manifest; zero: of what every job gets
	Sum     string         // of the content; "": a manifest is wanted
	Offset  int64
	Limit   int // bytes, at most MaxChunk
}

// Trouble is a line for people: what is wrong on this host. Attempt is zero
// when it concerns the host as a whole.
type Trouble struct {
	Attempt jobs.AttemptID
	Text    string
	Fatal   bool // the helper cannot continue
}

// Chunk answers a Read. Size is the file's size now; -1 with Why when it
// cannot be read.
type Chunk struct {
	ID     int64
	Offset int64
	Size   int64
	Why    string
	None   bool   // Why says that there is no such file
	Bulk   []byte `json:"-"`
}

// Word implementations: the frame's word.
func (Open) Word() string      { return "open" }
func (Ping) Word() string      { return "ping" }
func (Launch) Word() string    { return "launch" }
func (Limit) Word() string     { return "limit" }
func (Share) Word() string     { return "share" }
func (Withdraw) Word() string  { return "withdraw" }
func (Kill) Word() string      { return "kill" }
func (Probe) Word() string     { return "probe" }
func (Look) Word() string      { return "look" }
func (List) Word() string      { return "list" }
func (Read) Word() string      { return "read" }
func (Bye) Word() string       { return "bye" }
func (Hello) Word() string     { return "hello" }
func (Beat) Word() string      { return "beat" }
func (Started) Word() string   { return "started" }
func (Exits) Word() string     { return "exits" }
func (Withdrawn) Word() string { return "withdrawn" }
func (Refused) Word() string   { return "refused" }
func (Probed) Word() string    { return "probed" }
func (Looked) Word() string    { return "looked" }
func (Listed) Word() string    { return "listed" }
func (Trouble) Word() string   { return "trouble" }
func (Chunk) Word() string     { return "chunk" }
func (Want) Word() string      { return "want" }
func (Piece) Word() string     { return "piece" }
func (Resend) Word() string    { return "resend" }
func (Returned) Word() string  { return "returned" }
