//go:build linux

package e2e

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// inRepo runs a command in the root of the repository.
func inRepo(t *testing.T, env string, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), strings.Fields(env)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", argv, err, out)
	}
}

// buildCarrying builds the program as releases are built. It returns its path and the directory with
// the programs that it carries.
func buildCarrying(t *testing.T) (carrying, programs string) {
	t.Helper()
	dir := t.TempDir()
	carrying, programs = filepath.Join(dir, "dcs-tui"), filepath.Join(dir, "hosts")
	inRepo(t, "", "scripts/host-programs", programs) // fails if a program is too large
	inRepo(t, "", "go", "build", "-overlay", programs+"/overlay.json", "-o", carrying, ".")
	return carrying, programs
}

// buildForEmulator builds a program that carries one for arm64 whose supervisors do not become
// subreapers, because QEMU's user mode refuses PR_SET_CHILD_SUBREAPER.
func buildForEmulator(t *testing.T) (carrying, programs string) {
	t.Helper()
	dir := t.TempDir()
	const file, call = "hosts/helper/remote/supervisor.go", "unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)"
	source, err := os.ReadFile("../../" + file)
	must(t, err)
	if n := strings.Count(string(source), call); n != 1 {
		t.Fatalf("%s has %d calls %s, want 1", file, n, call)
	}
	replace := func(overlay, file, by string) string {
		must(t, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, file, by), 0o600))
		return overlay
	}
	must(t, os.WriteFile(dir+"/supervisor.go", []byte(strings.Replace(string(source), call, "error(nil)", 1)), 0o600))
	inRepo(t, "CGO_ENABLED=0 GOARCH=arm64", "go", "build", "-trimpath", "-overlay",
		replace(dir+"/source.json", file, dir+"/supervisor.go"), "-o", dir+"/linux-arm64", "./hosts/helper/hostprog")
	inRepo(t, "", "gzip", "-9n", dir+"/linux-arm64")
	inRepo(t, "", "go", "build", "-overlay", replace(dir+"/carried.json",
		"hosts/helper/carried/programs/linux-arm64.gz",
		dir+"/linux-arm64.gz"), "-o", dir+"/dcs-tui", ".")
	return dir + "/dcs-tui", dir
}

// privateShell writes a login shell for a host and returns its path. The host has a /var/tmp of its
// own, which is the directory place, and runs prepare, the text of a script, before each command.
func privateShell(t *testing.T, prepare string) (shell, place string) {
	t.Helper()
	dir := t.TempDir()
	shell, place = filepath.Join(dir, "shell"), filepath.Join(dir, "vartmp")
	must(t, os.Mkdir(place, 0o700))
	text := "#!/bin/sh\nexec unshare -Umr sh -euc '\nmount --bind " + place + " /var/tmp\n" + prepare +
		"\nexec /bin/sh \"$@\"' sh \"$@\"\n"
	must(t, os.WriteFile(shell, []byte(text), 0o700))
	if out, err := exec.Command(shell, "-c", "true").CombinedOutput(); err != nil {
		hosttest.LeaveOut(t, "no host can be simulated here: %v, %s", err, out)
	}
	return shell, place
}

// checkSent checks that a host has exactly one program of ours, that it is the carried one for arch,
// and that its file is a program for that machine.
func checkSent(t *testing.T, place, programs, arch string, machine elf.Machine) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(programs, "linux-"+arch+".gz"))
	must(t, err)
	files, err := filepath.Glob(place + "/dcs-*/bin/*")
	must(t, err)
	if want := fmt.Sprintf("dcs-tui-%x", sha256.Sum256(packed)); len(files) != 1 || filepath.Base(files[0]) != want {
		t.Fatalf("the host has %v, want %s", files, want)
	}
	f, err := elf.Open(files[0])
	must(t, err)
	defer f.Close()
	if f.Machine != machine {
		t.Errorf("the program on the host is for %v, want %v", f.Machine, machine)
	}
}

// TestHostsGetTheirProgram checks that a dcs-tui of a release sends to each host the small program for
// its architecture, and that jobs run with it: on a host of this architecture, and on one where the
// programs for arm64 run in an emulator. A dcs-tui that carries none refuses the latter host.
func TestHostsGetTheirProgram(t *testing.T) {
	polltest.Long(t)
	if runtime.GOARCH != "amd64" {
		hosttest.LeaveOut(t, "the emulated host is for amd64")
	}
	carrying, programs := buildCarrying(t)

	t.Run("amd64", func(t *testing.T) {
		shell, place := privateShell(t, "")
		l := newLab(t, 1, hosttest.Options{Shell: shell})
		cmd := exec.Command(carrying, l.runArgs(2, l.writeTaggedJobs(4, "true"))...)
		l.startCommand(cmd).mustSucceed()
		l.checkAttemptsRanOnce(4)
		checkSent(t, place, programs, "amd64", elf.EM_X86_64)
	})

	t.Run("arm64", func(t *testing.T) {
		emulator, err := exec.LookPath("qemu-aarch64-static")
		if err != nil {
			hosttest.LeaveOut(t, "qemu-user-static is not installed")
		}
		fake := t.TempDir()
		must(t, os.WriteFile(fake+"/uname", []byte("#!/bin/sh\necho Linux aarch64\n"), 0o700))
		// binfmt_misc is one of the host's own in its user namespace (Linux 6.7).
		magic := `:arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00` +
			`:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:` + emulator + `:F`
		shell, place := privateShell(t, "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc\n"+
			`printf %s "`+magic+"\" > /proc/sys/fs/binfmt_misc/register\nPATH="+fake+":$PATH")
		l := newLab(t, 1, hosttest.Options{Shell: shell})
		e := l.startCommand(exec.Command(carrying, "hosts", "check", "--ssh-config", l.servers[0].ConfigFile, "--hosts",
			l.inventory(2))).mustSucceed()
		if !strings.Contains(e.stdout, "ws1  up   2 slots") {
			t.Errorf("got %s", e.stdout)
		}
		checkSent(t, place, programs, "arm64", elf.EM_AARCH64)

		carrying, programs := buildForEmulator(t)
		must(t, os.RemoveAll(place))
		must(t, os.Mkdir(place, 0o700))
		l.startCommand(exec.Command(carrying, l.runArgs(2, l.writeTaggedJobs(4, "true"))...)).mustSucceed()
		l.checkAttemptsRanOnce(4)
		checkSent(t, place, programs, "arm64", elf.EM_AARCH64)

		e = l.run(
			append([]string{"hosts", "check"}, "--ssh-config", l.servers[0].ConfigFile, "--hosts", l.inventory(2))...,
		)
		all := e.stdout + e.stderr
		if e.code == 0 || !strings.Contains(all, "the host is Linux aarch64, and this dcs-tui has no program") ||
			!strings.Contains(all, "use a release or `make build`") {
			t.Errorf("without carried programs: exit %d, %s", e.code, all)
		}
	})
}
