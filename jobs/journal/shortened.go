package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs/rundir"
)

// A journal that ends early after a whole line looks like one whose dispatcher was
// killed there. So each heartbeat records in the owner file how much of the journal is
// durable. Comparing the two finds a restored snapshot, a copy of the run directory,
// and a file server that lost data it had synced.

// extent is a length of a file and the checksum of its bytes up to there.
type extent struct {
	length int64
	sum    uint32
}

// identify notes which directory the run directory is, so that a copy can be told from
// the original. It notes nothing where inode numbers change with every mount.
func (o *Owner) identify(r *rundir.Run) error {
	info, err := r.Disk.Stat(r.Dir)
	if err != nil {
		return fmt.Errorf("cannot look at the run directory: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	var kind unix.Statfs_t
	if !ok || unix.Statfs(r.Dir, &kind) == nil && slices.Contains(unstableInodes, uint32(kind.Type)) {
		return nil
	}
	o.Inode = st.Ino
	if unix.Major(st.Dev) != 0 { // others get a new number with every mount, as NFS does
		o.Device = st.Dev
	}
	return nil
}

var unstableInodes = []uint32{unix.FUSE_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC}

// elsewhere reports whether two owners certainly had different directories. Device
// numbers are compared only within one boot.
func (o *Owner) elsewhere(had *Owner) bool {
	if o.Inode == 0 || had.Inode == 0 {
		return false
	}
	return o.Inode != had.Inode || o.Boot == had.Boot && o.Device != had.Device && o.Device != 0 && had.Device != 0
}

// checkOwner compares the journal and the run directory with what the last owner
// recorded. It returns the reasons why records may be missing, each a sentence.
func checkOwner(r *rundir.Run, files []epochFile, had, now *Owner) (missing []string, err error) {
	if had.Epoch == 0 {
		return nil, nil
	}
	if now.elsewhere(had) {
		missing = append(missing, fmt.Sprintf("%s is a copy of the directory in which the run was dispatched", r.Dir))
	}
	for _, epoch := range slices.Compact([]int{had.Epoch, had.File}) {
		if e := fileOf(epoch); epoch > 0 && !slices.Contains(files, e) {
			missing = append(missing, e.label()+" is missing")
		}
	}
	e := fileOf(had.File)
	if !slices.Contains(files, e) {
		return missing, nil
	}
	length, sum, err := sumOf(r, e, had.Bytes)
	switch {
	case err != nil:
		return nil, err
	case length < had.Bytes:
		missing = append(missing, fmt.Sprintf("%s has lost its end: %d bytes of %d are there", e.label(), length, had.Bytes))
	case sum != had.Sum:
		missing = append(missing, fmt.Sprintf("%s is not what its dispatcher wrote: the checksum of its first %d bytes differs", e.label(), had.Bytes))
	}
	return missing, nil
}

// sumOf returns the CRC-32C of the first limit bytes of a file, or of the whole file if
// it is shorter, and how many bytes that were.
func sumOf(r *rundir.Run, e epochFile, limit int64) (n int64, sum uint32, err error) {
	f, err := r.Disk.OpenFile(e.path(r), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, min(limit, 1<<20))
	for n < limit {
		k, err := f.ReadAt(buf[:min(int64(len(buf)), limit-n)], n)
		sum, n = crc32Update(sum, buf[:k]), n+int64(k)
		if err != nil && !errors.Is(err, io.EOF) {
			return n, sum, err
		}
		if k == 0 {
			break
		}
	}
	return n, sum, nil
}
