//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
	"dcs-tui/jobs/live"
)

// testUser is a real user of this machine.
type testUser struct {
	name string
	cred syscall.Credential
	home string
}

// newTestUser creates a user that exists until the test ends.
func newTestUser(t *testing.T, dir, name string) *testUser {
	t.Helper()
	if out, err := exec.Command("useradd", "--no-create-home", "--no-user-group", name).CombinedOutput(); err != nil {
		t.Skipf("useradd: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("userdel", "--force", name).Run() })
	u := &testUser{name: name, home: filepath.Join(dir, name)}
	for flag, id := range map[string]*uint32{"-u": &u.cred.Uid, "-g": &u.cred.Gid} {
		out, err := exec.Command("id", flag, name).Output()
		n, nerr := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 32)
		if err != nil || nerr != nil {
			t.Fatal(err, nerr)
		}
		*id = uint32(n)
	}
	must(t, os.Mkdir(u.home, 0o700))
	must(t, os.Chown(u.home, int(u.cred.Uid), int(u.cred.Gid)))
	t.Cleanup(func() { u.killAll() })
	return u
}

// owns reports whether p is a process of the user with this argument ("": any argument).
func (u *testUser) owns(p progtest.Process, arg string) bool {
	info, err := os.Stat(p.Dir)
	return err == nil && p.Args != "" && info.Sys().(*syscall.Stat_t).Uid == u.cred.Uid && // zombies have no arguments
		(arg == "" || strings.Contains(p.Args, "\x00"+arg+"\x00"))
}

// killAll kills the user's processes until none is left.
func (u *testUser) killAll() {
	polltest.Within(time.Minute, func() bool {
		return progtest.KillLeftBehind(0, func(p progtest.Process) bool { return u.owns(p, "") }) == nil
	})
}

// killSome kills at most n of the user's processes that have this argument now, and returns how
// many.
func (u *testUser) killSome(arg string, n int) (killed int) {
	for _, p := range progtest.FindProcesses(func(p progtest.Process) bool { return u.owns(p, arg) }) {
		if killed < n && syscall.Kill(p.PID, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// forgeClaims puts files that look like claims and belong to another user into a directory.
func forgeClaims(t *testing.T, share string) {
	t.Helper()
	const evil = 4242
	path := func(name string) string { return filepath.Join(share, "claim-"+name+".4242") }
	err := errors.Join(os.Symlink("/etc/passwd", path("link")), unix.Mkfifo(path("fifo"), 0o666),
		os.Mkdir(path("dir"), 0o777))
	for name, size := range map[string]int64{"huge": 1 << 40, "garbage": 14} {
		f, ferr := os.Create(path(name))
		if ferr != nil {
			t.Fatal(ferr)
		}
		t.Cleanup(func() { f.Close() })
		_, werr := f.WriteString("DSH3 and more\n")
		err = errors.Join(err, werr, f.Truncate(size), f.Chown(evil, evil),
			unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}))
	}
	must(t, err)
}

// run starts a dispatcher of the user over hosts that share dir/share.
func (u *testUser) run(t *testing.T, dir, name string, share, hosts, slots int) (runDir string) {
	t.Helper()
	var inv, jobs strings.Builder
	for i := range hosts {
		fmt.Fprintf(&inv, "[[host]]\nname = \"ws%d\"\nlink = \"local\"\nslots = %d\nyield = false\nnice = 0\n"+
			"work_dir = %q\nshare_dir = %q\n\n",
			i, slots, filepath.Join(u.home, name, strconv.Itoa(i)), filepath.Join(dir, "share", strconv.Itoa(i)))
	}
	for i := range 5000 {
		fmt.Fprintf(&jobs, "sleep %.1f\n", 4+float64(i*7%20)/10)
	}
	for file, text := range map[string]string{name + ".toml": inv.String(), name + ".txt": jobs.String()} {
		path := filepath.Join(u.home, file)
		must(t, os.WriteFile(path, []byte(text), 0o644))
		os.Chown(path, int(u.cred.Uid), int(u.cred.Gid))
	}
	cmd := exec.Command(filepath.Join(dir, "dcs-tui"), "run", "--no-tui", "--hosts", name+".toml", "--run-share",
		strconv.Itoa(share),
		"--run-dir", name, name+".txt")
	cmd.Dir, cmd.Env = u.home, append(progtest.HomeEnv(u.home), "USER="+u.name, "PATH="+os.Getenv("PATH"),
		"TMPDIR="+u.home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &u.cred, Setsid: true}
	var out progtest.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			s := out.String()
			t.Logf("%s: %s", name, s[:min(len(s), 3000)])
		}
	})
	return filepath.Join(u.home, name)
}

// slotsUsed returns how many slots each run uses, according to its dispatcher.
func slotsUsed(runDirs []string) []int {
	n := make([]int, len(runDirs))
	for i, d := range runDirs {
		var s live.State
		b, err := os.ReadFile(filepath.Join(d, "live.json"))
		if err != nil || json.Unmarshal(b, &s) != nil {
			continue
		}
		for _, h := range s.Hosts {
			n[i] += h.Running
		}
	}
	return n
}

// TestUsersShareHosts checks max-min fairness for two users with the weights 1 and 2, assigned by
// root. Each has two dispatchers, with shares 1 and 2, on eight hosts. Each run must get its share
// within 10 % after arrivals at random times in random order (K11); the log says how soon. If only
// the helpers, only some supervisors, or all processes of a user are killed, no claims remain.
// Foreign files in the shared directory take no slots from anybody and are reported. The test runs
// beside no other, because 72 jobs at a time occupy this machine.
func TestUsersShareHosts(t *testing.T) {
	polltest.Long(t)
	if os.Getuid() != 0 {
		t.Skip("makes users, which needs root")
	}
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	if out, err := exec.Command("install", "-m", "755", program,
		filepath.Join(dir, "dcs-tui")).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	const hosts, slots = 8, 9 // all parts of a host are whole numbers
	os.Mkdir(filepath.Join(dir, "share"), 0o755)
	for i := range hosts {
		share := filepath.Join(dir, "share", strconv.Itoa(i))
		os.Mkdir(share, 0o700)
		os.Chmod(share, os.ModeSticky|0o777)
		// A file without a text is reported, and one that cannot be opened is not yet published.
		for name, mode := range map[string]os.FileMode{"claim-empty.0": 0o644, "claim-secret.0": 0o600} {
			f, err := os.OpenFile(filepath.Join(share, name), os.O_CREATE|os.O_RDWR, mode)
			must(t, err)
			defer f.Close()
			must(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}))
		}
		if i%4 == 0 {
			forgeClaims(t, share)
		}
	}
	r := newRand(t)
	name := "dcs" + strconv.Itoa(os.Getpid())
	a, b := newTestUser(t, dir, name+"a"), newTestUser(t, dir, name+"b")
	weight := map[*testUser]int{a: 1, b: 2}
	for i := range hosts {
		shares := filepath.Join(dir, "share", strconv.Itoa(i), "shares")
		must(t, os.WriteFile(shares, fmt.Appendf(nil, "%s 1\n%s 2\n", a.name, b.name), 0o644))
	}
	var runs []string
	fair := func(when string, want ...int) {
		t.Helper()
		began, in := time.Now(), 0
		var got []int
		ok := polltest.Within(polltest.Patience, func() bool {
			got = slotsUsed(runs)
			for i, n := range got {
				if math.Abs(float64(n-want[i])) > max(1, 0.1*float64(want[i])) {
					in = 0
					return false
				}
			}
			in++
			return in > 20
		})
		t.Logf("%s: %v after %v", when, got, time.Since(began).Round(time.Second))
		if !ok {
			t.Fatalf("%s: the runs use %v slots of %d, and %v are fair", when, got, hosts*slots, want)
		}
	}
	type arrival struct {
		user  *testUser
		name  string
		share int
	}
	// parts returns how many slots each run gets: first by the weights of the users with runs, then
	// by the shares of the runs of each user.
	parts := func(runs []arrival) (want []int) {
		shares, sum := map[*testUser]int{}, 0
		for _, n := range runs {
			if shares[n.user] == 0 {
				sum += weight[n.user]
			}
			shares[n.user] += n.share
		}
		for _, n := range runs {
			want = append(want, hosts*slots*weight[n.user]*n.share/(sum*shares[n.user]))
		}
		return want
	}
	arrivals := []arrival{{a, "first", 1}, {b, "second", 1}, {a, "third", 2}, {b, "fourth", 2}}
	r.Shuffle(len(arrivals), func(i, k int) { arrivals[i], arrivals[k] = arrivals[k], arrivals[i] })
	for i, n := range arrivals {
		runs = append(runs, n.user.run(t, dir, n.name, n.share, hosts, slots))
		if i == len(arrivals)-1 || r.IntN(2) == 0 {
			fair(n.name+" has come", parts(arrivals[:i+1])...)
		} else { // the next one arrives while the parts are still changing
			enough := r.IntN(parts(arrivals[:i+1])[i])
			polltest.Until(t, fmt.Sprintf("%s uses %d slots", n.name, enough),
				func() bool { return slotsUsed(runs)[i] >= enough })
		}
	}
	all := parts(arrivals)
	if n := b.killSome("__host", 2*hosts); n < hosts {
		t.Fatalf("%d helpers were there to kill", n)
	}
	fair("the helpers of a user were killed", all...)
	if n := b.killSome("__slot", 10); n < 10 {
		t.Fatalf("%d supervisors were there to kill", n)
	}
	fair("supervisors of a user were killed", all...)
	a.killAll()
	left := -1
	for i, n := range arrivals {
		if n.user == a {
			all[i] = 0
			os.Remove(filepath.Join(runs[i], "live.json"))
		} else {
			all[i] = hosts * slots * n.share / 3
			left = i
		}
	}
	fair("one user has gone", all...)
	var events []byte
	files, _ := filepath.Glob(filepath.Join(runs[left], "journal", "*"))
	for _, f := range files {
		more, _ := os.ReadFile(f)
		events = append(events, more...)
	}
	// Each helper reports it once, and one helper on each host was killed.
	if n := strings.Count(string(events), "claim-empty.0 does not count"); n < hosts || n > 2*hosts {
		t.Errorf("files without a text on %d hosts are reported %d times", hosts, n)
	}
	if strings.Contains(string(events), "claim-secret.0") {
		t.Error("a file that is not yet published is reported")
	}
}
