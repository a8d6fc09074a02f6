//go:build linux

package remote

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// plan says at which one call of which process what goes wrong. It reaches the
// processes of a test through the environment, which only the test binary reads.
type plan struct {
	Dir     string // of the notes: calls (what was called), fired (the fault has happened)
	Root    string // of the world: what stands before a path is of no meaning
	Helper  int    // the how-manyth helper of the scenario, and its supervisors
	Network bool   // treat every file system as NFS
	Count   bool   // note every call
	Call    callKey
	Nth     int // of the calls that look the same in that process, from 1
	How     string
}

// callKey is what calls that look the same share.
type callKey struct {
	Role string // "host" or "slot", and the number of the helper
	Op   string
	Path string // every number in it is #
}

const planEnv = "TEST_FAULT"

// The ways in which a call goes wrong beside an error.
const (
	howLate   = "late EIO" // it is made, and its answer lost
	howShort  = "short"    // it writes the first half
	howKill   = "killed before"
	howKilled = "killed after"
	howHang   = "hang" // until there is a file go in Dir
	howFull   = "full" // fails as long as there is a file full in Dir, for all calls
)

var errnos = map[string]unix.Errno{"EIO": unix.EIO, "ENOSPC": unix.ENOSPC, "EDQUOT": unix.EDQUOT,
	"ESTALE": unix.ESTALE, "EINTR": unix.EINTR, "EROFS": unix.EROFS, howLate: unix.EIO}

func (p *plan) String() string {
	return fmt.Sprintf("%s %s %s #%d: %s", p.Call.Role, p.Call.Op, p.Call.Path, p.Nth, p.How)
}

func (p *plan) env() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return planEnv + "=" + string(b)
}

var digits = regexp.MustCompile(`[0-9]+`)

func (p *plan) key(role, op, path string) callKey {
	return callKey{role, op, digits.ReplaceAllString(strings.TrimPrefix(path, p.Root), "#")}
}

// fired tells where the fault has happened; "" if it has not.
func (p *plan) fired() string {
	b, _ := os.ReadFile(filepath.Join(p.Dir, "fired"))
	return string(b)
}

// plantFault makes this process, one of ours on the far side, do what the plan says.
func plantFault(word string) {
	text := os.Getenv(planEnv)
	if text == "" {
		return
	}
	p := &plan{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		panic(err)
	}
	if p.Network {
		clear(localTypes)
	}
	role := fmt.Sprintf("%s%d", strings.TrimPrefix(word, "__"), p.Helper)
	if p.How == howFull {
		fault = p.full
		return
	}
	var calls *os.File
	if p.Count {
		calls, _ = os.OpenFile(filepath.Join(p.Dir, "calls"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	var mu sync.Mutex
	seen, due := 0, false // due: the call at hand is to go wrong when it has been made
	fault = func(op, path string, done bool) error {
		k := p.key(role, op, path)
		if calls != nil && !done {
			fmt.Fprintf(calls, "%s\t%s\t%s\n", k.Role, k.Op, k.Path)
		}
		if k != p.Call {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if !done {
			seen++
			due = seen == p.Nth
		}
		if !due || done != (p.How == howLate || p.How == howKilled) {
			return nil
		}
		due = false
		note, err := os.OpenFile(filepath.Join(p.Dir, "fired"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil // in another process of that role, already
		}
		fmt.Fprintf(note, "%d %s", os.Getpid(), path)
		note.Close()
		for p.How == howHang {
			if _, err := os.Stat(filepath.Join(p.Dir, "go")); err == nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		if p.How == howKill || p.How == howKilled {
			unix.Kill(os.Getpid(), unix.SIGKILL)
			time.Sleep(time.Hour)
		}
		if p.How == howShort {
			return unix.EAGAIN
		}
		return errnos[p.How]
	}
}

// full fails, while the disk is full, what needs room; Call.Path says where
// ("spool", "attempts" or "" for both) and Call.Op how.
func (p *plan) full(op, path string, done bool) error {
	if done || !needsRoom[op] {
		return nil
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "full")); err != nil {
		return nil
	}
	where := "spool"
	if strings.Contains(path, "/run/") || attemptFile.MatchString(path) {
		where = "attempts"
	}
	if p.Call.Path != "" && p.Call.Path != where {
		return nil
	}
	return errnos[p.Call.Op]
}

var (
	needsRoom   = map[string]bool{"create": true, "write": true, "fsync": true, "mkdir": true, "mkfifo": true, "link": true}
	attemptFile = regexp.MustCompile(`^[0-9.]+\.(status|out|err)`)
)
