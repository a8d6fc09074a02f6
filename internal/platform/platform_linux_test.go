package platform

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

// FuzzParseStat checks that no text of /proc/PID/stat causes a panic.
func FuzzParseStat(f *testing.F) {
	const line = "1234 (a ) b (c)) T 17 1234 1234 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0"
	f.Add([]byte(line))
	f.Add([]byte("1 (x"))
	f.Add([]byte{})
	if p, err := parseStat([]byte(line)); p != (Process{Start: 987654, Parent: 17, Stopped: true}) || err != nil {
		f.Fatalf("%+v %v", p, err)
	}
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = parseStat(b) })
}
