package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dcs-tui/internal/platform"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// labEnv is the environment variable with the directory of the lab.
const labEnv = "DCS_BENCH_LAB"

// inLab runs this program again with a new directory for its lab, and returns its exit status. When
// it has ended, or was interrupted, inLab ends what it has left behind and removes the directory.
//
// The programs that are measured have their state directory in it, because the user's own one
// contains the list of the user's runs.
func inLab() (status int, err error) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	dir, err := os.MkdirTemp("", "dcs-bench-")
	if err != nil {
		return 0, err
	}
	defer func() {
		killMarked(labMarks(dir)...)
		err = errors.Join(err, removeLab(dir))
	}()
	own, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(own, os.Args[1:]...)
	cmd.Env = append(os.Environ(), labEnv+"="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-interrupts:
		cmd.Process.Kill() // its servers die with it
		<-ended
	}
	if !cmd.ProcessState.Exited() {
		return 1, nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// labMarks returns what the environment of each process of a lab has one of: XDG_STATE_HOME on this
// machine, and HOME on the hosts.
func labMarks(dir string) []string {
	return []string{"\x00XDG_STATE_HOME=" + dir + "/", "\x00HOME=" + dir + "/"}
}

// killMarked kills the other processes whose environment has one of the marks, also those that they
// start meanwhile.
func killMarked(marks ...string) {
	hasMark := func(p progtest.Process) bool {
		found, err := platform.FindProcess(p.PID)
		return err == nil && !found.Ended && isMarked(p, marks)
	}
	polltest.Within(10*time.Second, func() bool { return len(progtest.KillLeftBehind(0, hasMark)) == 0 })
}

// isMarked reports whether the environment of a process has one of the marks.
func isMarked(p progtest.Process, marks []string) bool {
	env, _ := os.ReadFile(p.Dir + "/environ")
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains("\x00"+string(env), mark) })
}

// removeLab removes the directory. A process that still ends may create a file meanwhile.
func removeLab(dir string) (err error) {
	polltest.Within(10*time.Second, func() bool {
		err = os.RemoveAll(dir)
		return err == nil
	})
	return err
}
