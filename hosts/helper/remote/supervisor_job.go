//go:build linux

package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// attempt is the job at hand: its files, from its claim to its sentinel.
type attempt struct {
	id     jobs.AttemptID
	taken  string // name in taken/
	claim  attempts.Claim
	out    int // descriptors; -1: not open
	err    int
	status int
	large  bool   // the spec's file is not worth keeping
	script string // "" unless the command was too long for an argument
	gpus   []gpuLock
}

// run does what a ticket asks: take the spec, unless it was withdrawn or taken,
// and run it, unless its lease has run out or it was claimed before.
func (s *slot) run(generation int64, id jobs.AttemptID) {
	name := specName(generation, id)
	// Read once: if taking or claiming hangs until it has run out, the dispatcher may have
	// given the attempt up, and a lease that is extended later must not revive it.
	lease := s.ctl.lease()
	if uptime() > lease {
		// Removed rather than left: what has lapsed must never be fed again.
		if unlinkat(s.in, name, 0) == nil {
			s.report(&report{Kind: repLapsed, Attempt: id})
		}
		return
	}
	a := &attempt{id: id, taken: takenName(id, s.by), out: -1, err: -1, status: -1}
	if !s.take(a, name) {
		return // withdrawn, or a ticket of old
	}
	a.claim = attempts.Claim{Run: s.cfg.Run, Attempt: a.id, Host: s.cfg.Host, By: s.by.String(), Boot: s.cfg.Boot, At: wall()}
	job, err := s.readSpec(a)
	if err != nil {
		s.refuse(a, err)
		return
	}
	// Before the claim, because a device in use is common, and a refusal here costs little.
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
	dir, err := s.prepare(a)
	switch {
	case errors.Is(err, errClaimed):
		s.close(a)
		s.drop(a, &report{Kind: repKnown, Attempt: id})
		return
	case err != nil:
		s.refuse(a, err)
		return
	}
	// Looked at again in the last instant: taking and claiming can have hung.
	if uptime() > lease {
		s.giveBack(a, &report{Kind: repLapsed, Attempt: id})
		return
	}
	s.execute(a, dir, job)
}

// wideTimeout is how long a job of several slots waits for them on a shared host.
const wideTimeout = 5 * time.Second

// take makes the spec ours. When it is not known whether it is, because an answer
// was lost, what the directory shows decides.
func (s *slot) take(a *attempt, name string) bool {
	err := renameat(s.in, name, s.taken, a.taken)
	for told := false; err != nil && !errors.Is(err, unix.ENOENT) && s.ctl.at(ctlEnd).Load() == 0; told = true {
		if !told {
			s.report(&report{Kind: repTrouble, Attempt: a.id, Why: fmt.Sprintf("taking %s: %v", a.id, err)})
		}
		var st unix.Stat_t
		if err = statat(s.taken, a.taken, &st, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			time.Sleep(pauses[1])
		}
	}
	return err == nil
}

// keepSpec is the size up to which a spec's file is used again, in bytes.
const keepSpec = 64 << 10

func (s *slot) readSpec(a *attempt) (*hosts.LaunchJob, error) {
	for {
		n, err := readInto(s.taken, a.taken, s.buf)
		if err != nil {
			return nil, fmt.Errorf("reading its specification: %w", err)
		}
		if n < len(s.buf) {
			a.large = n > keepSpec
			job, err := parseSpec(s.buf[:n])
			if err == nil && job.Attempt != a.id {
				err = fmt.Errorf("%w: it is of attempt %s", errSpec, job.Attempt)
			}
			return job, err
		}
		s.buf = make([]byte, 2*len(s.buf))
	}
}

// prepare makes the claim and the files.
func (s *slot) prepare(a *attempt) (dir int, err error) {
	if dir, err = s.shard(a.id.Job); err != nil {
		return dir, err
	}
	a.status, err = makeClaim(dir, s.cfg.claimTemp(s.by), &a.claim)
	// A directory that was removed under us, or a stale handle: open it again, once.
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) {
		first := err
		s.forgetShard()
		if dir, err = s.shard(a.id.Job); err != nil {
			return dir, err
		}
		if a.status, err = makeClaim(dir, s.cfg.claimTemp(s.by), &a.claim); errors.Is(err, errClaimed) {
			err = first // perhaps by ourselves, just now
		}
	}
	if err != nil {
		if !errors.Is(err, errClaimed) {
			err = fmt.Errorf("making the claim in %s: %w", s.cfg.Dir, err)
		}
		return dir, err
	}
	if err := s.makeFiles(a, dir); err != nil {
		return dir, fmt.Errorf("making its files in %s: %w", s.cfg.Dir, err)
	}
	return dir, nil
}

func (s *slot) makeFiles(a *attempt, dir int) (err error) {
	id := a.id.String()
	// Appending, so that two writers to one file do not overwrite each other.
	const flags = unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND
	if a.out, err = openat(dir, id+".out", flags|unix.O_WRONLY, 0o600); err != nil {
		return err
	}
	a.err, err = openat(dir, id+".err", flags|unix.O_RDWR, 0o600)
	return err
}

func (s *slot) close(a *attempt) {
	unlockGPUs(a.gpus)
	a.gpus = nil
	for _, f := range []struct {
		fd   *int
		name jobs.File
	}{{&a.out, jobs.FileOut}, {&a.err, jobs.FileErr}, {&a.status, jobs.FileStatus}} {
		if *f.fd < 0 {
			continue
		}
		if err := closeFile(*f.fd, a.id.String()+"."+string(f.name)); err != nil {
			s.report(&report{Kind: repTrouble, Attempt: a.id, Why: fmt.Sprintf("%s may be incomplete: %v", f.name, err)})
		}
		*f.fd = -1
	}
}

// execute starts the shell, waits for it and writes down how it ended.
func (s *slot) execute(a *attempt, dir int, job *hosts.LaunchJob) {
	id := a.id.String()
	o := jobs.Outcome{}
	pid, err := 0, s.enter(job, id)
	var refused *files.SendError
	if errors.As(err, &refused) {
		notSent(refused, &o)
		s.finish(a, dir, &o)
		return
	}
	if err != nil {
		s.refuse(a, fmt.Errorf("making the directory of the job: %w", err))
		return
	}
	pid, err = s.start(a, job, id, &o)
	if err != nil && hostsFault(err) {
		s.removeScript(a)
		s.refuse(a, fmt.Errorf("starting a process: %w", err))
		return
	}
	if err == nil {
		s.watch.begin(a.id, pid, job.Timeout, job.Mem)
		started := &report{Kind: repStarted, Attempt: a.id, Job: pid, At: o.Started}
		if last := s.pending.cur.Swap(nil); last != nil {
			s.release(last.a)
			s.report(last.exit, started)
		} else {
			s.report(started)
		}
		s.wait(pid, &o)
		why, used, suspended := s.watch.end()
		o.TimedOut, o.Stopped, o.Suspended = why == endTimeout, why == endRequest, suspended
		s.memoryEnd(job.Mem, why, used, &o)
		o.LeftChildren = int32(s.leftChildren())
	} else {
		s.explain(err, job, &o)
	}
	s.removeScript(a)
	s.collect(job, id, &o)
	if !o.OK() {
		o.LastLine = lastLine(a.err, id+".err")
		o.DiskFull = err == nil && !o.Stopped && o.Memory == "" && s.onFullDisk(s.cfg.Dir, s.cwd(job))
	}
	s.finish(a, dir, &o)
}

// maxArgument is the longest command handed to the shell as an argument (the
// kernel's limit is 128 KiB); longer ones go through a script.
const maxArgument = 100 << 10

// start runs the shell in a process group of its own. The shell gets standard input,
// output and error, and the descriptors that lock its GPUs. It does not get a session
// of its own: the supervisor has no terminal, and the kernel makes a scheduling group
// for each session, which costs as much as everything else that we do for a job.
func (s *slot) start(a *attempt, job *hosts.LaunchJob, id string, o *jobs.Outcome) (int, error) {
	setup := job.Setup
	if setup == "" {
		setup = s.cfg.Setup
	}
	text := script(s.cfg.Shell, setup, job.Command)
	argv := make([]string, 0, 4)
	argv = append(argv, s.cfg.Shell...)
	o.Started = wall()
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
	s.oom.begin()
	s.oom.offer()
	defer s.oom.withdraw()
	return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir:   s.cwd(job),
		Env:   jobEnv(s.env, job, s.cfg.GPUs, s.cookies+id, s.progress+id),
		Files: a.files(),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
}

// files returns the descriptors that the job gets.
func (a *attempt) files() []uintptr {
	files := []uintptr{0, uintptr(a.out), uintptr(a.err)}
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

func (s *slot) cwd(job *hosts.LaunchJob) string {
	if job.Cwd != "" {
		return job.Cwd
	}
	return s.cfg.Cwd
}

func (s *slot) removeScript(a *attempt) {
	if a.script != "" {
		again(func() error { return remove(a.script) })
	}
}

// wait collects children until the job's shell has ended; orphans come by too.
func (s *slot) wait(pid int, o *jobs.Outcome) {
	var ws syscall.WaitStatus
	var ru syscall.Rusage
	for {
		got, err := syscall.Wait4(-1, &ws, 0, &ru)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // cannot be: the shell is our child and nobody else waits
			o.Error = "its end was not seen: " + err.Error()
			return
		}
		if got == pid {
			break
		}
		delete(s.left, got)
	}
	o.Ended = wall()
	o.Exit, o.Signal = ws.ExitStatus(), ""
	if ws.Signaled() {
		o.Exit, o.Signal = 0, jobs.SignalName(int(ws.Signal()))
	}
	o.CPU = timeOf(ru.Utime) + timeOf(ru.Stime)
	o.MaxRSSBytes = ru.Maxrss << 10
}

// refuse gives an attempt back that could not be started here: infrastructure,
// not the job's fault.
func (s *slot) refuse(a *attempt, err error) {
	r := &report{Kind: repRefused, Attempt: a.id, Why: err.Error()}
	if taken := (*takenError)(nil); errors.As(err, &taken) {
		r.GPUs = taken.devices
	}
	s.giveBack(a, r)
	s.forgetShard() // what is mounted there may be another one by now
}

// giveBack lets go of an attempt that has not been started, leaving a tombstone, and says
// why. When it is not certain that nobody starts it or has, the helper is to find out.
func (s *slot) giveBack(a *attempt, r *report) {
	s.close(a)
	dir, err := s.shard(a.id.Job)
	if err == nil && ensureTombstone(dir, s.cfg.claimTemp(s.by), a.claim) {
		s.drop(a, r)
		return
	}
	s.release(a)
	if r.Kind == repRefused {
		s.report(&report{Kind: repTrouble, Attempt: a.id, Why: r.Why})
	}
	s.report(&report{Kind: repKnown, Attempt: a.id})
}

// drop lets go of a taken spec, then says why.
func (s *slot) drop(a *attempt, r *report) {
	s.release(a)
	s.report(r)
}

// release gives a taken spec's file back to the helper for another spec, which is
// cheaper than a new one, unless it is a large one.
func (s *slot) release(a *attempt) {
	if a.large || renameat(s.taken, a.taken, s.free, a.id.String()) != nil {
		again(func() error { return unlinkat(s.taken, a.taken, 0) })
	}
}

// enter makes the directory of an attempt that has one of its own.
func (s *slot) enter(job *hosts.LaunchJob, id string) error {
	if job.Files == nil {
		return nil
	}
	dir, err := s.store().Make(id, s.cfg.Sends, job.Files.Own)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(job.Cwd) {
		job.Cwd = filepath.Join(dir, job.Cwd)
	}
	return nil
}

func (s *slot) store() files.Store { return files.Store{Dir: s.cfg.Files} }

// notSent completes the outcome of a job that cannot get its files.
func notSent(err *files.SendError, o *jobs.Outcome) {
	o.Started = wall()
	o.Ended, o.Exit, o.Error = o.Started, 126, "its files cannot be sent: "+err.Text
}

// collect records what a job returns that has succeeded. Without anything to return, its
// directory is removed.
func (s *slot) collect(job *hosts.LaunchJob, id string, o *jobs.Outcome) {
	if job.Files == nil {
		return
	}
	if o.OK() && len(job.Files.Return) > 0 {
		n, missing, err := s.store().Collect(id, s.cfg.Sends, job.Files.Own, job.Files.Return)
		switch {
		case errors.Is(err, files.ErrLeadsOut):
			o.Unreturned, o.Error = true, err.Error()
		case err != nil:
			o.Unreturned, o.Error = true, fmt.Sprintf("its files cannot be returned from %s: %v", s.cfg.Host, err)
		case missing != "":
			o.Unreturned, o.Error = true, fmt.Sprintf("it made no file %q, which it returns", missing)
		}
		o.Files = int32(n)
	}
	if o.Files == 0 && !s.cfg.KeepFiles {
		if err := s.store().Drop(id); err != nil {
			s.report(&report{Kind: repTrouble, Attempt: job.Attempt, Why: fmt.Sprintf("removing the directory of %s: %v", id, err)})
		}
	}
}

// script puts the setup before the command, in the same shell. A job whose setup
// fails would run in the wrong environment: it fails instead, with the setup's
// exit code. Shells that are not of Bourne's family have no word for that.
func script(shell []string, setup, command string) string {
	if setup == "" {
		return command
	}
	switch name := filepath.Base(shell[0]); name {
	case "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox":
		return "{ " + setup + "\n} || exit\n" + command
	}
	return setup + "\n" + command
}

// hostsFault reports whether a process could not be started for lack of what the host
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

// explain records why the shell could not be started, with the exit code a shell
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

// baseEnv returns the environment that all jobs of a supervisor begin with: what the login
// shell gave the helper, the variables of the run, and ours that are the same for all jobs.
// Of several entries for one variable the last one counts.
func baseEnv(inherited []string, cfg *slotConfig, slot int) (env []string) {
	for _, kv := range inherited {
		if strings.Contains(kv, "=") && !strings.HasPrefix(kv, "DCS_") {
			env = append(env, kv)
		}
	}
	for _, v := range cfg.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	return append(env,
		"DCS_RUN="+cmp.Or(cfg.RunName, cfg.Run),
		"DCS_RUN_DIR="+cfg.Dir,
		"DCS_HOST="+cfg.Host,
		"DCS_SLOT="+strconv.Itoa(slot))
}

// jobEnv returns the environment of a job, without duplicates. gpus are the devices of the
// host, progress is the path of the job's DCS_PROGRESS.
func jobEnv(base []string, j *hosts.LaunchJob, gpus []int, mark, progress string) []string {
	// Defaults come first, so that the user's values override them.
	env := []string{"OMP_NUM_THREADS=" + strconv.Itoa(max(1, j.Slots))}
	if len(j.GPUs) > 0 {
		env = append(env, "CUDA_DEVICE_ORDER=PCI_BUS_ID") // the order in which nvidia-smi numbers devices
	}
	env = append(env, base...)
	for _, v := range j.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	if len(j.GPUs) > 0 {
		amount := jobs.GPUs(len(j.GPUs))
		if j.HalfGPU {
			amount = jobs.HalfGPU
		}
		visible := slices.Clone(j.GPUs)
		for i, g := range visible {
			if n := slices.Index(gpus, g); n >= 0 {
				visible[i] = n // CUDA numbers the devices that it can open
			}
		}
		env = append(env, "DCS_GPUS="+amount.String(), "CUDA_VISIBLE_DEVICES="+joinInts(visible))
	}
	for _, p := range j.Params {
		env = append(env, "DCS_PARAM_"+variableName(p.Name)+"="+p.Value)
	}
	env = append(env,
		"DCS_JOB_ID="+strconv.Itoa(int(j.Attempt.Job)),
		"DCS_ATTEMPT="+j.Attempt.String(),
		"DCS_RESTARTS="+strconv.Itoa(j.Restart),
		"DCS_PROGRESS="+progress,
		"DCS_REPORT="+progress+reportSuffix,
		cookieVar+"="+mark)
	return lastValues(env)
}

// lastValues removes all but the last entry for each variable.
func lastValues(env []string) []string {
	last := make(map[string]int, len(env))
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	kept := env[:0]
	for i, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); last[name] == i {
			kept = append(kept, kv)
		}
	}
	return kept
}

// variableName makes a shell variable's name of any text.
func variableName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}
