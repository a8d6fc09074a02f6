// Package runindex is the list of a user's runs in all directories. It lets commands show runs that
// were started in other directories than the present one.
//
// Each run has a small file in the user's state directory. A file is written under another name and
// renamed, and never changed, so programs on several machines that share the home directory do not
// disturb each other. No run depends on the index: callers ignore its errors.
package runindex

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"dcs-tui/internal/account"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

const (
	// forgetAfter is how long an entry is kept whose run directory is not visible, if it is not proved
	// that the directory was deleted: its file system may not be mounted.
	forgetAfter = 90 * 24 * time.Hour
	// touchInterval is how often an entry is marked as seen.
	touchInterval = 24 * time.Hour
	// maxEntry bounds the size of a file.
	maxEntry = 64 << 10
	// newPrefix begins the name of a file that is being written.
	newPrefix = ".new-"
)

// Index is the index of a user. The zero Index is empty and cannot be added to. An Index is safe for
// concurrent use.
type Index struct {
	dir     string
	machine string // name of this machine
}

// OfUser returns the index in the user's state directory: $XDG_STATE_HOME if it is absolute, else
// ~/.local/state.
func OfUser() Index {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := account.Home()
		if err != nil {
			return Index{}
		}
		state = filepath.Join(home, ".local", "state")
	}
	machine, _ := os.Hostname()
	return Index{dir: filepath.Join(state, "dcs-tui", "runs"), machine: machine}
}

var errNoHome = errors.New("there is no home directory")

// Entry is a run in the index.
type Entry struct {
	name string // of its file
	UID  string
	content
}

// content is the content of the file of a run.
type content struct {
	V       int    `json:"v"` // of jobs.FormatRunIndex
	Dir     string `json:"dir"`
	Machine string `json:"machine"` // on which it was dispatched last
	// Inodes of the directories above Dir, the nearest first; 0: unknown. They prove that a directory
	// was deleted: the place where a file system was mounted has another one.
	Inodes []uint64 `json:"inodes"`
}

// timeLayout is the layout of the time in the name of a file, in UTC.
const timeLayout = "20060102T150405Z"

// Made returns the time when the run was created.
func (e *Entry) Made() time.Time {
	at, _ := time.Parse(timeLayout, e.name[:len(timeLayout)]) // read has checked it
	return at
}

// entryName matches the name of a file: the time when the run was created, its id, and a hash of its
// directory, because a copied run has the same id.
var entryName = regexp.MustCompile(`^\d{8}T\d{6}Z\.([a-z0-9]{1,40})\.[0-9a-f]{16}$`)

func nameOf(run *rundir.Run) (string, error) {
	hash := sha256.Sum256([]byte(run.Dir))
	name := run.Settings.Created.UTC().Format(timeLayout) + "." + run.UID() + "." + hex.EncodeToString(hash[:8])
	if !entryName.MatchString(name) || !utf8.ValidString(run.Dir) { // JSON cannot hold another path
		return "", fmt.Errorf("a run in %q cannot be indexed", run.Dir)
	}
	return name, nil
}

// Add adds a run, or renews its entry.
func (x Index) Add(run *rundir.Run) error {
	name, err := nameOf(run)
	if err != nil {
		return err
	}
	if err := x.makeDir(); err != nil {
		return err
	}
	c := content{V: jobs.FormatRunIndex.Version, Dir: run.Dir, Machine: x.machine}
	for dir := range parents(run.Dir) {
		c.Inodes = append(c.Inodes, inodeOf(dir))
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	unique := filepath.Join(x.dir, newPrefix+rand.Text())
	return rundir.ReplaceVolatile(rundir.OS, filepath.Join(x.dir, name), unique, append(text, '\n'), nil)
}

// makeDir creates the directory of the index. Root creates none for another user, whose programs
// could not write there.
func (x Index) makeDir() error {
	if x.dir == "" {
		return errNoHome
	}
	for dir := x.dir; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && st.Uid != 0 {
			return fmt.Errorf("%s belongs to another user", dir)
		}
		return os.MkdirAll(x.dir, 0o700)
	}
}

// Remove removes the entry of a run.
func (x Index) Remove(run *rundir.Run) error {
	name, err := nameOf(run)
	if err != nil || x.dir == "" {
		return err
	}
	return os.Remove(filepath.Join(x.dir, name))
}

// Entries returns the newest entries, at most limit, the newest first. It does not look at the
// directories of the runs. Entries that cannot be read, such as those of a newer version, are left
// out.
func (x Index) Entries(limit int) ([]*Entry, error) {
	if x.dir == "" {
		return nil, errNoHome
	}
	names, err := rundir.OS.Names(x.dir)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(b, a) })
	var list []*Entry
	for _, name := range names {
		if len(list) == limit {
			break
		}
		if e, err := x.read(name); err == nil {
			list = append(list, e)
		} else if strings.HasPrefix(name, newPrefix) && x.age(name) > touchInterval { // its program was killed
			_ = os.Remove(filepath.Join(x.dir, name))
		}
	}
	return list, nil
}

func (x Index) read(name string) (*Entry, error) {
	m := entryName.FindStringSubmatch(name)
	if m == nil {
		return nil, fmt.Errorf("%s is not the name of an entry", name)
	}
	text, _, err := rundir.ReadPart(rundir.OS, filepath.Join(x.dir, name), 0, maxEntry)
	if err != nil {
		return nil, err
	}
	e := &Entry{name: name, UID: m[1]}
	if err := json.Unmarshal(text, &e.content); err != nil {
		return nil, err
	}
	if err := jobs.FormatRunIndex.Check(e.V); err != nil {
		return nil, err
	}
	if _, err := time.Parse(timeLayout, name[:len(timeLayout)]); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(e.Dir) || filepath.Clean(e.Dir) != e.Dir {
		return nil, fmt.Errorf("%q is not the path of a run", e.Dir)
	}
	return e, nil
}

// age returns how long ago an entry was written or seen; 0 if that is not known.
func (x Index) age(name string) time.Duration {
	info, err := os.Stat(filepath.Join(x.dir, name))
	if err != nil {
		return 0
	}
	return time.Since(info.ModTime())
}

// Look looks at the directory of a run, which may hang. isVisible reports whether the run is there
// now. If not, Look removes the entry if the directory was certainly deleted, or was not seen for
// forgetAfter; isForgotten reports that.
func (x Index) Look(e *Entry) (run rundir.Entry, isVisible, isForgotten bool) {
	run, isVisible = rundir.EntryAt(e.Dir)
	age := x.age(e.name)
	switch {
	case isVisible && age > touchInterval:
		now := time.Now()
		_ = os.Chtimes(filepath.Join(x.dir, e.name), now, now) // it is touched at the next look
	case isVisible:
	case x.wasDeleted(e), age > forgetAfter:
		_ = os.Remove(filepath.Join(x.dir, e.name)) // it is forgotten at the next look
		isForgotten = true
	}
	return run, isVisible, isForgotten
}

// wasDeleted reports whether the run directory, or one above it, was certainly deleted or moved. The
// proof is the nearest directory that is left: it has the same inode as when the run began, and does
// not list the next one. Only the machine of the run can prove it, because another one may have
// another file system there.
func (x Index) wasDeleted(e *Entry) bool {
	if e.Machine != x.machine || x.machine == "" {
		return false
	}
	below, i := e.Dir, 0
	for dir := range parents(e.Dir) {
		if i == len(e.Inodes) {
			return false
		}
		inode := e.Inodes[i]
		if names, err := rundir.OS.Names(dir); err == nil {
			return inode != 0 && inodeOf(dir) == inode && !slices.Contains(names, filepath.Base(below))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		below, i = dir, i+1
	}
	return false
}

// parents iterates over the directories above a directory, the nearest first.
func parents(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for above := filepath.Dir(dir); above != dir && yield(above); above = filepath.Dir(dir) {
			dir = above
		}
	}
}

// inodeOf returns the inode of a directory, or 0 if it is unknown.
func inodeOf(dir string) uint64 {
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
