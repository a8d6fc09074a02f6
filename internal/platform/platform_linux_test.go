package platform

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"runtime/pprof"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/polltest"
)

// TestWaitForChildrenHoldsNoThreads checks that waits for children that run are waits in the poller,
// and that each ends with its child.
func TestWaitForChildrenHoldsNoThreads(t *testing.T) {
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		t.Skip("the kernel has no pidfds:", err)
	}
	unix.Close(fd)
	const n = 20
	ended := make(chan error, n)
	var gates []io.Closer
	for range n {
		cmd, err := SelfCommand("name", "child", "held")
		polltest.Must(t, err)
		gate, err := cmd.StdinPipe()
		polltest.Must(t, err)
		polltest.Must(t, cmd.Start())
		gates = append(gates, gate)
		go func() {
			err := AwaitExit(cmd.Process.Pid)
			var exit *exec.ExitError
			if werr := cmd.Wait(); err == nil && !errors.As(werr, &exit) {
				err = werr
			}
			ended <- err
		}()
	}
	polltest.Until(t, "all waits in the poller", func() bool {
		var stacks bytes.Buffer
		pprof.Lookup("goroutine").WriteTo(&stacks, 2)
		waiting := 0
		for stack := range bytes.SplitSeq(stacks.Bytes(), []byte("\n\n")) {
			if bytes.Contains(stack, []byte("[IO wait")) && bytes.Contains(stack, []byte("platform.AwaitExit")) {
				waiting++
			}
		}
		return waiting == n
	})
	for _, gate := range gates {
		gate.Close()
	}
	for range n {
		polltest.Must(t, <-ended)
	}
}

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
