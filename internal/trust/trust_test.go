package trust

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/internal/account"
)

const stranger = 54321 // an account without a name

// check checks a file or directory with these owners and mode.
func check(t *testing.T, uid, gid int, mode fs.FileMode, strict Strictness) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hosts.toml")
	var err error
	if mode.IsDir() {
		err = os.Mkdir(path, 0o700)
	} else {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err == nil {
		err = os.Lchown(path, uid, gid)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return Check(info, path, strict)
}

// TestFilesOfOthersAreRefused checks which owners, groups, and modes are accepted, refused with
// advice, and warned about.
func TestFilesOfOthersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes files of other users, which needs root")
	}
	t.Setenv("SUDO_UID", "")
	defer clear(owners)
	sticky := fs.ModeDir | fs.ModeSticky
	for _, c := range []struct {
		name     string
		uid, gid int
		mode     fs.FileMode
		refused  string // part of the error with Strict; "": accepted
		warns    bool   // accepted with a warning by WarnGroup
	}{
		{"our own", 0, 0, 0o644, "", false},
		{"umask 002 with root's own group", 0, 0, 0o664, "", false},
		{"a group of others reads it", 0, stranger, 0o644, "", false},
		{"a group of others writes it", 0, stranger, 0o664, "run: chmod go-w", true},
		{"everybody writes it", 0, 0, 0o666, "run: chmod go-w", false},
		{"of another user", stranger, 0, 0o600, "--trust-owner 54321", false},
		{"a directory of our own", 0, 0, fs.ModeDir | 0o755, "", false},
		{"a directory of another user", stranger, stranger, fs.ModeDir | 0o755, "could replace what is in it", false},
		{"a directory that everybody writes", 0, 0, fs.ModeDir | 0o777, "run: chmod go-w", false},
		{"a sticky directory that everybody writes", 0, 0, sticky | 0o777, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := check(t, c.uid, c.gid, c.mode, Strict)
			if c.refused == "" && err != nil || c.refused != "" &&
				(err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%s: %v, want %q", c.name, err, c.refused)
			}
			warning, err := check(t, c.uid, c.gid, c.mode, WarnGroup)
			if c.warns != (warning != "") || (err != nil) != (c.refused != "" && !c.warns) {
				t.Errorf("%s, if a group may write: %q, %v", c.name, warning, err)
			}
		})
	}
	if err := AddOwner("54321"); err != nil {
		t.Fatal(err)
	}
	if _, err := check(t, stranger, 0, 0o600, Strict); err != nil {
		t.Errorf("with --trust-owner: %v", err)
	}
	if err := AddOwner("nobody-has-this-name"); err == nil {
		t.Error("an unknown user is accepted")
	}
}

// TestSudoKeepsTheOwner checks that root uses the files of the person who called sudo, and those of
// nobody else.
func TestSudoKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes files of other users, which needs root")
	}
	t.Setenv("SUDO_UID", "54321")
	if _, err := check(t, stranger, 0, 0o644, Strict); err != nil {
		t.Errorf("a file of the caller: %v", err)
	}
	if _, err := check(t, stranger+1, 0, 0o644, Strict); err == nil {
		t.Error("a file of another user is accepted")
	}
}

// TestGroupOfOneUser checks, as a real user, that the private group that useradd makes is accepted
// with umask 002, until it has a second member.
func TestGroupOfOneUser(t *testing.T) {
	if path := os.Getenv("TRUST_TEST_FILE"); path != "" { // as that user
		info, err := os.NewFile(4, path).Stat()
		if err == nil {
			_, err = Check(info, path, Strict)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if os.Getenv("TRUST_TEST_ETC") == "" {
		runWithOwnEtc(t)
		return
	}
	first, second := fmt.Sprintf("dcstrust%da", os.Getpid()), fmt.Sprintf("dcstrust%db", os.Getpid())
	for _, name := range []string{first, second} {
		out, err := exec.Command("useradd", "--no-create-home", "--no-log-init", "--user-group", name).CombinedOutput()
		if err != nil {
			t.Skipf("useradd: %v: %s", err, out)
		}
	}
	entry, found := account.Lookup("passwd", first)
	if !found {
		t.Fatal("the new user is not found")
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, path := filepath.Join(dir, "test"), filepath.Join(dir, "hosts.toml")
	if out, err := exec.Command("sh", "-c",
		`install -m 755 "$1" "$2" && install -m 664 -o "$4" -g "$4" /dev/null "$3"`,
		"sh", exe, program, path, first).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	// The user gets both files open, and need not be able to reach them.
	var files []*os.File
	for _, name := range []string{program, path} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	uid, gid := number(t, entry[2]), number(t, entry[3])
	accepts := func(path string) bool {
		cmd := exec.Command("/proc/self/fd/3", "-test.run=^TestGroupOfOneUser$")
		cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{"TRUST_TEST_FILE=" + path}, files
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		return err == nil
	}
	if !accepts(path) {
		t.Error("a file of a private group is refused")
	}
	if out, err := exec.Command("usermod", "-a", "-G", first, second).CombinedOutput(); err != nil {
		t.Fatalf("usermod: %v: %s", err, out)
	}
	if accepts(path) {
		t.Error("a file that the group's second member can write is accepted")
	}
}

// runWithOwnEtc runs the calling test again in a mount namespace with a copy of /etc, because other
// programs of this machine need the accounts there, such as the sshd of other tests.
func runWithOwnEtc(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes users, which needs root")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const noNamespace = 125
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c",
		`cp -a /etc/. "$1" && chmod 755 "$1" && mount --bind "$1" /etc || exit 125
exec "$2" -test.v -test.run="^$3\$"`,
		"sh", t.TempDir(), exe, t.Name())
	cmd.Env = append(os.Environ(), "TRUST_TEST_ETC=own")
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case cmd.ProcessState == nil, cmd.ProcessState.ExitCode() == noNamespace:
		t.Skipf("no mount namespace: %v: %s", err, text)
	case err != nil:
		t.Fatalf("%v: %s", err, text)
	case strings.Contains(text, "--- SKIP"):
		t.Skip(text)
	}
}

func number(t *testing.T, text string) (n uint32) {
	t.Helper()
	for _, c := range text {
		n = n*10 + uint32(c-'0')
	}
	return n
}
