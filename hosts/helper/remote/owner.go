//go:build linux

package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

// The files by which people ask that a host is left alone, in the home directory of a user
// who is logged in at the console, or in /var/tmp.
const (
	busyFile    = ".dcs-busy"    // no job is started
	suspendFile = ".dcs-suspend" // and running jobs are suspended
)

// site is the machine on which people are looked for. Tests make their own.
type site struct {
	root  string // before each path; "" on a host
	admin int    // uid whose files in /var/tmp count
	self  int    // uid whose terminals do not count, except at the console
}

// owners finds out who uses the machine. It is owned by the goroutine that calls look.
type owners struct {
	site
	mode     string
	idle     time.Duration // how long a terminal may be unused before its user counts as gone
	used     map[string]use
	accounts map[string]account // by name or uid
}

// use is when a terminal or a session was last used.
type use struct {
	mark int64         // changes with each use
	at   time.Duration // boot clock
}

// login is a user who is logged in at the console.
type login struct {
	account
	tty     string // "tty2"; "" for a graphical session
	session string // logind's name of a graphical session; "" if logind does not run
	shown   bool   // the graphical session is the one on the screen
}

type account struct {
	name string
	uid  int
	home string // "" if unknown
}

func newOwners(o *hosts.Open, s site) *owners {
	return &owners{site: s, mode: o.Owner, idle: cmp.Or(o.OwnerIdle, hosts.DefaultOwnerIdle), accounts: map[string]account{}}
}

// look returns who or what holds the host back now. A request to suspend outweighs others.
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

// asks returns the path of a file of that name that counts, "" if there is none.
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
		if by(common, l.uid) { // for those whose home directory is closed to others
			return common
		}
		if own := filepath.Join(l.home, name); l.home != "" && by(own, l.uid, o.admin) {
			return own
		}
	}
	return ""
}

// present says who has used the machine within the idle time: the last one, "" if nobody has.
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
	// Reading what was typed sets the time of access of a terminal. It is compared with the clock
	// only when a terminal is first seen: clocks jump.
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
