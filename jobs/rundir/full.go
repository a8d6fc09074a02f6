package rundir

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// IsFull reports whether err means that a file system or a quota is full.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// freesFiles is the advice for when no more files can be created.
const freesFiles = "`dcs-tui runs pack` and `runs prune` free some, and --pack-files saves some"

var statfs = unix.Statfs // replaced in tests

// ExplainFull adds to the error of a full file system or quota what is used up, and what frees it. dir is
// on it. It asks the file system, because the error of the kernel is the same for bytes and for files,
// and `df -h` shows only bytes. Other errors stay as they are.
func ExplainFull(err error, dir string) error {
	var st unix.Statfs_t
	why := ""
	switch {
	case errors.Is(err, syscall.EDQUOT):
		why = "a quota of bytes or files is used up, see `quota -s`; if it is of files, " + freesFiles
	case !errors.Is(err, syscall.ENOSPC) || statfs(dir, &st) != nil:
		return err
	case st.Files > 0 && st.Ffree == 0:
		why = "no inode is free of " + strconv.FormatUint(st.Files, 10) + ", see `df -i`; " + freesFiles
	case st.Bavail == 0:
		why = "no byte is free; `dcs-tui runs prune` removes old runs"
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", err, why)
}
