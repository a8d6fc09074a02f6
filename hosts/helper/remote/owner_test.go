//go:build linux

package remote

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dcs-tui/hosts"
)

// machine is a made-up machine on which people are logged in.
type machine struct {
	t    *testing.T
	root string
}

func (m machine) path(name string) string {
	p := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		m.t.Fatal(err)
	}
	return p
}

func (m machine) file(name, text string) { write(m.t, m.path(name), text) }

// used makes a terminal that was last read so long ago.
func (m machine) used(name string, ago time.Duration) {
	m.file(name, "")
	at := time.Now().Add(-ago)
	if err := os.Chtimes(m.path(name), at, at); err != nil {
		m.t.Fatal(err)
	}
}

// session makes a session of logind, of alice at the console.
func (m machine) session(name, kind, more string) {
	m.file("run/systemd/sessions/"+name, fmt.Sprintf("# private\nUID=%d\nACTIVE=1\nSTATE=active\nREMOTE=0\nSEAT=seat0\nCLASS=user\nTYPE=%s\n%s", os.Getuid(), kind, more))
}

// B7: who uses a machine, and who asks that it is left alone.
func TestOwnersFound(t *testing.T) {
	me := os.Getuid()
	nobody := site{admin: -1, self: -1}
	for _, c := range []struct {
		name    string
		mode    string
		prepare func(m machine)
		site    site
		want    hosts.Owner
	}{
		{"nobody", "suspend", func(m machine) {}, nobody, hosts.Owner{}},
		{"a terminal in use", "pause", func(m machine) { m.used("dev/pts/3", time.Minute) }, nobody, hosts.Owner{Who: "alice uses pts/3"}},
		{"the last one to use it", "pause", func(m machine) { m.used("dev/pts/1", 2*time.Minute); m.used("dev/pts/3", time.Minute) }, nobody, hosts.Owner{Who: "alice uses pts/3"}},
		{"suspend", "suspend", func(m machine) { m.used("dev/pts/3", time.Minute) }, nobody, hosts.Owner{Who: "alice uses pts/3", Suspend: true}},
		{"ignore", "", func(m machine) { m.used("dev/pts/3", time.Minute) }, nobody, hosts.Owner{}},
		{"an idle terminal", "pause", func(m machine) { m.used("dev/pts/3", 11*time.Minute) }, nobody, hosts.Owner{}},
		{"our own terminal", "pause", func(m machine) { m.used("dev/pts/3", time.Minute) }, site{admin: -1, self: me}, hosts.Owner{}},
		{"a console that nobody is logged in at", "pause", func(m machine) { m.used("dev/tty2", time.Minute) }, nobody, hosts.Owner{}},
		{"our own console", "pause", func(m machine) { m.used("dev/tty2", time.Minute); m.session("2", "tty", "TTY=tty2\n") }, site{admin: -1, self: me}, hosts.Owner{Who: "alice uses tty2"}},
		{"a session through ssh", "pause", func(m machine) { m.session("2", "tty", "TTY=tty2\nREMOTE=1\n"); m.used("dev/tty2", 0) }, nobody, hosts.Owner{}},
		{"the screen", "suspend", func(m machine) { m.session("2", "wayland", "") }, nobody, hosts.Owner{Who: "alice uses the screen", Suspend: true}},
		{"a locked screen", "suspend", func(m machine) { m.session("locked", "wayland", "") }, nobody, hosts.Owner{}},
		{"an idle screen", "suspend", func(m machine) { m.session("idle", "x11", "") }, nobody, hosts.Owner{}},
		{"another session is shown", "suspend", func(m machine) { m.session("2", "x11", "ACTIVE=0\n") }, nobody, hosts.Owner{}},
		{"the login screen", "suspend", func(m machine) { m.session("c1", "x11", "CLASS=greeter\n") }, nobody, hosts.Owner{}},
		{"utmp", "pause", func(m machine) {
			m.file("proc/77/stat", "")
			m.file("run/utmp", utmp(6, 77, "tty1", "alice")+utmp(7, 78, ":0", "alice")+utmp(7, 77, "tty2", "alice"))
			m.used("dev/tty2", time.Minute)
		}, nobody, hosts.Owner{Who: "alice uses tty2"}},
		{"the screen in utmp", "pause", func(m machine) {
			m.file("proc/77/stat", "")
			m.file("run/utmp", utmp(7, 77, ":0", "alice")+"cut off")
		}, nobody, hosts.Owner{Who: "alice uses the screen"}},
		{"busy file of one at the console", "", func(m machine) { m.session("2", "x11", ""); m.file("home/alice/.dcs-busy", "") }, nobody, hosts.Owner{Who: "/home/alice/.dcs-busy is there"}},
		{"busy file of one who is away", "", func(m machine) { m.file("home/alice/.dcs-busy", "") }, nobody, hosts.Owner{}},
		{"a link is no file", "", func(m machine) {
			m.session("2", "x11", "")
			m.file("other", "")
			os.Symlink(m.path("other"), m.path("home/alice/.dcs-busy"))
		}, nobody, hosts.Owner{}},
		{"busy file of root", "", func(m machine) { m.file("var/tmp/.dcs-busy", "") }, site{admin: me, self: -1}, hosts.Owner{Who: "/var/tmp/.dcs-busy is there"}},
		{"busy file of anybody", "", func(m machine) { m.file("var/tmp/.dcs-busy", "") }, nobody, hosts.Owner{}},
		{"busy file in /var/tmp of one at the console", "", func(m machine) { m.session("2", "x11", ""); m.file("var/tmp/.dcs-busy", "") }, nobody, hosts.Owner{Who: "/var/tmp/.dcs-busy is there"}},
		{"suspend file", "", func(m machine) { m.file("var/tmp/.dcs-suspend", ""); m.file("var/tmp/.dcs-busy", "") }, site{admin: me, self: -1}, hosts.Owner{Who: "/var/tmp/.dcs-suspend is there", Suspend: true}},
		{"a person outweighs a busy file", "suspend", func(m machine) { m.used("dev/pts/3", 0); m.file("var/tmp/.dcs-busy", "") }, site{admin: me, self: -1}, hosts.Owner{Who: "alice uses pts/3", Suspend: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machine{t, t.TempDir()}
			m.file("etc/passwd", fmt.Sprintf("root:x:4242:0::/root:/bin/sh\nalice:x:%d:5:Alice:/home/alice:/bin/sh\n", me))
			m.file("bin/loginctl", "#!/bin/sh\ncase $2 in locked) echo LockedHint=yes;; idle) echo IdleHint=yes;; *) echo IdleHint=no;; esac\n")
			os.Chmod(m.path("bin/loginctl"), 0o700)
			t.Setenv("PATH", m.path("bin"))
			c.prepare(m)
			c.site.root = m.root
			if got := newOwners(&hosts.Open{Owner: c.mode}, c.site).look(); got != c.want {
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

// A terminal is in use when it is read, whatever a clock that jumps makes of the time.
func TestOwnerComesBack(t *testing.T) {
	m := machine{t, t.TempDir()}
	m.used("dev/pts/3", 2*time.Hour)
	o := newOwners(&hosts.Open{Owner: hosts.OwnerPause}, site{m.root, -1, -1})
	if got := o.look(); got.Who != "" {
		t.Fatalf("%+v at an idle terminal", got)
	}
	m.used("dev/pts/3", time.Hour) // the clock was set back
	if got := o.look(); got.Who == "" {
		t.Error("nobody is there though a terminal was used")
	}
}
