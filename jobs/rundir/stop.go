package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// StopFiles returns the stop files that the user of the run has created, and an error
// for each other file of such a name that says why it is ignored. It lists the
// directory: over NFS a name that another client has created may be invisible to stat
// for half a minute.
func (r *Run) StopFiles() (names []string, refused []error, err error) {
	list, err := r.Disk.Names(r.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	for _, name := range []string{StopFile, StopNowFile} {
		if !slices.Contains(list, name) {
			continue
		}
		info, err := r.Disk.Lstat(r.Path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			continue
		case err != nil:
			return nil, nil, err
		}
		if why := notOurs(info); why != "" {
			refused = append(refused, fmt.Errorf("the file %s of the run is ignored: %s", name, why))
			continue
		}
		names = append(names, name)
	}
	return names, refused, nil
}

// notOurs returns why a stop file is ignored, or "" if it is a regular file of the user
// of the run. info must come from Lstat.
func notOurs(info fs.FileInfo) string {
	switch st, ok := info.Sys().(*syscall.Stat_t); {
	case info.Mode()&fs.ModeSymlink != 0:
		return "it is a symbolic link"
	case !info.Mode().IsRegular():
		return "it is not a file"
	case ok && int(st.Uid) != os.Geteuid():
		return fmt.Sprintf("it belongs to user %d, not to you", st.Uid)
	}
	return ""
}
