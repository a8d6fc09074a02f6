package rundir

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// The specifications of a run stand in jobs.jsonl, and those that a later epoch's
// dispatcher has added in a file of its own, jobs-000002.jsonl: a write of an earlier
// one that a server sees only when the next one has gone on, because a link was cut
// or a machine slept, then changes nothing. Such a file says after how many
// specifications it goes on, and what earlier files hold beyond is no part of the run.

// specsFile names the file to which an epoch's dispatcher adds.
func specsFile(epoch int) string {
	if epoch < 2 {
		return SpecsFile
	}
	return fmt.Sprintf("jobs-%06d.jsonl", epoch)
}

// specsFiles lists the files with specifications in the order of their epochs.
func (r *Run) specsFiles() ([]string, error) {
	names, err := r.Disk.Names(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	var epochs []int
	for _, name := range names {
		digits, ok := strings.CutPrefix(strings.TrimSuffix(name, ".jsonl"), "jobs-")
		if n, err := strconv.Atoi(digits); ok && err == nil && n > 1 && specsFile(n) == name {
			epochs = append(epochs, n)
		}
	}
	slices.Sort(epochs)
	files := []string{SpecsFile}
	for _, n := range epochs {
		files = append(files, specsFile(n))
	}
	return files, nil
}

// ReadSpecs reads the specifications of the run. A last line that a crash cut off is
// left out, and a damaged line is one job that cannot be run. An error means that a
// file cannot be read, or is another version's.
func (r *Run) ReadSpecs() (jobs.StoredSpecs, error) {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	return r.readSpecs()
}

func (r *Run) readSpecs() (all jobs.StoredSpecs, err error) {
	files, err := r.specsFiles()
	if err != nil {
		return all, err
	}
	l := &r.specs
	ours := specLog{dirty: specsFile(l.epoch) != SpecsFile}
	for i, name := range files {
		data, err := ReadFile(r.Disk, r.Path(name))
		if err != nil {
			return all, fmt.Errorf("cannot read the jobs of the run %s: %w", r.Name(), err)
		}
		all.Size, all.Good = int64(len(data)), 0
		if len(data) == 0 {
			continue
		}
		var have []*jobs.Spec
		if i > 0 {
			have = slices.Clip(slices.Concat([]*jobs.Spec{}, all.Specs)) // never nil: there are earlier files
		}
		stored, err := jobs.DecodeMoreSpecs(name, data, have)
		if err != nil {
			return all, fmt.Errorf("the jobs of the run %s cannot be read: %w", r.Name(), err)
		}
		all.Specs, all.Damage, all.Good = stored.Specs, append(all.Damage, stored.Damage...), stored.Good
		if name == specsFile(l.epoch) {
			ours.end, ours.unended, ours.dirty = stored.Good, stored.Unended, stored.Good < int64(len(data))
		}
	}
	if l.known && l.guard != nil {
		return all, nil // it is ours, and we know better than what others may write late
	}
	l.known, l.count = true, len(all.Specs)
	l.end, l.unended, l.dirty = ours.end, ours.unended, ours.dirty
	return all, nil
}

// SyncSpecs makes durable what the files with specifications hold, whoever wrote it:
// its writer may have been killed before it did so.
func (r *Run) SyncSpecs() error {
	files, err := r.specsFiles()
	for _, name := range files {
		if err == nil {
			err = r.syncFile(name)
		}
	}
	if err == nil && len(files) > 1 {
		err = r.Disk.SyncDir(r.Dir)
	}
	if err != nil {
		return fmt.Errorf("cannot make the jobs of the run %s durable: %w", r.Name(), err)
	}
	return nil
}

func (r *Run) syncFile(name string) error {
	f, err := r.Disk.OpenFile(r.Path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
