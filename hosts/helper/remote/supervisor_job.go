//go:build linux

package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// attempt is the attempt that the supervisor runs.
type attempt struct {
	id       jobs.AttemptID
	taken    string // name in taken/
	claim    attempts.Claim
	outFD    int // descriptors; -1: not open
	errFD    int
	statusFD int
	isLarge  bool   // the file of the spec is too large for reuse
	script   string // "" unless the command was too long for an argument
	gpus     []heldFile
	cores    []int // to which it is bound; nil: to none
}

// run handles a token: it takes the spec, unless it was withdrawn or taken, and runs it, unless its
// lease has run out or it was claimed before.
func (s *slot) run(generation int64, id jobs.AttemptID) {
	name := specName(generation, id)
	// Read the lease once: if taking or claiming hangs beyond it, the dispatcher may have given up
	// the attempt, and a later extension must not revive it.
	lease := s.control.lease()
	if uptime() > lease {
		// Remove the spec, because what has lapsed must never be queued again.
		if unlinkat(s.in, name, 0) == nil {
			s.report(&report{Kind: repLapsed, Attempt: id})
		}
		return
	}
	a := &attempt{id: id, taken: takenName(id, s.holder), outFD: -1, errFD: -1, statusFD: -1}
	if !s.take(a, name) {
		return // withdrawn, or an old token
	}
	a.claim = attempts.Claim{Run: s.config.Run, Attempt: a.id, Host: s.config.Host, By: s.holder.String(),
		Boot: s.config.Boot, At: wallClock()}
	job, err := s.readSpec(a)
	if err != nil {
		s.refuse(a, err)
		return
	}
	// Lock devices before the claim: they are often in use, and a refusal is cheap here.
	if err = s.takeGPUs(a, job); err != nil {
		s.refuse(a, err)
		return
	}
	if n := job.Slots; n > 1 && !s.awaitSlots(n, min(lease, uptime()+wideTimeout)) {
		s.giveBack(a, &report{Kind: repLapsed, Attempt: id})
		return
	}
	s.holdMemory(job.Mem)
	defer s.holdMemory(0)
	s.takeCores(a, job.Slots)
	dir, err := s.prepare(a)
	switch {
	case errors.Is(err, errClaimed):
		s.close(a)
		s.releaseAndReport(a, &report{Kind: repKnown, Attempt: id})
		return
	case err != nil:
		s.refuse(a, err)
		return
	}
	// Check again at the last instant, because taking and claiming can hang.
	if uptime() > lease {
		s.giveBack(a, &report{Kind: repLapsed, Attempt: id})
		return
	}
	s.execute(a, dir, job)
}

// wideTimeout bounds the wait of a job for several slots of a shared host.
const wideTimeout = 5 * time.Second

// take renames the spec into taken/. If a reply is lost, the directory shows whether that
// succeeded.
func (s *slot) take(a *attempt, name string) bool {
	err := renameat(s.in, name, s.taken, a.taken)
	for told := false; err != nil && !errors.Is(err, unix.ENOENT) && s.control.word(ctlEnd).Load() == 0; told = true {
		if !told {
			s.report(&report{Kind: repTrouble, Attempt: a.id, Why: fmt.Sprintf("taking %s: %v", a.id, err)})
		}
		var st unix.Stat_t
		if err = statat(s.taken, a.taken, &st, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			time.Sleep(retryPauses[1])
		}
	}
	return err == nil
}

// keepSpec is the size in bytes up to which the file of a spec is reused.
const keepSpec = 64 << 10

func (s *slot) readSpec(a *attempt) (*hosts.LaunchJob, error) {
	for {
		n, err := readInto(s.taken, a.taken, s.buf)
		if err != nil {
			return nil, fmt.Errorf("reading its specification: %w", err)
		}
		if n < len(s.buf) {
			a.isLarge = n > keepSpec
			job, err := parseSpec(s.buf[:n])
			if err == nil && job.Attempt != a.id {
				err = fmt.Errorf("%w: it is of attempt %s", errSpec, job.Attempt)
			}
			return job, err
		}
		s.buf = make([]byte, 2*len(s.buf))
	}
}

// prepare creates the claim and the output files.
func (s *slot) prepare(a *attempt) (dir int, err error) {
	if dir, err = s.shard(a.id.Job); err != nil {
		return dir, err
	}
	a.statusFD, err = makeClaim(dir, s.config.claimTemp(s.holder), &a.claim)
	// If the directory was removed or the descriptor is stale, open it again, once.
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) {
		first := err
		s.forgetShard()
		if dir, err = s.shard(a.id.Job); err != nil {
			return dir, err
		}
		a.statusFD, err = makeClaim(dir, s.config.claimTemp(s.holder), &a.claim)
		if errors.Is(err, errClaimed) {
			err = first // the claim may be from our first try
		}
	}
	if err != nil {
		if !errors.Is(err, errClaimed) {
			err = fmt.Errorf("making the claim in %s: %w", s.config.Dir, err)
		}
		return dir, err
	}
	if err := s.makeFiles(a, dir); err != nil {
		return dir, fmt.Errorf("making its files in %s: %w", s.config.Dir, err)
	}
	return dir, nil
}

func (s *slot) makeFiles(a *attempt, dir int) (err error) {
	id := a.id.String()
	if a.outFD, err = makeOutput(dir, id+".out", unix.O_WRONLY); err != nil {
		return err
	}
	a.errFD, err = makeOutput(dir, id+".err", unix.O_RDWR)
	return err
}

// makeOutput creates a file for the output of a job. It removes what another job may have put in its
// place, because opening a pipe waits for a reader. O_APPEND, so that two writers to one file do not
// overwrite each other.
func makeOutput(dir int, name string, flags int) (fd int, err error) {
	flags |= unix.O_CREAT | unix.O_EXCL | unix.O_APPEND
	fd, err = openat(dir, name, flags, 0o600)
	if errors.Is(err, unix.EEXIST) {
		if err = unlinkat(dir, name, 0); err == nil || errors.Is(err, fs.ErrNotExist) {
			fd, err = openat(dir, name, flags, 0o600)
		}
	}
	return fd, err
}

func (s *slot) close(a *attempt) {
	unlockGPUs(a.gpus)
	a.gpus = nil
	for _, f := range []struct {
		fd   *int
		name jobs.File
	}{{&a.outFD, jobs.FileOut}, {&a.errFD, jobs.FileErr}, {&a.statusFD, jobs.FileStatus}} {
		if *f.fd < 0 {
			continue
		}
		if err := closeFile(*f.fd, a.id.String()+"."+string(f.name)); err != nil {
			s.report(&report{Kind: repTrouble, Attempt: a.id,
				Why: fmt.Sprintf("%s may be incomplete: %v", f.name, err)})
		}
		*f.fd = -1
	}
}

// execute starts the shell, waits for its end, and records the outcome.
func (s *slot) execute(a *attempt, dir int, job *hosts.LaunchJob) {
	id := a.id.String()
	o := jobs.Outcome{}
	pid, err := 0, s.makeAttemptDir(job, id)
	if refused, ok := errors.AsType[*files.SendError](err); ok {
		setSendFailure(refused, &o)
		s.finish(a, dir, &o)
		return
	}
	if err != nil {
		s.refuse(a, fmt.Errorf("making the directory of the job: %w", err))
		return
	}
	pid, err = s.start(a, job, id, &o)
	if err != nil && isHostsFault(err) {
		s.removeScript(a)
		s.refuse(a, s.processes.explain(fmt.Errorf("starting a process: %w", err)))
		return
	}
	if err == nil {
		s.watch.begin(a.id, pid, job.Timeout, job.Mem)
		started := &report{Kind: repStarted, Attempt: a.id, Job: pid, At: o.Started}
		if last := s.pending.report.Swap(nil); last != nil {
			s.release(last.a)
			s.report(last.exit, started)
		} else {
			s.report(started)
		}
		s.wait(pid, &o)
		why, used, suspended := s.watch.end()
		o.TimedOut, o.Stopped, o.Suspended = why == endTimeout, why == endRequest, suspended
		s.setMemoryEnd(job.Mem, why, used, &o)
		o.LeftChildren = int32(s.leftChildren())
	} else {
		s.setStartFailure(err, job, &o)
	}
	s.removeScript(a)
	s.collect(job, id, &o)
	if !o.OK() {
		o.LastLine = lastLine(a.errFD, id+".err")
		if err == nil && !o.Stopped && o.Memory == 0 {
			o.DiskFull = s.isOnFullDisk(s.config.Dir, s.cwd(job))
			o.ProcessLimit = s.processes.reached()
		}
	}
	s.finish(a, dir, &o)
}

// maxArgument is the length of the longest command that is passed as an argument. The kernel's
// limit is 128 KiB. Longer commands are passed in a script.
const maxArgument = 100 << 10

// start runs the shell in its own process group, with standard input, output, and error, and the
// descriptors of its GPU locks. The job gets no session of its own, because the kernel makes a
// scheduling group per session, which costs as much as everything else that we do for a job.
func (s *slot) start(a *attempt, job *hosts.LaunchJob, id string, o *jobs.Outcome) (int, error) {
	text := withSetup(s.config.Shell, cmp.Or(job.Setup, s.config.Setup), job.Command)
	argv := make([]string, 0, 4)
	argv = append(argv, s.config.Shell...)
	o.Started, s.startedAt = wallClock(), uptime()
	o.Ended = o.Started
	if len(text) <= maxArgument {
		argv = append(argv, "-c", text)
	} else {
		a.script = s.spool.path(dirScript, id)
		if err := writeFile(a.script, []byte(text)); err != nil {
			return 0, err
		}
		argv = append(argv, a.script)
	}
	if job.Mem > 0 {
		argv = append(s.scopes.command(job.Mem), argv...)
	}
	defer withDefaultSlack()()
	unbind, err := bindThread(a.cores)
	if err != nil {
		s.reportPinProblem(a, fmt.Errorf("pin: the job cannot be bound to cores: %w", err))
	}
	defer unbind()
	s.processes.begin()
	s.oom.begin()
	s.oom.raise()
	defer s.oom.restore()
	return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir:   s.cwd(job),
		Env:   jobEnv(s.env, job, len(a.cores), s.config.GPUs, s.cookiePrefix+id, s.progress+id),
		Files: a.files(),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
}

// files returns the descriptors of the job.
func (a *attempt) files() []uintptr {
	files := []uintptr{0, uintptr(a.outFD), uintptr(a.errFD)}
	if len(a.gpus) == 0 {
		return files
	}
	for len(files) < jobLockFD {
		files = append(files, ^uintptr(0)) // closed
	}
	for _, l := range a.gpus {
		files = append(files, uintptr(l.fd))
	}
	return files
}

func (s *slot) cwd(job *hosts.LaunchJob) string { return cmp.Or(job.Cwd, s.config.Cwd) }

func (s *slot) removeScript(a *attempt) {
	if a.script != "" {
		retryUnlessMissing(func() error { return remove(a.script) })
	}
}

// wait collects children, including orphans, until the job's shell has ended.
func (s *slot) wait(pid int, o *jobs.Outcome) {
	var ws syscall.WaitStatus
	var ru syscall.Rusage
	for {
		got, err := syscall.Wait4(-1, &ws, 0, &ru)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // impossible: the shell is our child, and nobody else waits
			o.Error = "its end was not seen: " + err.Error()
			return
		}
		if got == pid {
			break
		}
		delete(s.leftBehind, got)
	}
	// By the boot clock, because the wall clock may be set while the job runs.
	o.Ended = o.Started + jobs.Stamp(uptime()-s.startedAt)
	o.Exit, o.Signal = ws.ExitStatus(), ""
	if ws.Signaled() {
		o.Exit, o.Signal = 0, jobs.SignalName(int(ws.Signal()))
	}
	o.CPU = timeOf(ru.Utime) + timeOf(ru.Stime)
	o.MaxRSSBytes = ru.Maxrss << 10
}

// refuse releases an attempt that this host could not start. The job is not charged for it.
func (s *slot) refuse(a *attempt, err error) {
	r := &report{Kind: repRefused, Attempt: a.id, Why: rundir.ExplainFull(err, s.config.Dir).Error()}
	if taken, ok := errors.AsType[*takenError](err); ok {
		r.GPUs = taken.devices
	}
	if limited, ok := errors.AsType[*limitError](err); ok {
		r.Limit = limited.limit
	}
	s.giveBack(a, r)
	s.forgetShard() // another file system may be mounted there by now
}

// giveBack releases an attempt that was not started, after making sure by a tombstone that it never
// will be, and reports r. If that is not certain, it asks the helper to examine the attempt.
func (s *slot) giveBack(a *attempt, r *report) {
	s.close(a)
	dir, err := s.shard(a.id.Job)
	if err == nil && ensureTombstone(dir, s.config.claimTemp(s.holder), a.claim) {
		s.releaseAndReport(a, r)
		return
	}
	s.release(a)
	if r.Kind == repRefused {
		s.report(&report{Kind: repTrouble, Attempt: a.id, Why: r.Why})
	}
	s.report(&report{Kind: repKnown, Attempt: a.id})
}

// releaseAndReport releases a taken spec and reports r.
func (s *slot) releaseAndReport(a *attempt, r *report) {
	s.release(a)
	s.report(r)
}

// release moves the file of a taken spec to free/ for reuse, which is cheaper than creating another
// file. Large files are removed.
func (s *slot) release(a *attempt) {
	if a.isLarge || renameat(s.taken, a.taken, s.free, a.id.String()) != nil {
		err := retryUnlessMissing(func() error { return unlinkat(s.taken, a.taken, 0) })
		if errors.Is(err, fs.ErrNotExist) { // the spool was deleted, and perhaps made again
			remove(s.spool.path(dirTaken, a.taken))
		}
	}
}

// makeAttemptDir creates the attempt's own directory, if the job needs one.
func (s *slot) makeAttemptDir(job *hosts.LaunchJob, id string) error {
	if job.Files == nil {
		return nil
	}
	dir, err := s.store().Make(id, s.config.Sends, job.Files.Own, job.Files.Return)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(job.Cwd) {
		job.Cwd = filepath.Join(dir, job.Cwd)
	}
	return nil
}

func (s *slot) store() files.Store { return files.Store{Dir: s.config.Files} }

// setSendFailure sets the exit code and the error in the outcome of a job whose files cannot be
// sent.
func setSendFailure(err *files.SendError, o *jobs.Outcome) {
	o.Started = wallClock()
	o.Ended, o.Exit, o.Error = o.Started, 126, "its files cannot be sent: "+err.Text
}

// collect records the files that a successful job returns. If there are none, it removes the
// directory of the attempt. If they cannot be returned, it keeps them and says where; a success
// removes what an earlier attempt left in this way.
func (s *slot) collect(job *hosts.LaunchJob, id string, o *jobs.Outcome) {
	if job.Files == nil {
		return
	}
	var err error
	if o.OK() && len(job.Files.Return) > 0 {
		n, missing, err := s.store().Collect(id, s.config.Sends, job.Files.Own, job.Files.Return)
		switch {
		case errors.Is(err, files.ErrLeadsOut):
			o.Unreturned, o.Error = true, err.Error()
		case err != nil:
			o.Unreturned, o.Error = true, fmt.Sprintf("its files cannot be returned from %s: %v", s.config.Host, err)
		case missing != "":
			o.Unreturned, o.Error = true, fmt.Sprintf("it made no file %.150q, which it returns", missing)
		}
		o.Files = int32(n)
		if o.Unreturned {
			o.Error += s.keep(job.Attempt)
		}
	}
	if o.OK() && !o.Unreturned {
		err = s.store().DropKept(job.Attempt.Job)
	}
	if o.Files == 0 && !s.config.KeepFiles {
		err = cmp.Or(s.store().Drop(id), err)
	}
	if err != nil {
		s.report(&report{Kind: repTrouble, Attempt: job.Attempt, Why: fmt.Sprintf("removing the directory of %s: %v",
			id, err)})
	}
}

// keep keeps the directory of an attempt whose files cannot be returned, and returns the end of a
// sentence that says where.
func (s *slot) keep(id jobs.AttemptID) string {
	dir := s.store().Directory(id.String())
	if !s.config.KeepFiles {
		var err error
		if dir, err = s.store().Keep(id); err != nil {
			return fmt.Sprintf("; its files on %s cannot be kept: %v", s.config.Host, err)
		}
	}
	// Without its own name, the text is the same for all jobs, and they are reported as one.
	return fmt.Sprintf("; its files are kept on %s, below %s", s.config.Host, filepath.Dir(dir))
}

// withSetup puts the setup before the command, in the same shell. If the setup fails, the job fails
// with its exit code instead of running in a wrong environment. That is possible only in Bourne
// shells.
func withSetup(shell []string, setup, command string) string {
	if setup == "" {
		return command
	}
	if hosts.IsBourneShell(strings.Join(shell, " ")) {
		return "{ " + setup + "\n} || exit\n" + command
	}
	return setup + "\n" + command
}

// isHostsFault reports whether a process could not be started because the host lacks resources. A
// missing file is the job's fault: the next attempt goes to another host, which may have it.
func isHostsFault(err error) bool {
	return isAny(err, unix.EAGAIN, unix.ENOMEM, unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EMFILE, unix.ENFILE,
		unix.EIO, unix.ESTALE, unix.ETIMEDOUT, unix.ENOTCONN, unix.EREMOTEIO)
}

// setStartFailure sets the outcome of a job whose shell could not be started. The exit code is that
// of a shell: 127 if a file does not exist, otherwise 126.
func (s *slot) setStartFailure(err error, job *hosts.LaunchJob, o *jobs.Outcome) {
	o.Exit = 126
	cwd := s.cwd(job)
	st, cerr := stat(cwd)
	switch {
	case cwd != "" && errors.Is(cerr, fs.ErrNotExist):
		o.Exit = 127
		o.Error = fmt.Sprintf("the working directory %s does not exist on %s; see --cwd", cwd, s.config.Host)
	case cwd != "" && cerr != nil:
		o.Error = fmt.Sprintf("the working directory on %s: %v", s.config.Host, cerr)
	case cwd != "" && st.Mode&unix.S_IFMT != unix.S_IFDIR:
		o.Error = fmt.Sprintf("the working directory %s is not a directory on %s", cwd, s.config.Host)
	case cwd != "" && unix.Access(cwd, unix.X_OK) != nil:
		o.Error = fmt.Sprintf("the working directory %s cannot be entered on %s", cwd, s.config.Host)
	case err == syscall.EINVAL:
		o.Error = "the command or its environment contains a NUL byte"
	case err == syscall.E2BIG:
		o.Error = "the environment is larger than this host allows"
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound):
		o.Exit = 127
		o.Error = fmt.Sprintf("the shell %s does not exist on %s", strings.Join(s.config.Shell, " "), s.config.Host)
	default:
		o.Error = fmt.Sprintf("starting the shell %s on %s: %v", strings.Join(s.config.Shell, " "), s.config.Host, err)
	}
}
