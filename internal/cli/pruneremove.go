package cli

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dcs-tui/internal/cli/places"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// prunedPrefix begins the name of a run directory that is being removed: no run any
// more, whatever of it is left when we are killed.
const prunedPrefix = ".pruned."

// prune removes a run. It is first moved out of sight and looked at once more, so that
// nobody can begin to dispatch what is half gone. left is what hosts keep of it.
func prune(run *rundir.Run) (left []string, err error) {
	if info, err := os.Lstat(run.Dir); err != nil {
		return nil, err
	} else if info.Mode()&fs.ModeSymlink != 0 { // only the link would go
		return nil, errors.New("it is a symbolic link: name the directory that it leads to")
	}
	before, _ := journal.ReadOwner(run)
	left = leftOnHosts(run)
	hidden := filepath.Join(filepath.Dir(run.Dir), prunedPrefix+filepath.Base(run.Dir)+"."+strings.ToLower(rand.Text()[:8]))
	if err := os.Rename(run.Dir, hidden); err != nil {
		return nil, err
	}
	moved := &rundir.Run{Dir: hidden, Nonce: run.Nonce, Asked: run.Asked, Disk: run.Disk}
	if after, _ := journal.ReadOwner(moved); after != nil && (before == nil || after.Token != before.Token || after.Beat != before.Beat) {
		return nil, errors.Join(errors.New("somebody has just begun to dispatch it; it stays"), os.Rename(hidden, run.Dir))
	}
	if err := os.RemoveAll(hidden); err != nil {
		return nil, err
	}
	return left, removeWork(run)
}

// sweepPruned removes what a prune that was killed has left.
func (a *app) sweepPruned() {
	names, err := rundir.OS.Names(rundir.Base)
	if err != nil {
		return // there are no runs
	}
	for _, name := range names {
		if strings.HasPrefix(name, prunedPrefix) {
			if err := os.RemoveAll(filepath.Join(rundir.Base, name)); err != nil {
				a.warn("%v", err)
			}
		}
	}
}

// workDirs are the directories of the run in the work_dir of its hosts, as a path on
// each host: a leading ~ is that host's home directory.
func workDirs(run *rundir.Run) []string {
	uid := run.UID()
	if uid == "" || strings.Trim(uid, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return nil // not a name of ours; it could lead anywhere
	}
	seen := map[string]bool{}
	dirs := []string{"~/.dcs-tui"}
	if inv, err := new(app).storedInventory(run); err == nil {
		for _, h := range inv.Hosts {
			if h.WorkDir != "" {
				dirs = append(dirs, h.WorkDir)
			}
		}
	}
	var list []string
	for _, d := range dirs {
		if d = strings.TrimSuffix(d, "/") + "/" + uid; !seen[d] {
			seen[d] = true
			list = append(list, d)
		}
	}
	return list
}

// removeWork removes what this machine sees of the run in a work_dir.
func removeWork(run *rundir.Run) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	var errs []error
	for _, dir := range workDirs(run) {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(home, rest)
		}
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !filepath.IsAbs(dir) {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue // not made by us
		}
		if !hasMarks(dir) {
			continue // whatever it is, no host of the run has used it
		}
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// hasMarks says that a host has used the directory for a run: what a run.toml names
// could be anything.
func hasMarks(dir string) bool {
	names, err := rundir.OS.Names(dir)
	return err == nil && slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(n, "epoch.") || strings.HasPrefix(n, "place.")
	})
}

// leftOnHosts says for each host that keeps outputs of the run how to remove them. Where
// they are the host itself has said: only a directory that bears the run's own name
// gets into a command that removes things.
func leftOnHosts(run *rundir.Run) []string {
	var lines []string
	for host, place := range places.Read(run) {
		dir := strings.TrimPrefix(place, host+":")
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || filepath.Base(dir) != run.UID() {
			lines = append(lines, host+" keeps the outputs of its jobs, in "+dir+" as it says; look there yourself")
			continue
		}
		lines = append(lines, host+" keeps the outputs of its jobs: "+onHost(run, host, "rm", "-r", dir))
	}
	slices.Sort(lines)
	return lines
}
