package ttyguard

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Word is the hidden argument with which the program starts itself as a guard.
const Word = "__ttyguard"

// What a screen tells its guard. Anything else is the text of a crash.
const (
	asleep  = 1 // the terminal was given back for a while: ctrl+z
	awake   = 2
	goodbye = 3
)

// patience bounds how long the end of a guard is awaited.
const patience = time.Second

// present is the guard of this process, for Asleep.
var present struct {
	sync.Mutex
	pipe *os.File
}

// Start begins to guard the terminal that in and out are, which must still be as it
// is to become again. done ends that; it is called when the screen has given the
// terminal back. After an error nothing is guarded and done does nothing.
//
// If this process crashes, the text of the crash is printed again on the restored terminal, because
// the runtime wrote it to the alternate screen, which is gone then.
func Start(in, out *os.File) (done func(), err error) {
	state, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return func() {}, fmt.Errorf("the terminal cannot be guarded: %w", err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return func() {}, fmt.Errorf("the terminal cannot be guarded: %w", err)
	}
	defer theirs.Close()
	child := exec.Command("/proc/self/exe", Word) // the very file that runs, whatever became of its name
	child.Args[0] = os.Args[0]
	child.Stdin, child.Stdout, child.ExtraFiles = theirs, out, []*os.File{in}
	// A session of its own: no key of this terminal and no hang-up reaches it, and it may
	// write to it at any time.
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Dir = "/"
	if err := child.Start(); err != nil {
		ours.Close()
		return func() {}, fmt.Errorf("the terminal cannot be guarded: %w", err)
	}
	binary.Write(ours, binary.NativeEndian, state) // a pipe takes it at once; a guard without it does nothing
	debug.SetCrashOutput(ours, debug.CrashOptions{})
	present.Lock()
	present.pipe = ours
	present.Unlock()
	return sync.OnceFunc(func() {
		present.Lock()
		present.pipe = nil
		present.Unlock()
		debug.SetCrashOutput(nil, debug.CrashOptions{})
		// Who could not restore it, because it does not take what is written, leaves it to the guard.
		if now, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS); err != nil || *now == *state {
			ours.Write([]byte{goodbye})
		}
		ours.Close()
		kill := time.AfterFunc(patience, func() { child.Process.Kill() })
		child.Wait()
		kill.Stop()
	}), nil
}

// Asleep tells the guard that the terminal is given back for a while (true), or in
// use again: a screen that dies asleep must not disturb the shell.
func Asleep(yes bool) {
	present.Lock()
	defer present.Unlock()
	if present.pipe == nil {
		return
	}
	word := byte(awake)
	if yes {
		word = asleep
	}
	present.pipe.Write([]byte{word})
}
