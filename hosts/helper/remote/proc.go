//go:build linux

package remote

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// proc is a process as described by /proc/PID/stat. pid and start identify it within a boot: a pid
// alone may be reused.
type proc struct {
	pid, ppid, group int
	state            byte
	threads          int
	start            uint64 // clock ticks since boot, field 22
	ticks            uint64 // user and system time, including children that it waited for
	rss              int64  // resident bytes, approximately
}

// userHZ is the unit of times in /proc, which is fixed in the kernel's interface.
const userHZ = 100

var pageSize = os.Getpagesize()

// readProc reads /proc/PID/stat.
func readProc(pid int) (proc, bool) {
	var buf [1024]byte
	path := append(strconv.AppendInt([]byte("/proc/"), int64(pid), 10), "/stat"...)
	n, err := procStart(string(path), buf[:])
	if err != nil {
		return proc{}, false
	}
	return parseStat(pid, buf[:n])
}

// parseStat parses the fields after the last ')': the command's name may contain blanks and
// parentheses.
func parseStat(pid int, b []byte) (p proc, ok bool) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return p, false
	}
	p.pid = pid
	number := 3 // of the field, as in proc(5)
	for f := range bytes.FieldsSeq(b[end+1:]) {
		switch number {
		case 3:
			p.state = f[0]
		case 4:
			p.ppid = int(parseNumber(f))
		case 5:
			p.group = int(parseNumber(f))
		case 14, 15, 16, 17:
			p.ticks += parseNumber(f)
		case 20:
			p.threads = int(parseNumber(f))
		case 22:
			p.start = parseNumber(f)
		case 24:
			p.rss = int64(parseNumber(f)) * int64(pageSize)
			return p, true
		}
		number++
	}
	return proc{}, false
}

func parseNumber(b []byte) (n uint64) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return n
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// procFile reads /proc/PID/NAME. It returns nil if the file cannot be read.
func procFile(pid int, name string) []byte {
	path := append(strconv.AppendInt([]byte("/proc/"), int64(pid), 10), '/')
	return readProcFile(string(append(path, name...)))
}

// isOurs reports whether a process of our user has these words in its command line, which another user may have
// copied.
func isOurs(pid int, words string) bool {
	return bytes.Contains(procFile(pid, "cmdline"), []byte("\x00"+words+"\x00")) && hasOurUser(pid)
}

func hasOurUser(pid int) bool {
	var st unix.Stat_t
	return unix.Stat("/proc/"+strconv.Itoa(pid), &st) == nil && int(st.Uid) == ownUID
}

// readProcFile reads a file of /proc. It returns nil if the file cannot be read. It makes fewer system
// calls than os.ReadFile, because there may be thousands of processes, and allocates only once for
// most files: each size of an allocation costs a supervisor one or two pages.
func readProcFile(path string) []byte {
	fd, err := openProc(path)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil
		case n <= 0:
			return b
		}
		b = b[:len(b)+n]
		if len(b) == cap(b) {
			b = slices.Grow(b, len(b))
		}
	}
}

// procStart reads the beginning of a file of /proc with one read.
func procStart(path string, buf []byte) (int, error) {
	fd, err := openProc(path)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return max(0, n), err
		}
	}
}

// openProc opens a file of /proc.
func openProc(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// procNames lists a directory of /proc.
func procNames(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return names
}

// table is a snapshot of all processes, by pid.
type table map[int]proc

// scan takes a snapshot without the pids in skip and without processes that hang. It removes from
// skip the pids of processes that are gone.
func scan(skip map[int]bool) table {
	names := procNames("/proc")
	pids := make([]int, 0, len(names))
	there := make(map[int]bool, len(skip))
	for _, n := range names {
		if n[0] < '1' || n[0] > '9' {
			continue
		}
		switch pid, err := strconv.Atoi(n); {
		case err != nil:
		case skip[pid]:
			there[pid] = true
		default:
			pids = append(pids, pid)
		}
	}
	maps.DeleteFunc(skip, func(pid int, _ bool) bool { return !there[pid] })
	return readProcs(pids)
}

// readProcs takes a snapshot of those of pids that exist and do not hang.
func readProcs(pids []int) table {
	t := make(table, len(pids))
	for _, p := range hungProcs.procs(pids) {
		t[p.pid] = p
	}
	return t
}

// scanOwn takes a snapshot of the descendants of this process. As a subreaper it is the ancestor of
// all processes that its jobs have started. Without support by the kernel, while a process hangs, or
// if /proc hides one, as with hidepid=2, it scans all processes.
func scanOwn() table {
	if hasNoChildren() {
		return table{}
	}
	self, ok := readProc(os.Getpid())
	if !ok || !listsChildren() {
		return scan(nil)
	}
	t, isHidden := table{}, false
	for pids := childrenOf(self); len(pids) > 0; {
		var below []int
		hungProcs.each(pids, func(pid int) func() {
			p, ok := readProc(pid)
			if !ok {
				exists := unix.Kill(pid, 0) != unix.ESRCH
				return func() { isHidden = isHidden || exists }
			}
			kids := childrenOf(p)
			return func() {
				t[pid] = p
				below = append(below, kids...)
			}
		})
		// A process whose parent ends meanwhile is listed twice.
		pids = slices.DeleteFunc(below, func(pid int) bool { return t[pid].pid == pid })
	}
	if isHidden || len(hungProcs.ownProcs()) > 0 {
		return scan(nil)
	}
	return t
}

// listsChildren reports whether the kernel lists the children of a thread.
var listsChildren = sync.OnceValue(func() bool {
	return unix.Access(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()), unix.R_OK) == nil
})

// childrenOf returns the children of p. The list may lack some if others end meanwhile.
func childrenOf(p proc) (pids []int) {
	threads := []string{strconv.Itoa(p.pid)}
	if p.threads > 1 {
		threads = procNames(fmt.Sprintf("/proc/%d/task", p.pid))
	}
	for _, thread := range threads {
		for _, w := range bytes.Fields(procFile(p.pid, "task/"+thread+"/children")) {
			pids = append(pids, int(parseNumber(w)))
		}
	}
	return pids
}

// descendants returns the pids of all descendants of the roots, without the roots.
func (t table) descendants(roots ...int) []int {
	kids := map[int][]int{}
	for pid, p := range t {
		kids[p.ppid] = append(kids[p.ppid], pid)
	}
	var out []int
	seen := map[int]bool{}
	for queue := roots; len(queue) > 0; queue = queue[1:] {
		if p := queue[0]; !seen[p] {
			seen[p] = true
			queue = append(queue[:len(queue):len(queue)], kids[p]...)
			out = append(out, kids[p]...)
		}
	}
	return out
}

// cookieVar is the environment variable that marks every process of an attempt: RUN/HOST/ATTEMPT.
const cookieVar = "DCS_COOKIE"

// environment is the result of reading the environment of a process.
type environment struct {
	cookie     string // at its start; "" if there is none, or if the process is another user's
	unreadable bool   // no environment could be read
}

// cookiesOf reads the cookies of processes.
func cookiesOf(pids []int) map[int]environment {
	environments := make(map[int]environment, len(pids))
	for _, pid := range pids {
		environments[pid] = environment{unreadable: true}
	}
	hungProcs.each(pids, func(pid int) func() {
		m := parseEnvironment(procFile(pid, "environ"))
		return func() { environments[pid] = m }
	})
	return environments
}

func cookieOf(pid int) string { return cookiesOf([]int{pid})[pid].cookie }

func parseEnvironment(env []byte) environment {
	if len(env) == 0 {
		return environment{unreadable: true}
	}
	for len(env) > 0 {
		word, rest, _ := bytes.Cut(env, []byte{0})
		if v, ok := bytes.CutPrefix(word, []byte(cookieVar+"=")); ok {
			return environment{cookie: string(v)}
		}
		env = rest
	}
	return environment{}
}

// A process that hangs in the kernel, on a file server that is gone, can hold locks that its files
// in /proc need. Whoever reads these files hangs, too, as ps does. So processes that do not answer
// are left out until they do.

const (
	procShortTimeout = 100 * time.Millisecond // for each further one of the same snapshot
	hungTimeout      = 2 * time.Second        // before the end of a tree counts as complete without them
)

var procTimeout = time.Second // for the first process that does not answer; tests lengthen it

// hung holds processes whose files in /proc do not answer.
type hung struct {
	mu   sync.Mutex
	pids map[int]bool
}

var hungProcs = hung{pids: map[int]bool{}}

func (h *hung) isHung(pid int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pids[pid]
}

func (h *hung) set(pid int, yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if yes {
		h.pids[pid] = true
	} else {
		delete(h.pids, pid)
	}
}

// ownProcs returns the processes of our user, which may belong to any job. A directory in /proc
// always answers.
func (h *hung) ownProcs() (out []proc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid := range h.pids {
		if hasOurUser(pid) {
			out = append(out, proc{pid: pid})
		}
	}
	return out
}

// procWalk queries one process after the other in its own goroutine.
type procWalk struct {
	mu     sync.Mutex
	index  int // index of the process that is being queried
	asking bool
	left   bool
}

// each calls ask for all of pids that answer, without waiting for the others. tell runs in a
// goroutine that may outlive the call, but never after it.
func (h *hung) each(pids []int, ask func(pid int) (tell func())) {
	patience := procTimeout
	for len(pids) > 0 {
		w := &procWalk{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.walkProcs(w, pids, ask)
		}()
		at, timer := 0, time.NewTimer(patience)
		for waiting := true; waiting; {
			select {
			case <-done:
				timer.Stop()
				return
			case <-timer.C:
			}
			w.mu.Lock()
			if w.asking && w.index == at {
				w.left, waiting = true, false
				h.set(pids[at], true)
			}
			at = w.index
			w.mu.Unlock()
			timer.Reset(patience)
		}
		timer.Stop()
		pids, patience = pids[at+1:], procShortTimeout
	}
}

func (h *hung) walkProcs(w *procWalk, pids []int, ask func(pid int) func()) {
	for i, pid := range pids {
		if h.isHung(pid) {
			continue
		}
		w.mu.Lock()
		w.index, w.asking = i, true
		w.mu.Unlock()
		tell := ask(pid)
		w.mu.Lock()
		w.asking = false
		if w.left { // each has given up this process, which answers now
			h.set(pid, false)
			w.mu.Unlock()
			return
		}
		tell()
		w.mu.Unlock()
	}
}

// procs returns the processes among pids that exist and answer.
func (h *hung) procs(pids []int) (found []proc) {
	h.each(pids, func(pid int) func() {
		p, ok := readProc(pid)
		return func() {
			if ok {
				found = append(found, p)
			}
		}
	})
	return found
}

// waitUntilNone waits for a while until no process of ours hangs. It returns false if some did and
// answer now, so that it is worth looking again.
func (h *hung) waitUntilNone() bool {
	if len(h.ownProcs()) == 0 {
		return true
	}
	for until := uptime() + hungTimeout; uptime() < until; time.Sleep(procShortTimeout) {
		if len(h.ownProcs()) == 0 {
			return false
		}
	}
	return true
}
