package rundir

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInterruptedCallIsRepeated checks that a system call that a signal interrupts, such as fsync,
// is repeated, and that no other error is.
func TestInterruptedCallIsRepeated(t *testing.T) {
	for _, c := range []struct {
		answers []error
		want    error
	}{
		{[]error{nil}, nil},
		{[]error{unix.EINTR, unix.EINTR, nil}, nil},
		{[]error{unix.EINTR, unix.EIO, nil}, unix.EIO},
		{[]error{unix.ENOSPC, nil}, unix.ENOSPC},
	} {
		calls := 0
		err := retryInterrupted(func() error {
			calls++
			return c.answers[calls-1]
		})
		if !errors.Is(err, c.want) || err == nil && calls != len(c.answers) {
			t.Errorf("%v: %v after %d calls", c.answers, err, calls)
		}
	}
}
