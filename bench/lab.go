package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dcs-tui/hosts/hosttest"
)

// lab is four sshd servers on loopback that stand for four workstations, and a directory that all
// of them see. The servers have sshd's default limits.
//
// Nothing in the directory is deleted before the end. After many deletions, ext4 creates files
// several times as slowly for some minutes.
type lab struct {
	options
	dir        string
	fileSystem string
	sshd       []*hosttest.SSHD
	daemons    []int // the processes of the servers
	serial     int
}

func newLab(o options) (*lab, error) {
	dir := os.Getenv(labEnv)
	l := &lab{options: o, dir: dir, fileSystem: fileSystem(dir)}
	for i := range 4 {
		var o hosttest.Options
		if i > 0 {
			o.With = l.sshd[0]
		}
		sub := filepath.Join(dir, fmt.Sprintf("ws%d", i+1))
		if err := os.Mkdir(sub, 0o700); err != nil {
			return nil, err
		}
		s, err := hosttest.NewSSHD(sub, o)
		if err != nil {
			l.close()
			return nil, err
		}
		l.sshd = append(l.sshd, s)
	}
	l.daemons = children(os.Getpid())
	return l, nil
}

// fileSystem returns the type and the device of the file system of dir.
func fileSystem(dir string) string {
	out, err := exec.Command("df", "--output=fstype,source", dir).Output()
	if f := strings.Fields(string(out)); err == nil && len(f) >= 4 {
		return f[2] + " (" + f[3] + ")"
	}
	return "an unknown file system"
}

// close stops the servers.
func (l *lab) close() {
	for _, s := range l.sshd {
		s.Stop()
	}
}

// inventory writes a hosts.toml with the given number of hosts and of slots per host.
func (l *lab) inventory(hosts, slots int) string {
	text := ""
	for i, s := range l.sshd[:hosts] {
		text += s.Entry(fmt.Sprintf("ws%d", i+1), slots)
	}
	return l.file("hosts.toml", text)
}

// file writes a new file in the lab's directory and returns its path.
func (l *lab) file(name, text string) string {
	l.serial++
	path := filepath.Join(l.dir, fmt.Sprintf("%03d-%s", l.serial, name))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		panic(err) // a benchmark on a full disk would measure nothing
	}
	return path
}

// runDir returns the path of a new run directory.
func (l *lab) runDir() string {
	l.serial++
	return filepath.Join(l.dir, fmt.Sprintf("run%03d", l.serial))
}

// dcs prepares a run over ssh. extra is appended to the common flags.
func (l *lab) dcs(hosts, slots int, runDir string, extra ...string) *exec.Cmd {
	args := append([]string{"run", "--no-tui", "--ssh-config", l.sshd[0].ConfigFile,
		"--hosts", l.inventory(hosts, slots), "--run-dir", runDir}, extra...)
	return l.command(args...)
}

// command prepares the program in the lab's directory.
func (l *lab) command(args ...string) *exec.Cmd {
	cmd := exec.Command(l.bin, args...)
	cmd.Dir = l.dir
	return cmd
}

// outputs returns what each job of a run printed, if the run has at least one.
func outputs(runDir string) (texts []string, err error) {
	files, err := filepath.Glob(filepath.Join(runDir, "attempts", "*", "*.out"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no outputs in %s: %v", runDir, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(b))
	}
	return texts, nil
}

// spread prepares a run with a total number of slots over at most the given number of hosts.
func (l *lab) spread(hosts, slots int, runDir string, extra ...string) *exec.Cmd {
	hosts = min(hosts, slots)
	return l.dcs(hosts, slots/hosts, runDir, extra...)
}

// cost is the resource use of a finished command, measured by the kernel.
type cost struct {
	wall time.Duration
	cpu  time.Duration // of the command and the children that it waited for
	rss  int64         // peak of the command itself, in bytes
}

// timed runs a command until it ends.
func timed(cmd *exec.Cmd) (cost, error) {
	var errText strings.Builder
	cmd.Stderr = &errText
	start := time.Now()
	err := cmd.Run()
	c := cost{wall: time.Since(start)}
	if ps := cmd.ProcessState; ps != nil {
		c.cpu = ps.UserTime() + ps.SystemTime()
		if ru, ok := ps.SysUsage().(*syscall.Rusage); ok {
			c.rss = ru.Maxrss << 10
		}
	}
	if err != nil {
		tail := errText.String()
		return c, fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, tail[max(0, len(tail)-2000):])
	}
	return c, nil
}

// xargs prepares `xargs -P slots` over the lines of a file. Each line is executed by sh -c.
func xargs(slots int, file, shell string) *exec.Cmd {
	return exec.Command("xargs", "-a", file, "-d", "\n", "-P", fmt.Sprint(slots),
		"--process-slot-var=DCS_SLOT", "-I{}", shell, "-c", "{}")
}
