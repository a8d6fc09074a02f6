package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dcs-tui/hosts"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// pieceBytes bounds the bytes of a Store.
const pieceBytes = 1 << 20

// copier finds what the mirror of a run directory lacks. It knows what the mirror has made durable.
type copier struct {
	run        *rundir.Run
	journalLen func() int64 // durable length of the journal of our epoch
	journal    string       // its name
	sent       map[string]int64
	whole      map[string][]byte
	complete   map[string]bool // files of earlier epochs that the mirror has
}

func newCopier(run *rundir.Run, j Journal) *copier {
	return &copier{run: run, journalLen: j.Written,
		journal: filepath.Join(rundir.JournalDir, fmt.Sprintf("%06d.jsonl", j.Epoch())),
		sent:    map[string]int64{}, whole: map[string][]byte{}, complete: map[string]bool{}}
}

// wholeFiles are replaced as a whole when they change.
var wholeFiles = []string{
	rundir.FormatFile, rundir.SettingsFile, rundir.NonceFile, rundir.InventoryFile, rundir.InputFile,
}

// copy passes pieces to store until the mirror has everything that was durable before the call.
// With all it looks at all files, otherwise only at those in which a commit makes records durable.
func (c *copier) copy(all bool, store func([]hosts.StorePiece) error) error {
	var owner []byte
	if all {
		// The owner file records how much of the journal is durable, so the journal is read later.
		if o, err := journal.ReadOwner(c.run); err == nil && o != nil {
			if owner, err = rundir.ReadFile(c.run.Disk, c.run.Path(rundir.OwnerFile)); err != nil {
				return err
			}
		}
		if err := c.copyOthers(store); err != nil {
			return err
		}
	}
	// Records follow the specifications that they refer to.
	length := c.journalLen()
	specs, end := c.run.StoredEnd()
	if err := c.copyAppended(specs, end, store); err != nil {
		return err
	}
	if err := c.copyAppended(c.journal, length, store); err != nil {
		return err
	}
	if all && owner != nil {
		return c.replace(rundir.OwnerFile, owner, store)
	}
	return nil
}

// copyOthers copies the files that no commit changes. A job may have put others beside them.
func (c *copier) copyOthers(store func([]hosts.StorePiece) error) error {
	specs, err := c.run.SpecsFiles()
	records, marks, err2 := journal.Files(c.run)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	for _, name := range slices.Concat(specs, records) {
		if err := c.copyEarlier(name, store); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(wholeFiles, marks) {
		if b, err := c.run.ReadListed(name); err != nil {
			return err
		} else if b != nil {
			if err := c.replace(name, b, store); err != nil {
				return err
			}
		}
	}
	for host, dir := range c.run.HostDirs() {
		name := filepath.Join(rundir.HostsDir, host+rundir.HostDirSuffix)
		if err := c.replace(name, []byte(dir+"\n"), store); err != nil {
			return err
		}
	}
	return nil
}

// copyEarlier copies a file with specifications or records of an earlier epoch, once.
func (c *copier) copyEarlier(name string, store func([]hosts.StorePiece) error) error {
	if specs, _ := c.run.StoredEnd(); name == c.journal || name == specs || c.complete[name] {
		return nil
	}
	info, err := c.run.Disk.Stat(c.run.Path(name))
	if err != nil {
		return err
	}
	err = c.copyAppended(name, info.Size(), store)
	c.complete[name] = err == nil
	return err
}

// copyAppended copies a file up to a length.
func (c *copier) copyAppended(name string, length int64, store func([]hosts.StorePiece) error) (err error) {
	from, begun := c.sent[name]
	if from >= length && begun {
		return nil
	}
	f, err := c.run.Disk.OpenFile(c.run.Path(name), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) && length == 0 {
		return nil // a later dispatcher has added no job
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		p := hosts.StorePiece{Name: name, Offset: from, Bulk: make([]byte, min(max(0, length-from), pieceBytes))}
		if n, err := f.ReadAt(p.Bulk, from); n < len(p.Bulk) {
			return fmt.Errorf("%s has lost its end: %d bytes of %d are there (%w)", name, from+int64(n), length,
				errors.Join(err, io.ErrUnexpectedEOF))
		}
		if err := store([]hosts.StorePiece{p}); err != nil {
			return err
		}
		from += int64(len(p.Bulk))
		c.sent[name] = from
		if from >= length {
			return nil
		}
	}
}

func (c *copier) replace(name string, b []byte, store func([]hosts.StorePiece) error) error {
	if was, ok := c.whole[name]; ok && bytes.Equal(was, b) {
		return nil
	}
	if err := store([]hosts.StorePiece{{Name: name, Offset: hosts.WholeFile, Bulk: b}}); err != nil {
		return err
	}
	c.whole[name] = b
	return nil
}
