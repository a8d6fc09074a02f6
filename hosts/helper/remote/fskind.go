//go:build linux

package remote

import "golang.org/x/sys/unix"

// localTypes are file systems of this machine: close and rename cannot fail
// late there, and a reserved block stays reserved. Any other is treated like NFS.
var localTypes = map[int64]bool{
	unix.EXT4_SUPER_MAGIC:      true,
	unix.XFS_SUPER_MAGIC:       true,
	unix.BTRFS_SUPER_MAGIC:     true,
	unix.TMPFS_MAGIC:           true,
	unix.OVERLAYFS_SUPER_MAGIC: true,
	unix.F2FS_SUPER_MAGIC:      true,
	0x2fc12fc1:                 true, // ZFS
	0xca451a4e:                 true, // bcachefs
}

// onNetwork says whether dir is on a file system that is not known to be local.
func onNetwork(dir string) bool {
	var st unix.Statfs_t
	return statfs(dir, &st) != nil || !localTypes[int64(st.Type)]
}
