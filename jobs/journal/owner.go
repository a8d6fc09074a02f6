package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"dcs-tui/internal/account"
	"dcs-tui/internal/platform"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// The intervals of the owner's heartbeats.
const (
	HeartbeatInterval = 10 * time.Second // interval at which the owner calls Heartbeat
	// Time without a new heartbeat, by the reader's clock, after which an owner is silent.
	StaleAfter = 30 * time.Second
)

// Owner is the content of the owner file: who dispatches a run. Its times are by the owner's clock
// and only for display, because no decision compares the clocks of two machines.
type Owner struct {
	V    int    `json:"v"`
	Host string `json:"host"`
	User string `json:"user"`
	process
	Epoch int       `json:"epoch"`
	Since time.Time `json:"since"`
	// Path of the socket (see dispatch/socket), on Host.
	Socket    string `json:"socket,omitempty"`
	Program   string `json:"program,omitempty"` // the path of its executable, on Host
	Token     string `json:"token"`             // random, one for each Take
	Heartbeat int64  `json:"beat"`              // number, which increases; programs of other versions read it, too
	Left      bool   `json:"left,omitempty"`    // the dispatcher ended in an orderly way
	// What keeps it from launching, for people; "": nothing.
	Problem string `json:"problem,omitempty"`

	Known int `json:"known,omitempty"` // a later epoch that a host has reported (see SkipTo)

	// The fields below record what was durable at this heartbeat, and where. A successor that finds
	// less, or another directory, knows that records may be missing (see checkOwner).
	File   int    `json:"file,omitempty"`   // epoch of the journal file that was synced last
	Bytes  int64  `json:"bytes,omitempty"`  // its durable length
	Sum    uint32 `json:"sum,omitempty"`    // CRC-32C of these bytes
	Inode  uint64 `json:"inode,omitempty"`  // of the run directory; 0: unknown
	Device uint64 `json:"device,omitempty"` // of the run directory, within this boot; 0: unknown
}

// maxProblem bounds Owner.Problem, in characters.
const maxProblem = 300

// ownerBytes is the exact size of the file, so that a heartbeat can overwrite it in place.
const ownerBytes = 1536

// Liveness reports whether the owner's process is alive, as far as this machine can prove. It is
// Dead for nil.
func (o *Owner) Liveness() Liveness {
	if o == nil || o.Left {
		return Dead
	}
	return o.process.liveness()
}

// String describes the owner in messages.
func (o *Owner) String() string {
	return fmt.Sprintf("dcs-tui of %s on %s (pid %d, since %s)", o.User, o.Host, o.PID,
		o.Since.Format("2006-01-02 15:04:05"))
}

// ownerOfThisProcess returns an Owner with the fields that identify this process.
func ownerOfThisProcess() (*Owner, error) {
	me, err := self()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cannot read this machine's name: %w", err)
	}
	program, _ := os.Executable() // on an error, the program in PATH is used
	return &Owner{Host: host, User: account.Current().Name, Program: program, process: me}, nil
}

func (o *Owner) encode() ([]byte, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	room := ownerBytes - len(b) - 10
	if room < 0 && (o.Problem != "" || o.Program != "") {
		short := *o
		short.Problem = ""
		if o.Problem == "" {
			short.Program = ""
		}
		return short.encode()
	}
	if room < 0 {
		return nil, errors.New("the names of machine, user and socket are too long for the file owner")
	}
	b = append(b, bytes.Repeat([]byte{' '}, room+1)...)
	return append(b, jobs.Checksum(b)+"\n"...), nil
}

var errOwnerTorn = errors.New("not a whole owner file")

func decodeOwner(b []byte) (*Owner, error) {
	if len(b) != ownerBytes {
		return nil, fmt.Errorf("%w: %d bytes", errOwnerTorn, len(b))
	}
	text, sum := b[:len(b)-9], b[len(b)-9:]
	if string(sum) != jobs.Checksum(text)+"\n" {
		return nil, fmt.Errorf("%w: wrong checksum", errOwnerTorn)
	}
	o := new(Owner)
	if err := json.Unmarshal(text, o); err != nil {
		return nil, fmt.Errorf("%w: %v", errOwnerTorn, err)
	}
	if err := jobs.FormatOwner.Check(o.V); err != nil {
		return nil, err
	}
	return o, nil
}

// ReadOwner returns the owner of the run, or the last one if nobody dispatches it now. It returns
// nil if nobody ever did.
func ReadOwner(r *rundir.Run) (*Owner, error) {
	b, err := ownerContent(r)
	if err != nil || b == nil {
		return nil, err
	}
	o, err := decodeOwner(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path(rundir.OwnerFile), err)
	}
	return o, nil
}

// ownerContent returns the content of the file, or nil if the directory does not list it.
func ownerContent(r *rundir.Run) ([]byte, error) {
	b, err := r.ReadListed(rundir.OwnerFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read who owns the run %s: %w", r.Name(), err)
	}
	return b, nil
}

// IsStopped reports whether the owner is a process of this machine that is stopped (Ctrl-Z,
// SIGSTOP) and does nothing until SIGCONT.
func (o *Owner) IsStopped() bool {
	if o.Liveness() != Alive {
		return false
	}
	p, err := platform.FindProcess(o.PID)
	return err == nil && p.Stopped
}

// preparedPrefix begins the name of an owner file that is not installed yet; the
// epoch follows.
const preparedPrefix = "." + rundir.OwnerFile + "."

// ownerWriter writes the heartbeats of the owner. They are written in place, into the file that
// Take renamed to owner. An old dispatcher that wakes up therefore writes to a file that has no
// name any more, and cannot claim the run back.
type ownerWriter struct {
	mu    sync.Mutex
	run   *rundir.Run
	owner Owner
	f     rundir.File // nil: must be opened again
	named bool        // f has been made the file owner
}

// prepare writes the new owner's file under another name, so that a full disk stops a Take
// before it has changed anything.
func (b *ownerWriter) prepare() (tmp string, err error) {
	content, err := b.owner.encode()
	if err != nil {
		return "", err
	}
	tmp = b.run.Path(fmt.Sprintf("%s%d.%s.%d", preparedPrefix, b.owner.Epoch, b.owner.Token, b.owner.Heartbeat))
	b.f, err = b.run.Disk.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = b.f.WriteAt(content, 0); err == nil {
		err = b.f.Sync()
	}
	if err != nil {
		return "", errors.Join(err, b.close(), b.run.Disk.Remove(tmp))
	}
	return tmp, nil
}

// install renames the prepared file to owner.
func (b *ownerWriter) install(tmp string) error {
	if err := b.run.Disk.Rename(tmp, b.run.Path(rundir.OwnerFile)); err != nil {
		return err
	}
	b.named = true
	return b.run.Disk.SyncDir(b.run.Dir)
}

func (b *ownerWriter) close() error {
	if b.f == nil {
		return nil
	}
	err := b.f.Close()
	b.f = nil
	return err
}

// heartbeat writes the next heartbeat. After a failure, the next call opens the file again, because
// a stale handle does not recover.
func (b *ownerWriter) heartbeat(change func(*Owner)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.owner
	next.Heartbeat++
	change(&next)
	content, err := next.encode()
	if err != nil {
		return err
	}
	if err := b.checkName(); err != nil {
		return fmt.Errorf("cannot write the owner's heartbeat: %w", err)
	}
	if b.f == nil {
		if err := b.reopen(); err != nil {
			return fmt.Errorf("cannot write the owner's heartbeat: %w", err)
		}
	}
	b.owner = next // even if the write fails, so that no number is used twice
	if err = b.write(content); err != nil {
		return fmt.Errorf("cannot write the owner's heartbeat: %w", errors.Join(err, b.close()))
	}
	return nil
}

// write replaces the content of the file, and truncates it if damage has made it longer.
func (b *ownerWriter) write(content []byte) error {
	if _, err := b.f.WriteAt(content, 0); err != nil {
		return err
	}
	size, err := b.f.Size()
	if err == nil && size > ownerBytes {
		err = b.f.Truncate(ownerBytes)
	}
	if err != nil {
		return err
	}
	return b.f.Sync()
}

// checkName closes the file if it is not the file owner any more, because a Take that was
// overtaken has installed its own file late.
func (b *ownerWriter) checkName() error {
	if b.f == nil || !b.named {
		return nil
	}
	now, err := readOwnerFile(b.run)
	if err != nil || now.owner != nil && now.owner.Token == b.owner.Token || now.content != nil && now.owner == nil {
		return err // ours, or torn: the next heartbeat writes it again
	}
	return b.close()
}

// reopen opens the owner file if it is still ours. It creates the file again if a person has
// removed it, or if the file of an earlier epoch has replaced it.
func (b *ownerWriter) reopen() error {
	now, err := readOwnerFile(b.run)
	switch {
	case err != nil:
		return err
	case now.content == nil, now.owner != nil && now.owner.Epoch < b.owner.Epoch:
		tmp, err := b.prepare()
		if err != nil {
			return err
		}
		return b.install(tmp)
	case now.owner != nil && now.owner.Token != b.owner.Token:
		return fmt.Errorf("%w: %s has it", ErrFenced, now.owner)
	}
	// Torn content may be a heartbeat of ours that failed halfway.
	b.f, err = b.run.Disk.OpenFile(b.run.Path(rundir.OwnerFile), os.O_RDWR, 0)
	return err
}

// process identifies a process of a machine by pid and start time, within one boot and one pid
// namespace. Containers share the boot id but not the pids.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // Linux: field 22 of /proc/PID/stat, clock ticks since boot
	Boot  string `json:"boot"`
	PIDNS string `json:"pidns"`
}

// self returns the identity of the calling process.
func self() (process, error) {
	boot, err := platform.BootID()
	if err != nil {
		return process{}, fmt.Errorf("cannot read this machine's boot id: %w", err)
	}
	ns, err := platform.PIDNamespace()
	if err != nil {
		return process{}, fmt.Errorf("cannot read this process's pid namespace: %w", err)
	}
	pid := os.Getpid()
	me, err := platform.FindProcess(pid)
	if err != nil && !errors.Is(err, platform.ErrHidden) {
		return process{}, fmt.Errorf("cannot read this process's start time: %w", err)
	}
	return process{pid, me.Start, boot, ns}, nil
}

// Liveness tells whether the process of an owner is alive.
type Liveness uint8

// The values of Liveness.
const (
	Unsure Liveness = iota // the process is on another machine: only heartbeats can tell
	Alive
	Dead
)

// liveness returns what this machine can prove about q.
func (q process) liveness() Liveness {
	me, err := self()
	if err != nil || q.Boot != me.Boot || q.PIDNS != me.PIDNS || q.PID <= 0 {
		return Unsure
	}
	now, err := platform.FindProcess(q.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return Dead
	case err != nil:
		return Unsure
	case now.Start != q.Start || now.Ended:
		return Dead
	}
	return Alive
}
