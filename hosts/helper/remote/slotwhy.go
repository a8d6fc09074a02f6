//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// hostsFault says that a process could not be started for want of what the host
// should have given: the job is not to blame. What does not exist is the job's: on
// another host it may, and there the next try goes.
func hostsFault(err error) bool {
	for _, e := range []error{
		unix.EAGAIN, unix.ENOMEM, unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EMFILE, unix.ENFILE,
		unix.EIO, unix.ESTALE, unix.ETIMEDOUT, unix.ENOTCONN, unix.EREMOTEIO,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// explain says why the shell could not be started, with the exit code a shell
// gives for it: 127 when there is no such file, else 126.
func (s *slot) explain(err error, job *hosts.LaunchJob, o *jobs.Outcome) {
	o.Exit = 126
	cwd := s.cwd(job)
	st, cerr := stat(cwd)
	switch {
	case cwd != "" && errors.Is(cerr, fs.ErrNotExist):
		o.Exit = 127
		o.Error = fmt.Sprintf("the working directory %s does not exist on %s; see --cwd", cwd, s.cfg.Host)
	case cwd != "" && cerr != nil:
		o.Error = fmt.Sprintf("the working directory on %s: %v", s.cfg.Host, cerr)
	case cwd != "" && st.Mode&unix.S_IFMT != unix.S_IFDIR:
		o.Error = fmt.Sprintf("the working directory %s is not a directory on %s", cwd, s.cfg.Host)
	case cwd != "" && unix.Access(cwd, unix.X_OK) != nil:
		o.Error = fmt.Sprintf("the working directory %s cannot be entered on %s", cwd, s.cfg.Host)
	case err == syscall.EINVAL:
		o.Error = "the command or its environment contains a NUL byte"
	case err == syscall.E2BIG:
		o.Error = "the environment is larger than this host allows"
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound):
		o.Exit = 127
		o.Error = fmt.Sprintf("the shell %s does not exist on %s", strings.Join(s.cfg.Shell, " "), s.cfg.Host)
	default:
		o.Error = fmt.Sprintf("starting the shell %s on %s: %v", strings.Join(s.cfg.Shell, " "), s.cfg.Host, err)
	}
}
