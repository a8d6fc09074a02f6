package e2e

import (
	"encoding/json"
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

// sharer is a real user of this machine.
type sharer struct {
	name string
	cred syscall.Credential
	home string
}

// newSharer makes a user, for as long as the test lasts.
func newSharer(t *testing.T, dir, name string) *sharer {
	t.Helper()
	if out, err := exec.Command("useradd", "--no-create-home", "--no-user-group", name).CombinedOutput(); err != nil {
		t.Skipf("useradd: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("userdel", "--force", name).Run() })
	u := &sharer{name: name, home: filepath.Join(dir, name)}
	for flag, id := range map[string]*uint32{"-u": &u.cred.Uid, "-g": &u.cred.Gid} {
		out, err := exec.Command("id", flag, name).Output()
		n, nerr := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 32)
		if err != nil || nerr != nil {
			t.Fatal(err, nerr)
		}
		*id = uint32(n)
	}
	if err := os.Mkdir(u.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(u.home, int(u.cred.Uid), int(u.cred.Gid)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.killAll() })
	return u
}

// killAll kills every process of the user, until there is none.
func (u *sharer) killAll() {
	polltest.Within(time.Minute, func() bool {
		return progtest.LeftBehind(0, func(p progtest.Process) bool {
			info, err := os.Stat(p.Dir)
			return err == nil && p.Args != "" && info.Sys().(*syscall.Stat_t).Uid == u.cred.Uid // zombies have none
		}) == nil
	})
}

// run starts a dispatcher of the user over hosts that share dir/share.
func (u *sharer) run(t *testing.T, dir, name string, share, hosts, slots int) (runDir string) {
	t.Helper()
	var inv, jobs strings.Builder
	for i := range hosts {
		fmt.Fprintf(&inv, "[[host]]\nname = \"ws%d\"\nlink = \"local\"\nslots = %d\nyield = false\nnice = 0\nwork_dir = %q\nshare_dir = %q\n\n",
			i, slots, filepath.Join(u.home, name, strconv.Itoa(i)), filepath.Join(dir, "share", strconv.Itoa(i)))
	}
	for i := range 5000 {
		fmt.Fprintf(&jobs, "sleep %.1f\n", 1+float64(i*7%20)/10)
	}
	for file, text := range map[string]string{name + ".toml": inv.String(), name + ".txt": jobs.String()} {
		path := filepath.Join(u.home, file)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		os.Chown(path, int(u.cred.Uid), int(u.cred.Gid))
	}
	cmd := exec.Command(filepath.Join(dir, "dcs-tui"), "run", "--no-tui", "--hosts", name+".toml", "--run-share", strconv.Itoa(share),
		"--run-dir", name, name+".txt")
	cmd.Dir, cmd.Env = u.home, []string{"HOME=" + u.home, "USER=" + u.name, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + u.home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &u.cred, Setsid: true}
	var out progtest.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// held returns how many slots each run has in use, as its dispatcher knows.
func held(runDirs []string) []int {
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

// Two users with two dispatchers each, of shares 1 and 2, get their max-min fair parts of
// twelve hosts (K11), within 10 % and two minutes of each arrival. When all processes of one
// user are killed, nothing is left of his claims. What others put into the shared
// directory takes nothing from anybody and is reported.
func TestUsersShareHosts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes users, which needs root")
	}
	t.Parallel()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	if out, err := exec.Command("install", "-m", "755", program, filepath.Join(dir, "dcs-tui")).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	const hosts, slots = 12, 6
	os.Mkdir(filepath.Join(dir, "share"), 0o755)
	for i := range hosts {
		share := filepath.Join(dir, "share", strconv.Itoa(i))
		os.Mkdir(share, 0o700)
		os.Chmod(share, os.ModeSticky|0o777)
		secret := filepath.Join(share, "run-secret.0")
		f, err := os.OpenFile(secret, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			t.Fatal(err)
		}
	}
	name := "dcs" + strconv.Itoa(os.Getpid())
	a, b := newSharer(t, dir, name+"a"), newSharer(t, dir, name+"b")
	var runs []string
	fair := func(when string, want ...int) {
		t.Helper()
		began, in := time.Now(), 0
		var got []int
		ok := polltest.Within(2*time.Minute, func() bool {
			got = held(runs)
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
	runs = append(runs, a.run(t, dir, "first", 1, hosts, slots))
	fair("alone", 72)
	runs = append(runs, b.run(t, dir, "second", 1, hosts, slots))
	fair("two users", 36, 36)
	runs = append(runs, a.run(t, dir, "third", 2, hosts, slots), b.run(t, dir, "fourth", 2, hosts, slots))
	fair("two runs each", 12, 12, 24, 24)
	a.killAll()
	os.Remove(filepath.Join(runs[0], "live.json"))
	os.Remove(filepath.Join(runs[2], "live.json"))
	fair("one user has gone", 0, 24, 0, 48)
	var events []byte
	files, _ := filepath.Glob(filepath.Join(runs[1], "journal", "*"))
	for _, f := range files {
		more, _ := os.ReadFile(f)
		events = append(events, more...)
	}
	if n := strings.Count(string(events), "run-secret.0 is ignored"); n != hosts {
		t.Errorf("unreadable files on %d hosts are reported %d times", hosts, n)
	}
}
