//go:build linux

package labfs

import (
	"context"
	"maps"
	"path"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// Op is a set of kinds of calls.
type Op uint32

// The kinds of calls, each a bit. List is opening and reading a directory.
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

// String names the kinds of a set.
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
	Ops   Op
	Name  string        // pattern (path.Match) of the last part of the path (of a rename's or link's new one; of an open file's as it was opened); "": any
	Errno syscall.Errno // what they answer
	Count int           // how many; 0: all until Stop
	Every int           // of those that match, only each so many-th; 0: each
	Lost  bool          // the call is carried out, only its answer is wrong
}

// Injected is a fault that is in force.
type Injected struct {
	m    *Mount
	f    Fault
	met  int // calls that match
	hits int
	over bool
}

// faults are what is wrong with a mount.
type faults struct {
	mu       sync.Mutex
	list     []*Injected
	readOnly bool
	full     bool
	seen     map[Kind]int
}

// Kind is a kind of call on a kind of file: Name is a pattern for the last part of
// its path, in which numbers are open.
type Kind struct {
	Op   Op
	Name string
}

var number = regexp.MustCompile(`[0-9]+`)

// Seen returns how often calls of each kind have come.
func (m *Mount) Seen() map[Kind]int {
	m.faults.mu.Lock()
	defer m.faults.mu.Unlock()
	return maps.Clone(m.faults.seen)
}

// Fail puts a fault in force.
func (m *Mount) Fail(f Fault) *Injected {
	m.faults.mu.Lock()
	defer m.faults.mu.Unlock()
	i := &Injected{m: m, f: f}
	m.faults.list = append(m.faults.list, i)
	return i
}

// FailFlush makes the next count closes of written files fail, as NFS does when
// the server could not store what it had taken. With WriteBack the data is lost.
func (m *Mount) FailFlush(errno syscall.Errno, name string, count int) *Injected {
	return m.Fail(Fault{Ops: Flush, Name: name, Errno: errno, Count: count})
}

// LostReply carries each every-th of such calls out and answers as a server does
// to the repeated request when its first answer was lost: "exists" to what makes a
// name, "no such file" to what takes one away.
func (m *Mount) LostReply(op Op, name string, every int) *Injected {
	errno := syscall.ENOENT
	if op&growing != 0 {
		errno = syscall.EEXIST
	}
	return m.Fail(Fault{Ops: op, Name: name, Errno: errno, Every: every, Lost: true})
}

// Hits returns how many calls have failed by it.
func (i *Injected) Hits() int {
	i.m.faults.mu.Lock()
	defer i.m.faults.mu.Unlock()
	return i.hits
}

// Stop ends it.
func (i *Injected) Stop() {
	i.m.faults.mu.Lock()
	defer i.m.faults.mu.Unlock()
	i.over = true
}

// ReadOnly makes every change fail with EROFS.
func (m *Mount) ReadOnly(on bool) { m.faults.set(&m.faults.readOnly, on) }

// Full leaves no room: nothing new can be made, and no file grows. What is
// written over existing bytes succeeds. With WriteBack a write is taken and
// refused at fsync or close.
func (m *Mount) Full(on bool) { m.faults.set(&m.faults.full, on) }

func (f *faults) set(b *bool, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*b = on
}

func (f *faults) isFull() bool { return f.get(&f.full) }

func (f *faults) isReadOnly() bool { return f.get(&f.readOnly) }

func (f *faults) get(b *bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *b
}

// hit returns the fault that a call meets, nil if none; it uses it up.
func (f *faults) hit(op Op, name string) *Fault {
	kind := Kind{op, number.ReplaceAllLiteralString(name, "[0-9]*")}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[Kind]int{}
	}
	f.seen[kind]++
	for _, i := range f.list {
		if !i.over && i.f.Ops&op != 0 && matches(i.f.Name, name) {
			if i.met++; i.met%max(1, i.f.Every) != 0 {
				continue
			}
			i.hits++
			i.over = i.f.Count > 0 && i.hits >= i.f.Count
			return &i.f
		}
	}
	switch {
	case f.readOnly && op&changing != 0:
		return &Fault{Errno: syscall.EROFS}
	case f.full && op&growing != 0:
		return &Fault{Errno: syscall.ENOSPC}
	}
	return nil
}

// loses reports whether a call that makes the name would lose its reply.
func (f *faults) loses(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.list {
		if !i.over && i.f.Lost && matches(i.f.Name, name) {
			return true
		}
	}
	return false
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == "" || ok && err == nil
}

// call lets one call through gate and faults.
func (m *Mount) call(ctx context.Context, op Op, name string, do func() syscall.Errno) syscall.Errno {
	if errno := m.gate.pass(ctx); errno != 0 {
		return errno
	}
	f := m.faults.hit(op, name)
	if f != nil && !f.Lost {
		return f.Errno
	}
	errno := do()
	if f != nil && errno == 0 {
		return f.Errno
	}
	return errno
}
