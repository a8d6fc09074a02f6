package cli

import (
	"errors"
	"syscall"
	"time"
)

// retryEvery is how often something that a disk refused is tried again.
const retryEvery = time.Second

// full says that there was no room: what heals by itself when somebody has made some.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// diskTrouble says that a disk or a file server failed, and not what was asked of it.
func diskTrouble(err error) bool {
	for _, no := range []syscall.Errno{syscall.ESTALE, syscall.EIO, syscall.EROFS, syscall.ETIMEDOUT, syscall.EINTR} {
		if errors.Is(err, no) {
			return true
		}
	}
	return full(err)
}
