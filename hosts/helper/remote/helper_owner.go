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
	"dcs-tui/internal/account"
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
	users    map[string]account.User // cache, by name or uid
	allowed  userLimits              // from the last limits file without a mistake
}

// lastUse records the last use of a terminal or a session.
type lastUse struct {
	mark int64         // changes with each use; 0 at first
	at   time.Duration // boot clock
}

// login is a login of a user at the console.
type login struct {
	account.User
	tty      string // "tty2"; "" for a graphical session
	session  string // logind's name of a graphical session; "" without logind
	onScreen bool   // the graphical session is on the screen
}

func newOwners(o *hosts.Open, s site) *owners {
	return &owners{site: s, mode: o.Owner, idle: cmp.Or(o.OwnerIdle, hosts.DefaultOwnerIdle),
		users: map[string]account.User{}}
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
	// A file that is being edited opens nothing.
	if allowed, problem := o.userLimits(); problem == "" || allowed.Closed != "" {
		o.allowed = allowed
	}
	if o.allowed.Closed != "" && held.Who == "" {
		held = hosts.Owner{Who: o.allowed.whyClosed()}
	}
	if o.mode == "" || held.Suspend {
		return held
	}
	if who := o.recentUse(logins); who != "" && (held.Who == "" || o.mode == hosts.OwnerSuspend) {
		held = hosts.Owner{Who: who, Suspend: o.mode == hosts.OwnerSuspend}
	}
	return held
}

// requestFile returns the path of a valid file with that name, or "". One with a second name does not count:
// anybody may have given it this one.
func (o *owners) requestFile(name string, logins []login) string {
	by := func(path string, uids ...int) bool {
		var st unix.Stat_t
		return unix.Lstat(o.root+path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG &&
			st.Nlink == 1 && slices.Contains(uids, int(st.Uid))
	}
	common := filepath.Join("/var/tmp", name)
	if by(common, o.adminUID) {
		return common
	}
	for _, l := range logins {
		if by(common, l.UID) { // for users whose home directory is closed to us
			return common
		}
		if own := filepath.Join(l.Home, name); l.Home != "" && by(own, l.UID, o.adminUID) {
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
		note(name, u, func() string { return o.user(strconv.Itoa(int(st.Uid))).Name }, name)
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
		note(key, u, func() string { return l.Name }, "the screen")
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
		l := login{User: o.user(is["UID"])}
		switch tty := is["TTY"]; is["TYPE"] {
		case "x11", "wayland", "mir":
			l.session, l.onScreen = e.Name(), is["ACTIVE"] == "1"
		default:
			if tty == "" || !filepath.IsLocal(tty) {
				continue
			}
			l.tty = tty
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
		switch l := (login{User: o.user(user)}); {
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

// user finds a user by name or uid, and remembers the answer. A user who is not found has the uid -1,
// or the name "user UID".
func (o *owners) user(key string) account.User {
	u, known := o.users[key]
	if known {
		return u
	}
	passwd, _ := os.ReadFile(o.root + "/etc/passwd")
	u, found := account.FindIn(string(passwd), key)
	if !found {
		u, found = account.Find(key)
	}
	if !found {
		u = account.User{Name: key, UID: -1}
		if uid, err := strconv.Atoi(key); err == nil {
			u = account.User{Name: "user " + key, UID: uid}
		}
	}
	o.users[key] = u
	return u
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

// firstOwnerTimeout bounds the first look at the owners, before the hello. Tests lengthen it.
var firstOwnerTimeout = time.Second

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
