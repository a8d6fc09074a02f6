package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// File is the file of a run directory that describes its mirror, and of a mirror that describes
// what it is.
const File = "mirror.json"

// maxFile bounds the size of that file, in bytes.
const maxFile = 1 << 20

// The states of a mirror. Each of the two files has its own.
const (
	Copying = "copying" // mirror: not complete, cannot be taken over
	On      = "on"      // launches and results wait for the mirror; it may be taken over
	Asking  = "asking"  // mirror: its standby has asked for votes
	Taken   = "taken"   // mirror: its standby has taken the run over
	Removed = "removed" // mirror: its dispatcher does not need it, and nothing but this is left
	Alone   = "alone"   // run directory: the dispatcher continues without the mirror
)

// Description is the content of mirror.json.
type Description struct {
	V          int    `json:"v"`
	Generation string `json:"generation"`
	State      string `json:"state"`
	Mirror     bool   `json:"mirror,omitempty"`    // this directory is the mirror
	Continued  bool   `json:"continued,omitempty"` // this directory was a mirror before
	Host       string `json:"host"`                // the host of the mirror, as in the inventory
	Dir        string `json:"dir"`                 // of the mirror
	From       string `json:"from"`                // MACHINE:DIRECTORY of the mirrored run directory
	// Voters are the ids of the voters of this generation, sorted.
	Voters []string `json:"voters,omitempty"`
}

// Read reads the description in a run directory or a mirror. It returns nil if there is none.
func Read(r *rundir.Run) (*Description, error) {
	b, err := r.ReadPrivate(File, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what is known of the run's mirror: %w", err)
	}
	d, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path(File), err)
	}
	return d, nil
}

// Continues reports whether a run directory is a mirror that was taken over.
func Continues(r *rundir.Run) (bool, error) {
	d, err := Read(r)
	return d != nil && (d.Mirror || d.Continued), err
}

func parse(b []byte) (*Description, error) {
	d := new(Description)
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("the file is damaged: %w", err)
	}
	if err := jobs.FormatMirror.Check(d.V); err != nil {
		return nil, err
	}
	switch {
	case !isID(d.Generation) || !slices.Contains([]string{Copying, On, Asking, Taken, Removed, Alone}, d.State):
		return nil, fmt.Errorf("the file is damaged: generation %.40q, state %.40q", d.Generation, d.State)
	case !slices.IsSorted(d.Voters) || len(slices.Compact(slices.Clone(d.Voters))) != len(d.Voters) ||
		slices.ContainsFunc(d.Voters, func(id string) bool { return !isID(id) }):
		return nil, errors.New("the file is damaged: its voters are not a sorted list of ids")
	case len(d.Voters) == 0 && d.State != Copying && d.State != Removed:
		return nil, errors.New("the file is damaged: it names no voters")
	}
	return d, nil
}

// isID reports whether s may be a generation or the id of a voter: crypto/rand.Text.
func isID(s string) bool {
	return len(s) >= 16 && len(s) <= 64 &&
		!strings.ContainsFunc(s, func(c rune) bool { return (c < 'A' || c > 'Z') && (c < '0' || c > '9') })
}

// with returns the encoding of d in another state.
func (d Description) with(state string) []byte {
	d.State = state
	b, _ := json.MarshalIndent(d, "", "  ") // strings and numbers only
	return append(b, '\n')
}

// write makes state the durable state in dir.
func (d *Description) write(disk rundir.Disk, dir, state string) error {
	if err := rundir.Replace(disk, filepath.Join(dir, File), d.with(state)); err != nil {
		return fmt.Errorf("cannot record the state of the run's mirror: %w", err)
	}
	d.State = state
	return nil
}

// describe reads the description in a directory.
func describe(disk rundir.Disk, dir string) (*Description, error) {
	b, err := rundir.ReadFile(disk, filepath.Join(dir, File))
	if err != nil {
		return nil, err
	}
	return parse(b)
}

// lockFile is locked in a mirror while a piece is being stored, and while its state is changed.
const lockFile = ".lock"

// Lock locks the mirror in dir against other processes of this machine.
func Lock(dir string) (unlock func(), err error) {
	f, err := (&rundir.Run{Dir: dir}).OpenFile(os.O_RDWR|os.O_CREATE, lockFile)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the mirror: %w", err)
	}
	return func() { f.Close() }, nil
}
