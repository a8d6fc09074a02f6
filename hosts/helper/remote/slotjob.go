//go:build linux

package remote

import (
	"errors"
	"fmt"
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
			s.report(&report{kind: repLapsed, attempt: id})
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
	if n := job.Slots; n > 1 && !s.awaitSlots(n, min(lease, uptime()+wideWait)) {
		s.giveBack(a, &report{kind: repLapsed, attempt: id})
		return
	}
	dir, err := s.prepare(a)
	switch {
	case errors.Is(err, errClaimed):
		s.close(a)
		s.drop(a, &report{kind: repKnown, attempt: id})
		return
	case err != nil:
		s.refuse(a, err)
		return
	}
	// Looked at again in the last instant: taking and claiming can have hung.
	if uptime() > lease {
		s.giveBack(a, &report{kind: repLapsed, attempt: id})
		return
	}
	s.execute(a, dir, job)
}

// wideWait is how long a job of several slots waits for them on a shared host.
const wideWait = 5 * time.Second

// take makes the spec ours. When it is not known whether it is, because an answer
// was lost, what the directory shows decides.
func (s *slot) take(a *attempt, name string) bool {
	err := renameat(s.in, name, s.taken, a.taken)
	for told := false; err != nil && !errors.Is(err, unix.ENOENT) && s.ctl.at(ctlEnd).Load() == 0; told = true {
		if !told {
			s.report(&report{kind: repTrouble, attempt: a.id, why: fmt.Sprintf("taking %s: %v", a.id, err)})
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
	// A directory that was removed under us, or a stale handle: open it anew, once.
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
			s.report(&report{kind: repTrouble, attempt: a.id, why: fmt.Sprintf("%s may be incomplete: %v", f.name, err)})
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
		started := &report{kind: repStarted, attempt: a.id, job: pid, at: o.Started}
		if last := s.debt.cur.Swap(nil); last != nil {
			s.release(last.a)
			s.report(last.exit, started)
		} else {
			s.report(started)
		}
		s.wait(pid, &o)
		why, used, suspended := s.watch.end()
		o.TimedOut, o.Stopped, o.Suspended = why == endTimeout, why == endRequest, suspended
		s.memoryEnd(job.Mem, why, used, &o)
		o.LeftChildren = s.leftChildren()
	} else {
		s.explain(err, job, &o)
	}
	s.removeScript(a)
	s.collect(job, id, &o)
	if !o.OK() {
		o.LastLine = lastLine(a.err, id+".err")
		o.DiskFull = err == nil && !o.Stopped && o.Memory == "" && s.disks.any(s.cfg.Dir, s.cwd(job))
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
	defer usualSlack()()
	s.oom.begin()
	s.oom.offer()
	defer s.oom.withdraw()
	return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir:   s.cwd(job),
		Env:   s.env.of(job, s.cookies+id, s.progress+id),
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
