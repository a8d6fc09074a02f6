package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Receiver writes a mirror. It is not safe for concurrent use, but several receivers may have the
// same mirror open, because the sender connects again before an old link has ended.
type Receiver struct {
	Disk rundir.Disk
	Dir  string
	hosts.OpenMirror
	Lock    func(dir string) (unlock func(), err error)
	Start   func() error // starts a standby that watches the mirror
	Watched func() bool  // reports whether a standby watches it
}

// PrefixDir begins the name of a mirror, in the run's directory below work_dir. The generation
// follows.
const PrefixDir = "mirror."

// Begin creates the mirror, or checks that it is there if it exists.
func (r *Receiver) Begin() error {
	if r.Exists {
		if _, err := describe(r.Disk, r.Dir); err != nil {
			return fmt.Errorf("the mirror in %s cannot be used: %w", r.Dir, err)
		}
		return nil
	}
	for _, dir := range []string{"", rundir.JournalDir, rundir.AttemptsDir, rundir.HostsDir} {
		if err := r.Disk.Mkdir(filepath.Join(r.Dir, dir), 0o700); err != nil {
			return err
		}
	}
	d := Description{V: jobs.FormatMirror.Version, Generation: r.Generation, Mirror: true, Dir: r.Dir}
	if err := d.write(r.Disk, r.Dir, Copying); err != nil {
		return err
	}
	return r.Disk.SyncDir(filepath.Dir(r.Dir))
}

// Store carries m out.
func (r *Receiver) Store(m *hosts.Store) *hosts.Stored {
	s := &hosts.Stored{ID: m.ID}
	err := r.store(m, s)
	if err == nil && m.Check && s.FencedBy == 0 {
		s.Watched = r.Watched()
	}
	if err == nil && m.Describe != nil && s.FencedBy == 0 && !r.Watched() {
		if e := r.Start(); e != nil {
			s.NoStandby = e.Error()
		} else {
			s.Watched = true
		}
	}
	if err != nil {
		s.Why = err.Error()
	}
	return s
}

func (r *Receiver) store(m *hosts.Store, s *hosts.Stored) error {
	// A takeover changes the state under the same lock. So what is acknowledged was there before
	// it.
	unlock, err := r.Lock(r.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	d, err := describe(r.Disk, r.Dir)
	if err != nil {
		return fmt.Errorf("the mirror in %s cannot be used: %w", r.Dir, err)
	}
	newest, err := r.newestEpoch()
	if err != nil && d.State != Removed {
		return err
	}
	// The directory of a run that was taken over describes a mirror of its own later.
	if d.State == Taken || !d.Mirror || d.Generation != r.Generation {
		s.FencedBy = max(newest, r.Epoch+1)
		return nil
	}
	if newest > r.Epoch {
		s.FencedBy = newest
		return nil
	}
	s.Asking = d.State == Asking
	switch {
	case m.Remove:
		return r.remove(d)
	case d.State == Removed:
		return errors.New("the mirror was removed")
	}
	made := map[string]bool{} // directories with new files
	for i := range m.Pieces {
		if err := r.writePiece(&m.Pieces[i], made); err != nil {
			return err
		}
	}
	for dir := range made {
		if err := r.Disk.SyncDir(dir); err != nil {
			return err
		}
	}
	if m.Describe == nil || d.State == Asking {
		return nil
	}
	armed, err := parse(m.Describe)
	if err != nil {
		return err
	}
	armed.Mirror = true
	return armed.write(r.Disk, r.Dir, On)
}

// writePiece writes one piece durably.
func (r *Receiver) writePiece(p *hosts.StorePiece, made map[string]bool) (err error) {
	dir, base := filepath.Split(p.Name)
	dir = filepath.Clean(dir)
	if !filepath.IsLocal(p.Name) || base == File || base == lockFile ||
		dir != "." && dir != rundir.JournalDir && dir != rundir.HostsDir {
		return fmt.Errorf("a mirror has no file %.100q", p.Name)
	}
	path := filepath.Join(r.Dir, p.Name)
	if p.Offset == hosts.WholeFile {
		return rundir.Replace(r.Disk, path, p.Bulk)
	}
	f, err := r.Disk.OpenFile(path, os.O_RDWR, 0)
	if p.Offset == 0 { // its name may not be durable
		made[filepath.Dir(path)] = true
	}
	if errors.Is(err, fs.ErrNotExist) {
		f, err = r.Disk.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size < p.Offset {
		return fmt.Errorf("%s has lost its end: %d bytes of %d are there", p.Name, size, p.Offset)
	}
	if _, err := f.WriteAt(p.Bulk, p.Offset); err != nil {
		return err
	}
	return f.Sync()
}

// IsStale reports whether dir holds a mirror that was never taken over. A dispatcher that begins
// another one does not depend on it.
func IsStale(disk rundir.Disk, dir string) bool {
	d, err := describe(disk, dir)
	return err == nil && d.Mirror && d.State != Taken
}

// newestEpoch returns the newest epoch of the journal in the mirror.
func (r *Receiver) newestEpoch() (newest int, err error) {
	names, err := r.Disk.Names(filepath.Join(r.Dir, rundir.JournalDir))
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, ".jsonl")
		if n, err := strconv.Atoi(digits); ok && err == nil {
			newest = max(newest, n)
		}
	}
	return newest, err
}

// remove removes the mirror but for its description. That stays for a dispatcher that does not
// learn that the mirror is removed, and asks again.
func (r *Receiver) remove(d *Description) error {
	if d.State != Removed {
		if err := d.write(r.Disk, r.Dir, Removed); err != nil {
			return err
		}
	}
	for _, dir := range []string{rundir.JournalDir, rundir.AttemptsDir, rundir.HostsDir, ""} {
		names, _ := r.Disk.Names(filepath.Join(r.Dir, dir))
		for _, name := range names {
			if name != File && name != lockFile {
				_ = r.Disk.Remove(filepath.Join(r.Dir, dir, name)) // what stays is harmless
			}
		}
		if dir != "" {
			_ = r.Disk.Remove(filepath.Join(r.Dir, dir))
		}
	}
	return nil
}
