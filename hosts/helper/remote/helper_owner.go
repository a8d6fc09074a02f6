//go:build linux

package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

// The files by which people ask that a host is left alone. They are in the home directory of
// a user at the console, or in /var/tmp.
const (
	busyFile    = ".dcs-busy"    // no job is started
	suspendFile = ".dcs-suspend" // no job is started, and running jobs are suspended
)

// site describes the machine on which owners are looked for. Tests use made-up machines.
type site struct {
	root  string // prefix of all paths; "" on a real host
	admin int    // uid whose files in /var/tmp count
	self  int    // uid whose terminals are ignored, except at the console
}

// owners finds out who uses the machine. It is owned by the goroutine that calls look.
type owners struct {
	site
	mode     string
	idle     time.Duration // a user whose terminal is unused for so long counts as gone
	used     map[string]use
	accounts map[string]account // cache, by name or uid
}

// use records the last use of a terminal or a session.
type use struct {
	mark int64         // changes with each use; 0 at first
	at   time.Duration // boot clock
}

// login is a login of a user at the console.
type login struct {
	account
	tty     string // "tty2"; "" for a graphical session
	session string // logind's name of a graphical session; "" without logind
	shown   bool   // the graphical session is on the screen
}

type account struct {
	name string
	uid  int
	home string // "" if unknown
}

func newOwners(o *hosts.Open, s site) *owners {
	return &owners{site: s, mode: o.Owner, idle: cmp.Or(o.OwnerIdle, hosts.DefaultOwnerIdle), accounts: map[string]account{}}
}

// look returns who or what holds the host back. A request to suspend takes precedence.
func (o *owners) look() hosts.Owner {
	var held hosts.Owner
	logins := o.logins()
	for _, name := range []string{suspendFile, busyFile} {
		if path := o.asks(name, logins); path != "" {
			held = hosts.Owner{Who: path + " is there", Suspend: name == suspendFile}
			break
		}
	}
	if o.mode == "" || held.Suspend {
		return held
	}
	if who := o.present(logins); who != "" && (held.Who == "" || o.mode == hosts.OwnerSuspend) {
		held = hosts.Owner{Who: who, Suspend: o.mode == hosts.OwnerSuspend}
	}
	return held
}

// asks returns the path of a file of that name that counts, or "".
func (o *owners) asks(name string, logins []login) string {
	by := func(path string, uids ...int) bool {
		var st unix.Stat_t
		if unix.Lstat(o.root+path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return false
		}
		for _, uid := range uids {
			if int(st.Uid) == uid {
				return true
			}
		}
		return false
	}
	common := filepath.Join("/var/tmp", name)
	if by(common, o.admin) {
		return common
	}
	for _, l := range logins {
		if by(common, l.uid) { // for users whose home directory is closed to us
			return common
		}
		if own := filepath.Join(l.home, name); l.home != "" && by(own, l.uid, o.admin) {
			return own
		}
	}
	return ""
}

// present describes the latest use of the machine within the idle time, or returns "".
func (o *owners) present(logins []login) string {
	who, least := "", o.idle
	now, wall := uptime(), time.Now()
	next := map[string]use{}
	note := func(key string, u use, user func() string, where string) {
		next[key] = u
		if age := now - u.at; age < least {
			who, least = user()+" uses "+where, age
		}
	}
	// Reading input sets the access time of a terminal. Compare it with the clock only when the
	// terminal is first seen, because clocks jump.
	terminal := func(name string, spare int) {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(o.root, "dev", name), &st) != nil || int(st.Uid) == spare {
			return
		}
		u := o.used[name]
		if read := st.Atim.Nano(); u.mark != read {
			at := now
			if u.mark == 0 {
				at -= max(0, wall.Sub(time.Unix(0, read)))
			}
			u = use{read, at}
		}
		note(name, u, func() string { return o.account(strconv.Itoa(int(st.Uid))).name }, name)
	}
	lines, _ := os.ReadDir(o.root + "/dev/pts")
	for _, e := range lines {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			terminal("pts/"+e.Name(), o.self)
		}
	}
	for _, l := range logins {
		if l.tty != "" {
			terminal(l.tty, -1)
			continue
		}
		key := cmp.Or(l.session, ":")
		u, known := o.used[key]
		if l.shown && !idleSession(l.session) {
			u = use{at: now}
		} else if !known {
			u = use{at: now - o.idle}
		}
		note(key, u, func() string { return l.name }, "the screen")
	}
	o.used = next
	return who
}

// idleSession asks logind whether a graphical session is idle or locked.
func idleSession(session string) bool {
	if session == "" {
		return false
	}
	text := output("loginctl", "show-session", session, "-p", "IdleHint", "-p", "LockedHint")
	return bytes.Contains(text, []byte("IdleHint=yes")) || bytes.Contains(text, []byte("LockedHint=yes"))
}

// output returns what a program prints. The helper collects every child of its own, so how
// the program ended is not known.
func output(argv ...string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.WaitDelay = time.Second
	text, _ := c.Output()
	return text
}

// logins lists who is logged in at the console: as logind knows, or without it as utmp does.
func (o *owners) logins() (list []login) {
	dir := o.root + "/run/systemd/sessions"
	entries, err := os.ReadDir(dir)
	if err != nil {
		for _, path := range []string{"/run/utmp", "/var/run/utmp"} {
			if b, err := os.ReadFile(o.root + path); err == nil {
				return o.fromUtmp(b)
			}
		}
		return nil
	}
	for _, e := range entries {
		if !e.Type().IsRegular() { // beside them are named pipes
			continue
		}
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		is := map[string]string{}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			is[key] = value
		}
		if is["CLASS"] != "user" || is["REMOTE"] == "1" || is["SEAT"] == "" || is["STATE"] == "closing" {
			continue
		}
		l := login{account: o.account(is["UID"])}
		if t := is["TYPE"]; t == "x11" || t == "wayland" || t == "mir" {
			l.session, l.shown = e.Name(), is["ACTIVE"] == "1"
		} else if l.tty = is["TTY"]; l.tty == "" || !filepath.IsLocal(l.tty) {
			continue
		}
		list = append(list, l)
	}
	return list
}

// utmpBytes is the size of a record of utmp (utmp(5)).
func utmpBytes() int {
	if runtime.GOARCH == "arm64" {
		return 400
	}
	return 384
}

// fromUtmp reads the users at the console from utmp.
func (o *owners) fromUtmp(b []byte) (list []login) {
	const userProcess = 7
	text := func(b []byte) string {
		s, _, _ := bytes.Cut(b, []byte{0})
		return string(s)
	}
	for ; len(b) >= utmpBytes(); b = b[utmpBytes():] {
		kind, pid := binary.NativeEndian.Uint16(b), binary.NativeEndian.Uint32(b[4:])
		line, user := text(b[8:40]), text(b[44:76])
		if _, err := os.Stat(o.root + "/proc/" + strconv.Itoa(int(pid))); err != nil || kind != userProcess {
			continue // records of what has died may stay
		}
		switch l := (login{account: o.account(user)}); {
		case strings.HasPrefix(line, ":"):
			l.shown = true
			list = append(list, l)
		case strings.HasPrefix(line, "tty") && filepath.IsLocal(line):
			l.tty = line
			list = append(list, l)
		}
	}
	return list
}

// account finds a user by name or uid: in /etc/passwd, or where getent looks.
func (o *owners) account(key string) account {
	if a, ok := o.accounts[key]; ok {
		return a
	}
	a := account{name: key, uid: -1}
	if uid, err := strconv.Atoi(key); err == nil {
		a = account{name: "user " + key, uid: uid}
	}
	parse := func(text []byte) bool {
		for line := range strings.Lines(string(text)) {
			if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && (f[0] == key || f[2] == key) {
				uid, err := strconv.Atoi(f[2])
				if err == nil && filepath.IsAbs(f[5]) {
					a = account{f[0], uid, f[5]}
					return true
				}
			}
		}
		return false
	}
	if text, _ := os.ReadFile(o.root + "/etc/passwd"); !parse(text) && key != "" && key[0] != '-' {
		parse(output("getent", "passwd", key))
	}
	o.accounts[key] = a
	return a
}

// Jobs are suspended by a process of its own, the suspender, which the helper starts while an
// owner of the machine wants that. It stops the trees of all jobs and says so in the control
// page, for a short time that it prolongs. Whatever dies, something that is left continues the
// trees:
//
//   - the helper, and with it the dispatcher: the suspender reads the end of its input, and
//     continues them;
//   - the suspender: the helper starts another, or continues them itself;
//   - both: supervisors see that the time in the control page has passed, and continue them;
//   - a supervisor: the helper ends its tree; without a helper the suspender continues it;
//   - all three: the kernel sends SIGHUP and SIGCONT to the stopped process groups, because each
//     is orphaned by the death of its supervisor.

const (
	suspendLease         = 10 * time.Second      // how long the control page is believed
	suspendInterval      = 3 * time.Second       // between two looks for processes that are not stopped
	suspendShortInterval = 50 * time.Millisecond // the same, after some have been found
	maxShortIntervals    = 20                    // so many looks in a row are soon
)

// suspend records that jobs are suspended until then, unless it is prolonged.
func (c *control) suspend(to time.Duration) {
	was := max(time.Duration(c.at(ctlSuspendTo).Load()), uptime())
	c.at(ctlSuspended).Add(int64(to - was)) // first, so that nobody counts too little in between
	c.at(ctlSuspendTo).Store(int64(to))
}

// markResumed records that jobs continue.
func (c *control) markResumed() {
	if to := c.at(ctlSuspendTo).Swap(0); to != 0 {
		c.at(ctlSuspended).Add(int64(uptime()) - to) // less what was left, or more by what it took to notice
	}
}

// suspended returns for how long jobs have been suspended on this host in all, and until when
// they are; 0: they are not.
func (c *control) suspended() (total, to time.Duration) {
	to = time.Duration(c.at(ctlSuspendTo).Load())
	total = time.Duration(c.at(ctlSuspended).Load())
	if to != 0 {
		total += min(0, uptime()-to)
	}
	return total, to
}

// isSuspendOverdue reports whether jobs are still marked as suspended after the time for that.
func (c *control) isSuspendOverdue() bool {
	_, to := c.suspended()
	return to != 0 && uptime() > to
}

// trees returns the processes of all jobs of a run on this host, and the supervisors: what
// carries a cookie with the prefix, and what is below a supervisor.
func (s spool) trees(t table, prefix string) (members []proc, supervisors map[int]bool) {
	supervisors = map[int]bool{}
	var below []int
	for pid, p := range t {
		if endable(p) && s.isSupervisor(p) {
			supervisors[pid] = true
			below = append(below, t.under(pid)...)
		}
	}
	for _, p := range withCookie(func(c string) bool { return strings.HasPrefix(c, prefix) }, pgroup{}, nil)(t) {
		below = append(below, p.pid)
	}
	return t.pick(below, supervisors), supervisors
}

// resume continues the trees of all jobs.
func (s spool) resume(c *control, prefix string) {
	members, _ := s.trees(scan(nil), prefix)
	signalAll(members, unix.SIGCONT)
	c.markResumed()
}

// stopper stops trees. Each process is stopped once: one that was continued since is being
// ended, and so are its children.
type stopper struct {
	spool  spool
	prefix string
	told   map[int]uint64 // start of processes that were stopped, by pid
}

// round stops what has not been stopped, and reports whether there was anything.
func (s *stopper) round() bool {
	t := scan(nil)
	members, _ := s.spool.trees(t, s.prefix)
	var fresh []proc
	for _, p := range members {
		up, known := t[p.ppid]
		if s.told[p.pid] == p.start || known && s.told[up.pid] == up.start && up.state != 'T' && up.state != 'D' {
			continue
		}
		s.told[p.pid] = p.start
		fresh = append(fresh, p)
	}
	signalAll(fresh, unix.SIGSTOP)
	return len(fresh) > 0
}

// suspendMain is `__suspend SPOOL GENERATION`: the suspender. It ends when its input does, when
// it has heard nothing for suspendLease, or when another helper serves the spool, which then
// sees to the jobs.
func suspendMain(args []string) error {
	if len(args) != 2 {
		return errors.New("this is started by the helper, not by people")
	}
	generation, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	keepDescriptors()
	relaxTimers(helperSlack)
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	s := spool{args[0]}
	cfg, err := s.readConfig(generation)
	if err != nil {
		return err
	}
	ctl, err := openControl(s.dir)
	if err != nil {
		return err
	}
	st := stopper{s, cookie(cfg.Run, cfg.Host, ""), map[int]uint64{}}
	heard, hurry := uptime(), 0
	for uptime()-heard < suspendLease && ctl.at(ctlEnd).Load() == 0 {
		if ctl.at(ctlGeneration).Load() != generation {
			return nil
		}
		if _, to := ctl.suspended(); to == 0 {
			clear(st.told) // at first, or somebody has continued everything
		}
		ctl.suspend(uptime() + suspendLease)
		wait := suspendInterval
		if hurry++; !st.round() {
			hurry = 0
		} else if hurry < maxShortIntervals {
			wait = suspendShortInterval
		}
		input := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
		if n, _ := unix.Poll(input, int(wait/time.Millisecond)); n > 0 {
			var b [64]byte
			if n, err := unix.Read(0, b[:]); n == 0 || err != nil && err != unix.EINTR {
				break
			}
			heard = uptime()
		}
	}
	s.resume(ctl, st.prefix)
	return nil
}

// watchOwner looks for owners of the machine, and suspends and continues jobs. It may hang
// with the home directory of a user; then the suspender hears nothing and continues the jobs.
func (h *helper) watchOwner() {
	<-h.ownerKnown
	pipe := -1 // to the suspender; -1: there is none
	for ; ; time.Sleep(h.lim.beat) {
		held := h.owners.look()
		if was := h.owner.Swap(&held); *was != held {
			h.files.beatNow()
		}
		h.mu.Lock()
		wanted := held.Suspend && len(h.running) > 0
		h.mu.Unlock()
		if wanted && pipe < 0 {
			var err error
			if pipe, err = h.startSuspender(); err != nil {
				h.trouble("jobs cannot be suspended: %v", err)
			}
		}
		if pipe < 0 {
			if _, to := h.ctl.suspended(); to != 0 && !wanted { // left by one that was killed
				h.spool.resume(h.ctl, cookie(h.cfg.Run, h.cfg.Host, ""))
			}
			continue
		}
		if _, err := unix.Write(pipe, []byte{'\n'}); !wanted || err != nil && err != unix.EAGAIN {
			unix.Close(pipe)
			pipe = -1
		}
	}
}

// firstOwnerTimeout bounds how long the hello waits for the first look at the owners.
const firstOwnerTimeout = time.Second

// firstOwner looks for owners before the hello, so that nothing is started on a host that is
// to be left alone.
func (h *helper) firstOwner() hosts.Owner {
	h.owner.Store(&hosts.Owner{})
	withTimeout(firstOwnerTimeout, func() {
		held := h.owners.look()
		h.owner.Store(&held)
		close(h.ownerKnown)
	})
	return *h.owner.Load()
}

// startSuspender starts a suspender, and returns the descriptor of its input.
func (h *helper) startSuspender() (int, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, err
	}
	defer unix.Close(p[0])
	h.mu.Lock() // so that it is not taken for a stray
	defer h.mu.Unlock()
	if h.closing {
		unix.Close(p[1])
		return -1, nil
	}
	pid, err := spawn([]uintptr{uintptr(p[0]), 2, 2}, wordSuspend, h.spool.dir, strconv.FormatInt(h.generation, 10))
	if err != nil {
		unix.Close(p[1])
		return -1, err
	}
	h.suspender = pid
	return p[1], nil
}

// endSuspender ends the suspender at the end of the run. Nothing stays suspended.
func (h *helper) endSuspender() {
	h.mu.Lock()
	pid := h.suspender
	h.mu.Unlock()
	if p, ok := readProc(pid); ok && p.ppid == h.self.pid {
		signalAll([]proc{p}, unix.SIGKILL)
	}
	if _, to := h.ctl.suspended(); to != 0 {
		h.spool.resume(h.ctl, cookie(h.cfg.Run, h.cfg.Host, ""))
	}
}
