//go:build linux

package remote

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	fullBytes  = 64 << 10 // a disk with less free than this is as good as full
	fullWithin = time.Second
)

// fullDisks looks whether disks are full when a job has failed: people shall not
// read just "exit 1". It waits for no file system for long.
type fullDisks struct{ asking atomic.Bool }

// any says whether one of the directories is on a full disk. No answer in time is
// no.
func (f *fullDisks) any(dirs ...string) (full bool) {
	if !f.asking.CompareAndSwap(false, true) {
		return false // the last question hangs still
	}
	answer := make(chan bool, 1)
	go func() {
		defer f.asking.Store(false)
		for _, d := range dirs {
			if d != "" && isFull(d) {
				answer <- true
				return
			}
		}
		answer <- false
	}()
	late := time.NewTimer(fullWithin)
	defer late.Stop()
	select {
	case full = <-answer:
	case <-late.C:
	}
	return full
}

// isFull says whether nobody but root can write to the disk of dir: no blocks, or
// no inodes. What is read-only by nature has none either and is not full.
func isFull(dir string) bool {
	var st unix.Statfs_t
	if statfs(dir, &st) != nil || st.Blocks == 0 || st.Flags&unix.ST_RDONLY != 0 {
		return false
	}
	return int64(st.Bavail)*st.Bsize < fullBytes || st.Files > 0 && st.Ffree == 0
}
