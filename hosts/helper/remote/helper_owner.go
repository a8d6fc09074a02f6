//go:build linux

package remote

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	root     string // prefix of all paths; "" on a real host
	adminUID int    // uid whose files in /var/tmp count
	selfUID  int    // uid whose terminals are ignored, except at the console
}

// owners finds out who uses the machine. It is owned by the goroutine that calls look.
type owners struct {
	site
	mode     string
	idle     time.Duration // a user whose terminal is unused for this time counts as gone
	lastUses map[string]lastUse
	accounts map[string]account // cache, by name or uid
}

// lastUse records the last use of a terminal or a session.
type lastUse struct {
	mark int64         // changes with each use; 0 at first
	at   time.Duration // boot clock
}

// login is a login of a user at the console.
type login struct {
	account
	tty      string // "tty2"; "" for a graphical session
	session  string // logind's name of a graphical session; "" without logind
	onScreen bool   // the graphical session is on the screen
}

type account struct {
	name string
	uid  int
	home string // "" if unknown
}

func newOwners(o *hosts.Open, s site) *owners {
	return &owners{site: s, mode: o.Owner, idle: cmp.Or(o.OwnerIdle, hosts.DefaultOwnerIdle), accounts: map[string]account{}}
}

// currentOwner returns the person or the reason that holds the host back. A request to suspend
// takes precedence.
func (o *owners) currentOwner() hosts.Owner {
	var held hosts.Owner
	logins := o.logins()
	for _, name := range []string{suspendFile, busyFile} {
		if path := o.requestFile(name, logins); path != "" {
			held = hosts.Owner{Who: path + " is there", Suspend: name == suspendFile}
			break
		}
	}
	if o.mode == "" || held.Suspend {
		return held
	}
	if who := o.recentUse(logins); who != "" && (held.Who == "" || o.mode == hosts.OwnerSuspend) {
		held = hosts.Owner{Who: who, Suspend: o.mode == hosts.OwnerSuspend}
	}
	return held
}

// requestFile returns the path of a valid file with that name, or "".
func (o *owners) requestFile(name string, logins []login) string {
	by := func(path string, uids ...int) bool {
		var st unix.Stat_t
		return unix.Lstat(o.root+path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && slices.Contains(uids, int(st.Uid))
	}
	common := filepath.Join("/var/tmp", name)
	if by(common, o.adminUID) {
		return common
	}
	for _, l := range logins {
		if by(common, l.uid) { // for users whose home directory is closed to us
			return common
		}
		if own := filepath.Join(l.home, name); l.home != "" && by(own, l.uid, o.adminUID) {
			return own
		}
	}
	return ""
}

// recentUse describes the latest use of the machine within the idle time, or returns "".
func (o *owners) recentUse(logins []login) string {
	who, minIdle := "", o.idle
	now, wall := uptime(), time.Now()
	next := map[string]lastUse{}
	note := func(key string, u lastUse, user func() string, where string) {
		next[key] = u
		if age := now - u.at; age < minIdle {
			who, minIdle = user()+" uses "+where, age
		}
	}
	// Reading input sets the access time of a terminal. Compare it with the clock only when the
	// terminal is first seen, because clocks jump.
	terminal := func(name string, spare int) {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(o.root, "dev", name), &st) != nil || int(st.Uid) == spare {
			return
		}
		u := o.lastUses[name]
		if read := st.Atim.Nano(); u.mark != read {
			at := now
			if u.mark == 0 {
				at -= max(0, wall.Sub(time.Unix(0, read)))
			}
			u = lastUse{read, at}
		}
		note(name, u, func() string { return o.account(strconv.Itoa(int(st.Uid))).name }, name)
	}
	lines, _ := os.ReadDir(o.root + "/dev/pts")
	for _, e := range lines {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			terminal("pts/"+e.Name(), o.selfUID)
		}
	}
	for _, l := range logins {
		if l.tty != "" {
			terminal(l.tty, -1)
			continue
		}
		key := cmp.Or(l.session, ":")
		u, known := o.lastUses[key]
		if l.onScreen && !idleSession(l.session) {
			u = lastUse{at: now}
		} else if !known {
			u = lastUse{at: now - o.idle}
		}
		note(key, u, func() string { return l.name }, "the screen")
	}
	o.lastUses = next
	return who
}

// idleSession asks logind whether a graphical session is idle or locked.
func idleSession(session string) bool {
	if session == "" {
		return false
	}
	text, _ := runTool("loginctl", "show-session", session, "-p", "IdleHint", "-p", "LockedHint")
	return strings.Contains(text, "IdleHint=yes") || strings.Contains(text, "LockedHint=yes")
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
			l.session, l.onScreen = e.Name(), is["ACTIVE"] == "1"
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
			l.onScreen = true
			list = append(list, l)
		case strings.HasPrefix(line, "tty") && filepath.IsLocal(line):
			l.tty = line
			list = append(list, l)
		}
	}
	return list
}

// account finds a user by name or uid in /etc/passwd or with getent, and remembers the answer.
func (o *owners) account(key string) account {
	a, ok := o.accounts[key]
	if !ok {
		if a, ok = passwdAccount(o.root, key); !ok {
			a = getentAccount(key)
		}
		o.accounts[key] = a
	}
	return a
}

// passwdAccount finds a user by name or uid in etc/passwd below root.
func passwdAccount(root, key string) (a account, ok bool) {
	text, _ := os.ReadFile(root + "/etc/passwd")
	return parseAccount(string(text), key)
}

// getentAccount finds a user by name or uid where getent looks, for example in LDAP, which the
// package os/user of a static program does not know. Without an answer, the account is called
// "user UID", and its uid is -1 if key is a name. It may take as long as runTool.
func getentAccount(key string) account {
	text := ""
	if key != "" && key[0] != '-' {
		text, _ = runTool("getent", "passwd", key)
	}
	a, _ := parseAccount(text, key)
	return a
}

// parseAccount finds a user by name or uid in lines of passwd.
func parseAccount(text, key string) (a account, ok bool) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 7 || f[0] != key && f[2] != key {
			continue
		}
		if uid, err := strconv.Atoi(f[2]); err == nil {
			a = account{f[0], uid, f[5]}
			if !filepath.IsAbs(a.home) {
				a.home = ""
			}
			return a, true
		}
	}
	if uid, err := strconv.Atoi(key); err == nil {
		return account{name: "user " + key, uid: uid}, false
	}
	return account{name: key, uid: -1}, false
}

// watchOwner looks for owners of the machine, and suspends and continues jobs. It may hang with
// the home directory of a user. The suspender then receives nothing and continues the jobs.
func (h *helper) watchOwner() {
	<-h.ownerKnown
	pipe := -1 // to the suspender, if there is one
	for ; ; time.Sleep(h.limits.heartbeat) {
		held := h.owners.currentOwner()
		if was := h.owner.Swap(&held); *was != held {
			h.files.sendHeartbeatNow()
		}
		h.mu.Lock()
		wanted := held.Suspend && len(h.running) > 0
		h.mu.Unlock()
		if wanted && pipe < 0 {
			var err error
			if pipe, err = h.startSuspender(); err != nil {
				h.reportTrouble("jobs cannot be suspended: %v", err)
			}
		}
		if pipe < 0 {
			if _, to := h.control.suspended(); to != 0 && !wanted { // left by a suspender that was killed
				h.spool.resume(h.control, cookie(h.config.Run, h.config.Host, ""))
			}
			continue
		}
		if _, err := unix.Write(pipe, []byte{'\n'}); !wanted || err != nil && err != unix.EAGAIN {
			unix.Close(pipe)
			pipe = -1
		}
	}
}

// firstOwnerTimeout bounds the first look at the owners, before the hello.
const firstOwnerTimeout = time.Second

// firstOwner looks for owners before the hello, so that nothing is started on a host that is to
// be left alone.
func (h *helper) firstOwner() hosts.Owner {
	h.owner.Store(&hosts.Owner{})
	withTimeout(firstOwnerTimeout, func() {
		held := h.owners.currentOwner()
		h.owner.Store(&held)
		close(h.ownerKnown)
	})
	return *h.owner.Load()
}
