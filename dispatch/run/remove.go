package run

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/internal/account"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// ErrJobsLeft is the error of Removable for a run with unfinished jobs.
var ErrJobsLeft = errors.New("jobs are left")

// UnfinishedError holds the reason why a run without unfinished jobs may not be over.
type UnfinishedError struct{ why string }

func (e *UnfinishedError) Error() string { return e.why }

// Removable returns the jobs of a run that may be removed, or an error with the reason why the run
// must stay. With an error, the jobs may be nil. unfinished permits runs with unfinished jobs,
// which may still run.
func Removable(run *rundir.Run, unfinished bool) (*jobs.Table, error) {
	owner, err := journal.ReadOwner(run)
	switch {
	case err != nil && !unfinished:
		return nil, err
	case owner != nil && owner.Liveness() == journal.Alive:
		return nil, errors.New("it is dispatched by " + owner.String())
	case owner != nil && owner.Liveness() == journal.Unsure:
		return nil, errors.New("it may be dispatched by " + owner.String() +
			", which this machine cannot see: prune it there")
	}
	table, report, err := journal.Replay(run)
	if err != nil {
		return nil, err
	}
	table.AcceptStored()
	waiting, err := run.WaitingRequests(table)
	switch {
	case unfinished:
		return table, nil
	case err != nil:
		return nil, err
	case table.Unfinished() > 0:
		return table, ErrJobsLeft
	case len(waiting) > 0:
		return nil, &UnfinishedError{"requests wait for its next resume"}
	case report.Damaged:
		return nil, &UnfinishedError{"its journal is damaged, so jobs may be left"}
	case !table.Ended && table.NumJobs() > 0:
		return nil, &UnfinishedError{"its hosts were not all left clean; resume looks for what is left there"}
	}
	return table, nil
}

// LastRecorded returns the time of the last record of a run.
func LastRecorded(run *rundir.Run) (time.Time, error) {
	names, err := run.Disk.Names(run.Path(rundir.JournalDir))
	if err != nil {
		return time.Time{}, err
	}
	last := run.Settings.Created
	for _, name := range names {
		info, err := run.Disk.Stat(run.Path(rundir.JournalDir, name))
		if err != nil {
			return time.Time{}, err
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, nil
}

// prunedPrefix begins the name of a run directory that is being removed. If this process is killed,
// the rest of it is not a run any more.
const prunedPrefix = ".pruned."

// Remove removes a run and its files on this machine in the work_dir of its hosts. It renames the
// directory and checks the owner again before it removes files, so that nobody dispatches a run
// that is partly removed.
func Remove(run *rundir.Run, inventory []*hosts.Host) error {
	if info, err := os.Lstat(run.Dir); err != nil {
		return err
	} else if info.Mode()&fs.ModeSymlink != 0 { // only the link would be removed
		return errors.New("it is a symbolic link: name the directory that it leads to")
	}
	before, _ := journal.ReadOwner(run)
	hidden := filepath.Join(filepath.Dir(run.Dir), prunedPrefix+filepath.Base(run.Dir)+"."+
		strings.ToLower(rand.Text()[:8]))
	if err := os.Rename(run.Dir, hidden); err != nil {
		return err
	}
	moved := &rundir.Run{Dir: hidden, Nonce: run.Nonce, Settings: run.Settings, Disk: rundir.Within(hidden)}
	if after, _ := journal.ReadOwner(moved); after != nil &&
		(before == nil || after.Token != before.Token || after.Heartbeat != before.Heartbeat) {
		return errors.Join(errors.New("somebody has just begun to dispatch it; it stays"), os.Rename(hidden, run.Dir))
	}
	if err := os.RemoveAll(hidden); err != nil {
		return err
	}
	return removeWork(run, inventory)
}

// RemovePruned removes the remains of interrupted removals in rundir.Base.
func RemovePruned() error {
	names, _ := rundir.OS.Names(rundir.Base)
	var errs []error
	for _, name := range names {
		if strings.HasPrefix(name, prunedPrefix) {
			errs = append(errs, os.RemoveAll(filepath.Join(rundir.Base, name)))
		}
	}
	return errors.Join(errs...)
}

// workDirs returns the directories of the run in the work_dir of its hosts. A leading ~ is
// the home directory on the host.
func workDirs(run *rundir.Run, inventory []*hosts.Host) []string {
	uid := run.UID()
	if uid == "" || strings.Trim(uid, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return nil // not created by dcs-tui: it could be any path
	}
	dirs := []string{"~/.dcs-tui/" + uid}
	for _, h := range inventory {
		if dir := strings.TrimSuffix(h.WorkDir, "/") + "/" + uid; h.WorkDir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// removeWork removes the directories of the run in a work_dir on this machine.
func removeWork(run *rundir.Run, inventory []*hosts.Host) error {
	home, err := account.Home()
	if err != nil {
		return nil
	}
	var errs []error
	for _, dir := range workDirs(run, inventory) {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(dir) || !usedByHost(dir) {
			continue
		}
		if err := files.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// usedByHost reports whether a directory is ours and a host has used it for a run. The path comes
// from run.toml and could be any.
func usedByHost(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return false
	}
	names, err := rundir.OS.Names(dir)
	return err == nil && slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(n, "epoch.") || strings.HasPrefix(n, "place.")
	})
}
