package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs/rundir"
)

// The rhythm of ownership (DESIGN section 6).
const (
	BeatEvery  = 10 * time.Second // how often the owner calls Beat
	StaleAfter = 30 * time.Second // a beat unchanged for so long, as watched by us, is no sign of life
)

// Owner is the file owner: who dispatches a run. Its times are of the owner's
// clock and only for people: no decision compares clocks of two machines.
type Owner struct {
	V    int    `json:"v"`
	Host string `json:"host"`
	User string `json:"user"`
	process
	Epoch   int       `json:"epoch"`
	Since   time.Time `json:"since"`
	Socket  string    `json:"socket,omitempty"`  // path of the socket (see dispatch/socket), on Host
	Program string    `json:"program,omitempty"` // the path of its executable, on Host
	Token   string    `json:"token"`             // random, one for each Take
	Beat    int64     `json:"beat"`              // counts up
	Left    bool      `json:"left,omitempty"`    // it has gone of its own will
	Problem string    `json:"problem,omitempty"` // what keeps it from launching, for people; "": nothing

	Known int `json:"known,omitempty"` // a later epoch that a host has reported (see SkipTo)

	// The fields below say what was durable at this heartbeat, and where. A successor
	// that finds less, or another directory, knows that records may be missing (see
	// checkOwner).
	File   int    `json:"file,omitempty"`   // the epoch of the journal file; before the first sync an earlier one
	Bytes  int64  `json:"bytes,omitempty"`  // its length
	Sum    uint32 `json:"sum,omitempty"`    // CRC-32C of these bytes
	Inode  uint64 `json:"inode,omitempty"`  // of the run directory; 0: unknown
	Device uint64 `json:"device,omitempty"` // of the run directory, within this boot; 0: unknown
}

// maxProblem bounds Owner.Problem, in characters.
const maxProblem = 300

// ownerBytes is the exact size of the file, so that a beat overwrites it in place.
const ownerBytes = 1536

// Life says whether the owner's process lives, as far as this machine can prove. That of
// nobody, nil, is Dead.
func (o *Owner) Life() Life {
	if o == nil || o.Left {
		return Dead
	}
	return proc{"/proc"}.life(o.process)
}

// String names the owner in messages.
func (o *Owner) String() string {
	return fmt.Sprintf("dcs-tui of %s on %s (pid %d, since %s)", o.User, o.Host, o.PID, o.Since.Format("2006-01-02 15:04:05"))
}

// thisProcess returns an Owner with what names this process.
func thisProcess() (*Owner, error) {
	me, err := proc{"/proc"}.self()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cannot read this machine's name: %w", err)
	}
	name := fmt.Sprint(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	program, _ := os.Executable() // without it the one in PATH is taken
	return &Owner{Host: host, User: name, Program: program, process: me}, nil
}

func (o *Owner) encode() ([]byte, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	room := ownerBytes - len(b) - 10
	if room < 0 && (o.Problem != "" || o.Program != "") {
		short := *o
		if short.Problem = ""; o.Problem == "" {
			short.Program = ""
		}
		return short.encode()
	}
	if room < 0 {
		return nil, errors.New("the names of machine, user and socket are too long for the file owner")
	}
	b = append(b, bytes.Repeat([]byte{' '}, room+1)...)
	return fmt.Appendf(b, "%08x\n", crc32.Checksum(b, castagnoli)), nil
}

var errOwnerTorn = errors.New("not a whole owner file")

func decodeOwner(b []byte) (*Owner, error) {
	if len(b) != ownerBytes {
		return nil, fmt.Errorf("%w: %d bytes", errOwnerTorn, len(b))
	}
	text, sum := b[:len(b)-9], b[len(b)-9:]
	if string(sum) != fmt.Sprintf("%08x\n", crc32.Checksum(text, castagnoli)) {
		return nil, fmt.Errorf("%w: wrong checksum", errOwnerTorn)
	}
	o := new(Owner)
	if err := json.Unmarshal(text, o); err != nil {
		return nil, fmt.Errorf("%w: %v", errOwnerTorn, err)
	}
	if o.V != 1 {
		return nil, fmt.Errorf("the file owner has version %d, this program knows version 1: use the dcs-tui that wrote it", o.V)
	}
	return o, nil
}

// ReadOwner returns who dispatches the run, or did last; nil if nobody ever did.
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

// ownerContent returns the file's bytes, nil when the directory does not list it.
func ownerContent(r *rundir.Run) ([]byte, error) {
	names, err := r.Disk.Names(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	if !slices.Contains(names, rundir.OwnerFile) {
		return nil, nil
	}
	b, err := rundir.ReadFile(r.Disk, r.Path(rundir.OwnerFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read who owns the run %s: %w", r.Name(), err)
	}
	return b, nil
}

// Stopped reports whether the owner is a process of this machine that is stopped (Ctrl-Z,
// SIGSTOP): it does nothing until SIGCONT.
func (o *Owner) Stopped() bool {
	if o.Life() != Alive {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.PID))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b[max(0, strings.LastIndexByte(string(b), ')')):]), " ")
	return strings.HasPrefix(rest, "T")
}
