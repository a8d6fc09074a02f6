//go:build linux

package labfs

import (
	"context"
	"maps"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Op is a set of kinds of calls.
type Op uint32

// The kinds of calls, one bit each. List is opening and reading a directory. Flush is closing a
// written file: on NFS it fails if the server could not store data that it had accepted. With
// WriteBack the data is lost.
const (
	Lookup Op = 1 << iota
	Getattr
	Setattr
	Open
	Create
	Read
	Write
	Flush
	Fsync
	Mkdir
	Rmdir
	Unlink
	Rename
	Link
	Symlink
	List
	Statfs
	anyOp

	// Any is every kind.
	Any = anyOp - 1

	changing = Setattr | Create | Write | Mkdir | Rmdir | Unlink | Rename | Link | Symlink
	growing  = Create | Mkdir | Link | Symlink
)

var opNames = []string{"Lookup", "Getattr", "Setattr", "Open", "Create", "Read", "Write", "Flush", "Fsync",
	"Mkdir", "Rmdir", "Unlink", "Rename", "Link", "Symlink", "List", "Statfs"}

// String returns the names of the kinds in the set.
func (o Op) String() string {
	var names []string
	for i, name := range opNames {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Fault makes calls fail.
type Fault struct {
	Ops Op
	// Name is a pattern (path.Match) for the last part of the path; "" matches any. The path of a
	// rename or a link is the new one. The path of an open file is the one at its opening.
	Name      string
	Errno     syscall.Errno // the error that they return
	Count     int           // number of failing calls; 0: all until Stop
	Every     int           // only every Every-th matching call fails; 0: each
	LoseReply bool          // the call is carried out, and only its answer is wrong
}

// Injected is a fault that is in force.
type Injected struct {
	m           *Mount
	f           Fault
	numMatching int // number of matching calls
	numFailed   int
	isStopped   bool
}

// faults are the faults of a mount.
type faults struct {
	mu       sync.Mutex
	list     []*Injected
	readOnly atomic.Bool
	full     atomic.Bool
	numCalls map[Kind]int
}

// Kind is a kind of call on a kind of file. Name is a pattern for the last part of the path, in
// which each number is replaced by [0-9]*.
type Kind struct {
	Op   Op
	Name string
}

var number = regexp.MustCompile(`[0-9]+`)

// NumCalls returns the number of calls of each kind.
func (m *Mount) NumCalls() map[Kind]int {
	m.faults.mu.Lock()
	defer m.faults.mu.Unlock()
	return maps.Clone(m.faults.numCalls)
}

// Fail puts a fault in force.
func (m *Mount) Fail(f Fault) *Injected {
	m.faults.mu.Lock()
	defer m.faults.mu.Unlock()
	i := &Injected{m: m, f: f}
	m.faults.list = append(m.faults.list, i)
	return i
}

// LoseReplies carries out all matching calls. Each one whose number is a multiple of every is
// answered as by a server that gets the request again because its first reply was lost: "exists"
// for a call that creates a name, "no such file" for one that removes a name.
func (m *Mount) LoseReplies(op Op, name string, every int) *Injected {
	errno := syscall.ENOENT
	if op&growing != 0 {
		errno = syscall.EEXIST
	}
	return m.Fail(Fault{Ops: op, Name: name, Errno: errno, Every: every, LoseReply: true})
}

// NumFailed returns the number of calls that the fault has made fail.
func (i *Injected) NumFailed() int {
	i.m.faults.mu.Lock()
	defer i.m.faults.mu.Unlock()
	return i.numFailed
}

// Stop ends the fault.
func (i *Injected) Stop() {
	i.m.faults.mu.Lock()
	defer i.m.faults.mu.Unlock()
	i.isStopped = true
}

// SetReadOnly makes every change fail with EROFS.
func (m *Mount) SetReadOnly(on bool) { m.faults.readOnly.Store(on) }

// SetFull makes the file system full: nothing new can be created, and no file grows. Writes over
// existing bytes succeed. With WriteBack a write is accepted, and refused at fsync or close.
func (m *Mount) SetFull(on bool) { m.faults.full.Store(on) }

// faultFor returns the fault that applies to a call, or nil. It counts as one use of the fault.
func (f *faults) faultFor(op Op, name string) *Fault {
	kind := Kind{op, number.ReplaceAllLiteralString(name, "[0-9]*")}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.numCalls == nil {
		f.numCalls = map[Kind]int{}
	}
	f.numCalls[kind]++
	for _, i := range f.list {
		if !i.isStopped && i.f.Ops&op != 0 && matches(i.f.Name, name) {
			i.numMatching++
			if i.numMatching%max(1, i.f.Every) != 0 {
				continue
			}
			i.numFailed++
			i.isStopped = i.f.Count > 0 && i.numFailed >= i.f.Count
			return &i.f
		}
	}
	switch {
	case f.readOnly.Load() && op&changing != 0:
		return &Fault{Errno: syscall.EROFS}
	case f.full.Load() && op&growing != 0:
		return &Fault{Errno: syscall.ENOSPC}
	}
	return nil
}

// losesReply reports whether a call that creates the name would lose its reply.
func (f *faults) losesReply(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.list {
		if !i.isStopped && i.f.LoseReply && matches(i.f.Name, name) {
			return true
		}
	}
	return false
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == "" || ok && err == nil
}

// call executes do after the gate and the faults have let the call through.
func (m *Mount) call(ctx context.Context, op Op, name string, do func() syscall.Errno) syscall.Errno {
	if errno := m.gate.pass(ctx); errno != 0 {
		return errno
	}
	f := m.faults.faultFor(op, name)
	if f != nil && !f.LoseReply {
		return f.Errno
	}
	errno := do()
	if f != nil && errno == 0 {
		return f.Errno
	}
	return errno
}
