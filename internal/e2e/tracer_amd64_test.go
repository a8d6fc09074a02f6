//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The role "trace" runs a program under ptrace and acts at the n-th call by which the program
// changes a file below a directory. All threads of the program are counted together, but not its
// child processes. strace counts by thread, and Go may run a call on any thread.
//
// Arguments: n; the number of calls from there on; what; the words of which the path must contain
// one, separated by colons; the log; and the program. what is "kill" (die before the call), "torn"
// (write half, then die), or the number of the error that the call returns without being made.
func init() { roles["trace"] = trace }

// changing maps the calls that change files to the arguments that identify the file.
var changing = map[uint64]struct {
	name  string
	onFD  bool
	paths []int // arguments that are paths
}{
	unix.SYS_OPENAT:    {"openat", false, []int{1}},
	unix.SYS_MKDIRAT:   {"mkdirat", false, []int{1}},
	unix.SYS_UNLINKAT:  {"unlinkat", false, []int{1}},
	unix.SYS_RENAMEAT:  {"renameat", false, []int{1, 3}},
	unix.SYS_RENAMEAT2: {"renameat2", false, []int{1, 3}},
	unix.SYS_WRITE:     {"write", true, nil},
	unix.SYS_PWRITE64:  {"pwrite64", true, nil},
	unix.SYS_FTRUNCATE: {"ftruncate", true, nil},
	unix.SYS_FSYNC:     {"fsync", true, nil},
	unix.SYS_FDATASYNC: {"fdatasync", true, nil},
}

type tracer struct {
	pid      int // of the program
	at, more int
	what     string
	errno    int
	words    []string
	log      *os.File
	count    int
	pending  map[int]string // action to take when a thread's call returns
}

// syscallInfo is the kernel's struct ptrace_syscall_info.
type syscallInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	ip   uint64
	sp   uint64
	nr   uint64 // at the entry: number and arguments of the call
	args [6]uint64
}

func trace(args []string) {
	runtime.LockOSThread()
	fail := func(what string, err error) {
		fmt.Fprintf(os.Stderr, "tracer: %s: %v\n", what, err)
		os.Exit(99)
	}
	t := &tracer{what: args[2], words: strings.Split(args[3], ":"), pending: map[int]string{}}
	t.at, _ = strconv.Atoi(args[0])
	t.more, _ = strconv.Atoi(args[1])
	t.errno, _ = strconv.Atoi(t.what)
	var err error
	if t.log, err = os.Create(args[4]); err != nil {
		fail("log", err)
	}
	p, err := os.StartProcess(args[5], args[5:], &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		fail("start", err)
	}
	t.pid = p.Pid
	var status unix.WaitStatus
	if _, err := unix.Wait4(t.pid, &status, 0, nil); err != nil || !status.Stopped() {
		fail("first stop", err)
	}
	if err := unix.PtraceSetOptions(t.pid,
		unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_EXITKILL); err != nil {
		fail("options", err)
	}
	t.continueThread(t.pid, 0)
	os.Exit(t.loop())
}

// loop handles the threads' stops until the program has ended. It returns the exit status, 137 if
// the program was killed.
func (t *tracer) loop() int {
	seen := map[int]bool{t.pid: true}
	for {
		var s unix.WaitStatus
		tid, err := unix.Wait4(-1, &s, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 99
		case s.Exited() || s.Signaled():
			if tid != t.pid {
				continue
			}
			if s.Signaled() {
				return 128 + int(s.Signal())
			}
			return s.ExitStatus()
		case !s.Stopped():
			continue
		}
		sig := int(s.StopSignal())
		switch {
		case sig == int(unix.SIGTRAP)|0x80:
			t.handleStop(tid)
			sig = 0
		case sig == int(unix.SIGTRAP): // announces a new thread
			sig = 0
		case sig == int(unix.SIGSTOP) && !seen[tid]: // the first stop of a thread
			sig = 0
		}
		seen[tid] = true
		t.continueThread(tid, sig)
	}
}

func (t *tracer) continueThread(tid, sig int) {
	// An error means that the thread was killed; it is awaited anyway.
	_ = unix.PtraceSyscall(tid, sig)
}

// handleStop handles the entry or the return of a call.
func (t *tracer) handleStop(tid int) {
	var info syscallInfo
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0); e != 0 {
		return
	}
	if info.op == unix.PTRACE_SYSCALL_INFO_EXIT {
		t.handleReturn(tid)
		return
	}
	name, path := t.changedFile(&info)
	if path == "" {
		return
	}
	t.count++
	fmt.Fprintln(t.log, t.count, name, path)
	if t.count < t.at || t.count >= t.at+t.more {
		return
	}
	switch {
	case t.errno > 0:
		// An invalid call number, so the call does nothing.
		t.setRegisters(tid, func(r *unix.PtraceRegs) { r.Orig_rax = ^uint64(0) })
		t.pending[tid] = "error"
	case t.what == "torn" && name == "pwrite64":
		t.setRegisters(tid, func(r *unix.PtraceRegs) { r.Rdx /= 2 })
		t.pending[tid] = "kill"
	default:
		unix.Kill(t.pid, unix.SIGKILL)
	}
}

// handleReturn completes the action that was chosen at the entry of the call.
func (t *tracer) handleReturn(tid int) {
	switch t.pending[tid] {
	case "error":
		t.setRegisters(tid, func(r *unix.PtraceRegs) { r.Rax = uint64(-int64(t.errno)) })
	case "kill":
		unix.Kill(t.pid, unix.SIGKILL)
	}
	delete(t.pending, tid)
}

func (t *tracer) setRegisters(tid int, change func(*unix.PtraceRegs)) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) == nil {
		change(&regs)
		_ = unix.PtraceSetRegs(tid, &regs) // an error means that the thread was killed
	}
}

// changedFile returns the call's name and its file. name is "" if the call does not change a file
// of the run.
func (t *tracer) changedFile(info *syscallInfo) (name, path string) {
	c, ok := changing[info.nr]
	if !ok || info.nr == unix.SYS_OPENAT && info.args[2]&(unix.O_CREAT|unix.O_WRONLY|unix.O_RDWR) == 0 {
		return "", ""
	}
	if c.onFD {
		path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.pid, info.args[0]))
	}
	for _, i := range c.paths {
		if path = t.readString(info.args[i]); path != "" && !filepath.IsAbs(path) {
			cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", t.pid))
			path = filepath.Join(cwd, path)
		}
	}
	for _, w := range t.words {
		if strings.Contains(path, w) {
			return c.name, path
		}
	}
	return "", ""
}

// readString returns a string in the program's memory.
func (t *tracer) readString(addr uint64) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	var b [unix.PathMax]byte
	n, _ := f.ReadAt(b[:], int64(addr))
	end := bytes.IndexByte(b[:n], 0)
	return string(b[:max(0, end)])
}
