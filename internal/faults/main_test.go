//go:build linux

package faults

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"dcs-tui/hosts/hosttest"
	_ "dcs-tui/internal/cli" // the program under test: when it changes, cached results of these tests do not count
	"dcs-tui/internal/progtest"
)

// requireEnv, set to 1, makes the tests fail instead of skip on a machine that cannot run a lab.
const requireEnv = "DCS_REQUIRE_FAULTS"

var (
	faultsFlag = flag.Int("faults", 0, "make at least N random faults (the long test; 0: only the short one)")
	labsFlag   = flag.Int("labs", 3, "labs that run at once in the long test")
	seedFlag   = flag.Uint64("seed", 0, "seed of the random faults (0: a new one, which is printed)")
	binFlag    = flag.String("program", "", "test this dcs-tui instead of one that is built from here")
	keepFlag   = flag.String("keep", "", "DIRECTORY that gets the run directory and logs of a run that failed")
)

// program is the path of the binary under test, which is built once.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	if err := unshareMounts(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if program = *binFlag; program == "" && labProblem() == nil && !testing.Short() {
		os.Exit(progtest.MainReleased(m, &program))
	}
	os.Exit(m.Run())
}

// unshareMounts moves this process into a mount namespace of its own, so that the labs' mounts end
// with it, even if it is killed. A running Go program cannot change that for all of its threads, so
// it executes itself again.
func unshareMounts() error {
	const done = "DCS_FAULTS_APART"
	if os.Getenv(done) != "" || testing.Short() || labProblem() != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	args := append([]string{"unshare", "--mount", "--propagation", "private", self}, os.Args[1:]...)
	return syscall.Exec(unshare, args, append(os.Environ(), done+"=1"))
}

// labProblem returns why this machine cannot run a lab, or nil if it can.
func labProblem() error {
	if os.Geteuid() != 0 {
		return errors.New("namespaces with machines of their own need root: sudo make faults")
	}
	for tool, from := range map[string]string{"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux",
		"/usr/sbin/sshd": "openssh-server", "ssh-keygen": "openssh-client"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is missing: apt-get install %s", tool, from)
		}
	}
	try := exec.Command("unshare", "--net", "--mount", "--uts", "--pid", "--time", "--boottime", "1000", "--fork",
		"--kill-child",
		"--mount-proc", "--propagation", "private", "mount", "--bind", "/proc/version",
		"/proc/sys/kernel/random/boot_id")
	if out, err := try.CombinedOutput(); err != nil {
		return fmt.Errorf("this machine makes no namespaces: %w: %s", err, out)
	}
	return nil
}

// needLab skips the test if this machine cannot run a lab.
func needLab(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a lab of machines is not short")
	}
	err := labProblem()
	switch {
	case err == nil:
	case os.Getenv(requireEnv) == "1":
		t.Fatalf("%s=1, but %v", requireEnv, err)
	default:
		hosttest.LeaveOut(t, "%v", err)
	}
}
