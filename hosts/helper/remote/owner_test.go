//go:build linux

package remote

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

// machine is a simulated machine on which people are logged in.
type machine struct {
	t    *testing.T
	root string
}

func (m machine) path(name string) string {
	p := filepath.Join(m.root, name)
	must(m.t, os.MkdirAll(filepath.Dir(p), 0o755))
	return p
}

func (m machine) file(name, text string) { write(m.t, m.path(name), text) }

// used creates a terminal that was last read the given time ago.
func (m machine) used(name string, ago time.Duration) {
	m.file(name, "")
	at := time.Now().Add(-ago)
	must(m.t, os.Chtimes(m.path(name), at, at))
}

// session creates a logind session of alice at the console.
func (m machine) session(name, kind, more string) {
	m.file("run/systemd/sessions/"+name,
		fmt.Sprintf("# private\nUID=%d\nACTIVE=1\nSTATE=active\nREMOTE=0\nSEAT=seat0\nCLASS=user\nTYPE=%s\n%s",
			os.Getuid(), kind, more))
}

// TestOwnersAreFound checks how the people who use a machine, and the files that ask to leave it
// alone, are found (B7).
func TestOwnersAreFound(t *testing.T) {
	me := os.Getuid()
	nobody := site{adminUID: -1, selfUID: -1}
	for _, c := range []struct {
		name    string
		mode    string
		prepare func(m machine)
		site    site
		want    hosts.Owner
	}{
		{"nobody", "suspend", func(m machine) {}, nobody, hosts.Owner{}},
		{"a terminal in use", "pause", func(m machine) { m.used("dev/pts/3", time.Minute) }, nobody,
			hosts.Owner{Who: "alice uses pts/3"}},
		{"the last one to use it", "pause",
			func(m machine) { m.used("dev/pts/1", 2*time.Minute); m.used("dev/pts/3", time.Minute) },
			nobody,
			hosts.Owner{Who: "alice uses pts/3"}},
		{"suspend", "suspend", func(m machine) { m.used("dev/pts/3", time.Minute) }, nobody,
			hosts.Owner{Who: "alice uses pts/3", Suspend: true}},
		{"ignore", "", func(m machine) { m.used("dev/pts/3", time.Minute) }, nobody, hosts.Owner{}},
		{"an idle terminal", "pause", func(m machine) { m.used("dev/pts/3", 11*time.Minute) }, nobody, hosts.Owner{}},
		{"our own terminal", "pause", func(m machine) { m.used("dev/pts/3", time.Minute) },
			site{adminUID: -1, selfUID: me}, hosts.Owner{}},
		{"a console that nobody is logged in at", "pause", func(m machine) { m.used("dev/tty2", time.Minute) }, nobody,
			hosts.Owner{}},
		{"our own console", "pause", func(m machine) {
			m.used("dev/tty2", time.Minute)
			m.session("2", "tty", "TTY=tty2\n")
		}, site{adminUID: -1, selfUID: me}, hosts.Owner{Who: "alice uses tty2"}},
		{"a session through ssh", "pause",
			func(m machine) { m.session("2", "tty", "TTY=tty2\nREMOTE=1\n"); m.used("dev/tty2", 0) },
			nobody,
			hosts.Owner{}},
		{"the screen", "suspend", func(m machine) { m.session("2", "wayland", "") }, nobody,
			hosts.Owner{Who: "alice uses the screen", Suspend: true}},
		{"a locked screen", "suspend", func(m machine) { m.session("locked", "wayland", "") }, nobody, hosts.Owner{}},
		{"an idle screen", "suspend", func(m machine) { m.session("idle", "x11", "") }, nobody, hosts.Owner{}},
		{"another session is shown", "suspend", func(m machine) { m.session("2", "x11", "ACTIVE=0\n") }, nobody,
			hosts.Owner{}},
		{"the login screen", "suspend", func(m machine) { m.session("c1", "x11", "CLASS=greeter\n") }, nobody,
			hosts.Owner{}},
		{"utmp", "pause", func(m machine) {
			m.file("proc/77/stat", "")
			m.file("run/utmp", utmp(6, 77, "tty1", "alice")+utmp(7, 78, ":0", "alice")+utmp(7, 77, "tty2", "alice"))
			m.used("dev/tty2", time.Minute)
		}, nobody, hosts.Owner{Who: "alice uses tty2"}},
		{"the screen in utmp", "pause", func(m machine) {
			m.file("proc/77/stat", "")
			m.file("run/utmp", utmp(7, 77, ":0", "alice")+"cut off")
		}, nobody, hosts.Owner{Who: "alice uses the screen"}},
		{"busy file of one at the console", "",
			func(m machine) { m.session("2", "x11", ""); m.file("home/alice/.dcs-busy", "") },
			nobody,
			hosts.Owner{Who: "/home/alice/.dcs-busy is there"}},
		{"busy file of one who is away", "", func(m machine) { m.file("home/alice/.dcs-busy", "") }, nobody,
			hosts.Owner{}},
		{"a link is no file", "", func(m machine) {
			m.session("2", "x11", "")
			m.file("other", "")
			os.Symlink(m.path("other"), m.path("home/alice/.dcs-busy"))
		}, nobody, hosts.Owner{}},
		{"busy file of root", "", func(m machine) { m.file("var/tmp/.dcs-busy", "") }, site{adminUID: me, selfUID: -1},
			hosts.Owner{Who: "/var/tmp/.dcs-busy is there"}},
		{"another name of a file of root", "", func(m machine) {
			m.file("other", "")
			os.Link(m.path("other"), m.path("var/tmp/.dcs-busy"))
		}, site{adminUID: me, selfUID: -1}, hosts.Owner{}},
		{"busy file of anybody", "", func(m machine) { m.file("var/tmp/.dcs-busy", "") }, nobody, hosts.Owner{}},
		{"busy file in /var/tmp of one at the console", "",
			func(m machine) { m.session("2", "x11", ""); m.file("var/tmp/.dcs-busy", "") },
			nobody,
			hosts.Owner{Who: "/var/tmp/.dcs-busy is there"}},
		{"suspend file", "", func(m machine) { m.file("var/tmp/.dcs-suspend", ""); m.file("var/tmp/.dcs-busy", "") },
			site{adminUID: me, selfUID: -1}, hosts.Owner{Who: "/var/tmp/.dcs-suspend is there", Suspend: true}},
		{"a person outweighs a busy file", "suspend",
			func(m machine) { m.used("dev/pts/3", 0); m.file("var/tmp/.dcs-busy", "") }, site{adminUID: me,
				selfUID: -1}, hosts.Owner{Who: "alice uses pts/3", Suspend: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machine{t, t.TempDir()}
			m.file("etc/passwd", fmt.Sprintf("root:x:4242:0::/root:/bin/sh\nalice:x:%d:5:Alice:/home/alice:/bin/sh\n",
				me))
			m.file("bin/loginctl", "#!/bin/sh\ncase $2 in locked) echo LockedHint=yes;; idle) echo IdleHint=yes;; "+
				"*) echo IdleHint=no;; esac\n")
			os.Chmod(m.path("bin/loginctl"), 0o700)
			t.Setenv("PATH", m.path("bin"))
			c.prepare(m)
			c.site.root = m.root
			if got := newOwners(&hosts.Open{Owner: c.mode}, c.site).currentOwner(); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func utmp(kind uint16, pid uint32, line, user string) string {
	b := make([]byte, utmpBytes())
	binary.NativeEndian.PutUint16(b, kind)
	binary.NativeEndian.PutUint32(b[4:], pid)
	copy(b[8:], line)
	copy(b[44:], user)
	return string(b)
}

// TestOwnerComesBack checks that a terminal counts as in use when it is read, even if the clock
// jumps.
func TestOwnerComesBack(t *testing.T) {
	m := machine{t, t.TempDir()}
	m.used("dev/pts/3", 2*time.Hour)
	o := newOwners(&hosts.Open{Owner: hosts.OwnerPause}, site{m.root, -1, -1})
	if got := o.currentOwner(); got.Who != "" {
		t.Fatalf("%+v at an idle terminal", got)
	}
	m.used("dev/pts/3", time.Hour) // the clock was set back
	if got := o.currentOwner(); got.Who == "" {
		t.Error("nobody is there though a terminal was used")
	}
}

func (w *world) machine() machine {
	return machine{w.t.(*testing.T), filepath.Join(filepath.Dir(w.base), "machine")}
}

// suspend asks that jobs are suspended on the world's machine if on is true, and withdraws the
// request otherwise.
func (w *world) suspend(on bool) {
	w.t.Helper()
	if on {
		w.machine().file("var/tmp/"+suspendFile, "")
	} else if err := os.Remove(w.machine().path("var/tmp/" + suspendFile)); err != nil {
		w.t.Fatal(err)
	}
}

// tree returns the n processes that wrote their ids into the file pids.
func (w *world) tree(n int) (pids []int) {
	w.t.Helper()
	polltest.Until(w.t, "the tree is there", func() bool {
		b, _ := os.ReadFile(filepath.Join(w.runDir, "pids"))
		pids = nil
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	})
	return pids
}

// until waits until all the processes that live are suspended, or none is.
func (w *world) until(what string, pids []int, suspended bool) {
	w.t.Helper()
	polltest.Until(w.t, what, func() bool {
		t := scan(nil)
		for _, pid := range pids {
			if p, ok := t[pid]; ok && p.state != 'Z' && isSuspended(t, p) != suspended {
				return false
			}
		}
		return true
	})
}

// isSuspended reports whether a process is stopped, or waits in vfork (state D) for a child that is
// stopped, so that it cannot stop itself.
func isSuspended(t table, p proc) bool {
	if p.state != 'D' {
		return p.state == 'T'
	}
	for _, c := range t {
		if c.ppid == p.pid && c.state == 'T' {
			return true
		}
	}
	return false
}

// processes returns the processes of the program on the world's machine that run with the argument
// word.
func (w *world) processes(word string) (list []proc) {
	for pid, p := range scan(nil) {
		cmd := string(procFile(pid, "cmdline"))
		if strings.Contains(cmd, "\x00"+word+"\x00"+w.spool().dir) && p.state != 'Z' {
			list = append(list, p)
		}
	}
	return list
}

func (w *world) kill(word string) {
	w.t.Helper()
	list := w.processes(word)
	if len(list) == 0 {
		w.t.Fatalf("there is no %s", word)
	}
	signalAll(list, unix.SIGKILL)
}

// TestWholeTreeIsSuspended checks that the whole tree of a job is suspended, including processes
// that left the session, lost their parent, or cleared their environment (T4). The time in
// suspension does not count for the job's timeout, and the outcome reports it.
func TestWholeTreeIsSuspended(t *testing.T) {
	t.Parallel()
	due := filepath.Join(t.TempDir(), "due")
	w := newWorld(t, timeoutEnv+"="+due)
	ready := w.fifo("ready")
	f := w.start(w.open())
	j := job("1.1", "echo $$ >> pids; "+escapingProcesses(w, ready))
	j.Timeout = 4 * time.Second
	f.launch(j)
	w.receiveLines(ready, 3)
	pids := w.tree(4)
	w.suspend(true)
	w.until("the tree is suspended", pids, true)
	write(t, due, "") // however slow this machine is, the timeout passes when the tree is suspended, or later
	await(f, func(b *hosts.Heartbeat) bool {
		return b.Owner == hosts.Owner{Who: "/var/tmp/.dcs-suspend is there", Suspend: true} && b.Suspended > time.Second
	})
	f.answers("1.1", hosts.IsRunning)
	w.suspend(false)
	w.until("the tree goes on", pids, false)
	if o := f.exit("1.1"); !o.TimedOut || o.Suspended < time.Second || o.Elapsed() < j.Timeout-time.Second/10 {
		t.Errorf("got outcome %+v, want a timeout that does not count the time suspended", o)
	}
	await(f, func(b *hosts.Heartbeat) bool { return b.Owner.Who == "" && b.Suspended >= time.Second })
}

// TestSuspendSeesEveryResume checks that each time when a process continues everything, the
// suspender learns it, also if both happen at the same time. Otherwise it would stop nothing again.
func TestSuspendSeesEveryResume(t *testing.T) {
	ctl, err := openControl(t.TempDir())
	must(t, err)
	resumed, seen := 0, 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for resumed < 20_000 {
			if _, to := ctl.suspended(); to != 0 {
				ctl.markResumed()
				resumed++
			}
			runtime.Gosched() // with one processor, each would otherwise wait for the end of the other's time slice
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if ctl.suspend(uptime() + suspendLease) {
			seen++
		}
		runtime.Gosched()
	}
	if seen != resumed && seen != resumed+1 { // the first suspension follows no resume
		t.Errorf("%d resumes, and %d were seen", resumed, seen)
	}
}

// TestSuspendedJobCanBeKilled checks that a suspended job can be killed and that its handler of
// TERM runs.
func TestSuspendedJobCanBeKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.open()
	o.GraceSeconds = 60
	f := w.start(o)
	f.launch(job("1.1",
		`trap 'sleep 0.3; echo saved > mark; exit 3' TERM; echo $$ > pids; while :; do sleep 0.05; done`))
	pids := w.tree(1)
	w.suspend(true)
	w.until("the job is suspended", pids, true)
	f.kill("1.1")
	if o := f.exit("1.1"); !o.Stopped || o.Exit != 3 {
		t.Errorf("got outcome %+v, want it stopped with exit code 3", o)
	}
	if _, err := os.Stat(filepath.Join(w.runDir, "mark")); err != nil {
		t.Error(err)
	}
}

// TestNothingStaysSuspended checks that no tree stays suspended after the death of the process that
// suspends it.
func TestNothingStaysSuspended(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	for _, c := range []struct {
		name  string
		death func(w *world, f *helperProcess)
		ends  bool // the tree is ended
	}{
		{"dispatcher", func(w *world, f *helperProcess) { f.in.Close(); f.wait() }, false},
		{"helper", func(w *world, f *helperProcess) { f.crash() }, false},
		{"supervisor and helper", func(w *world, f *helperProcess) {
			f.cmd.Process.Signal(unix.SIGSTOP)
			w.kill(wordSlot)
			f.crash()
		}, false},
		{"supervisor", func(w *world, f *helperProcess) { f.mayDie = true; w.kill(wordSlot) }, true},
		{"helper and suspender", func(w *world, f *helperProcess) {
			f.cmd.Process.Signal(unix.SIGSTOP)
			w.kill(wordSuspend)
			f.crash()
		}, false},
		{"all", func(w *world, f *helperProcess) {
			f.cmd.Process.Signal(unix.SIGSTOP)
			w.kill(wordSuspend)
			w.kill(wordSlot)
			f.crash()
		}, true},
		{"helper stopped", func(w *world, f *helperProcess) { f.cmd.Process.Signal(unix.SIGSTOP) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.start(w.open())
			f.launch(job("1.1", "echo $$ >> pids; "+
				"setsid sh -c 'echo $$ >> pids; while :; do sleep 0.1; done' & while :; do sleep 0.1; done"))
			pids := w.tree(2)
			if c.name == "all" {
				pids = pids[:1] // the kernel continues the process group
			}
			w.suspend(true)
			w.until("the tree is suspended", pids, true)
			c.death(w, f)
			w.until("the tree goes on", pids, false)
			if c.ends {
				polltest.Until(t, "the tree has ended", func() bool {
					p, ok := readProc(pids[0])
					return !ok || p.state == 'Z'
				})
			}
			if c.name == "helper stopped" {
				f.cmd.Process.Signal(unix.SIGCONT)
				f.crash()
			}
			if c.name != "supervisor" {
				w.suspend(false)
				polltest.Until(t, "the suspender has left", func() bool { return len(w.processes(wordSuspend)) == 0 })
				f = w.start(w.open())
				f.mayDie = true
			}
			f.kill("1.1")
		})
	}
}

// TestKilledSuspenderIsReplaced checks that a suspender that is killed is replaced, and that the
// processes that it had suspended continue in the end.
func TestKilledSuspenderIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.start(w.open())
	f.launch(job("1.1", "echo $$ > pids; while :; do sleep 0.1; done"))
	pids := w.tree(1)
	w.suspend(true)
	w.until("the job is suspended", pids, true)
	first := w.processes(wordSuspend)[0]
	w.kill(wordSuspend)
	polltest.Until(t, "another suspender is there", func() bool {
		list := w.processes(wordSuspend)
		return len(list) == 1 && list[0].pid != first.pid
	})
	w.suspend(false)
	w.until("the job goes on", pids, false)
	f.kill("1.1")
	f.exit("1.1")
}
