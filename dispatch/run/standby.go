package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/mirror"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// A standby dispatcher watches the dispatcher of a run through the run directory, and takes over
// the run when that dispatcher dies. Until then it writes only one file, which shows the dispatcher
// that it watches.

const (
	watchInterval        = time.Second      // between two checks of the owner by a standby
	standbysInterval     = 5 * time.Second  // between two checks of its standbys by a dispatcher
	takeOverRetryDelay   = 10 * time.Second // after a failed takeover
	startStandbyInterval = time.Minute      // between two starts of a standby
)

// standbyPrefix begins the name of the file of a standby; machine and pid follow.
const standbyPrefix = "standby."

// maxStandbyFile bounds the size of such a file, in bytes.
const maxStandbyFile = 4 << 10

// standbyFile is the content of that file.
type standbyFile struct {
	V         int       `json:"v"`
	Host      string    `json:"host"` // name of the machine
	PID       int       `json:"pid"`
	Since     time.Time `json:"since"`
	Heartbeat int64     `json:"beat"` // counter; the clocks of two machines are never compared
}

// StandbyOptions configures StandBy.
type StandbyOptions struct {
	Notify     func(text string) // receives messages
	Warn       func(text string) // receives warnings
	OnWatching func()            // called once, when the dispatcher can see that this process watches
	// OtherMachine refuses to watch a dispatcher on this machine, because both would die together.
	OtherMachine bool
	// Hosts and Connector reach the hosts of the run, which decide whether the standby of a mirror
	// takes the run over.
	Hosts     []*hosts.Host
	Connector func(log func(host, line string)) (hosts.Connector, error)
}

// standby is the state of StandBy.
type standby struct {
	StandbyOptions
	run         *rundir.Run
	reader      *journal.Reader
	file        standbyFile
	name        string
	heartbeatAt time.Time
}

// StandBy watches the dispatcher of a run. It takes over the run when that dispatcher is dead, or
// has sent no heartbeat for journal.StaleAfter: a hung dispatcher is fenced like a dead one. It
// returns ErrOver if the dispatcher has ended the run or was stopped by a person, or if the run
// directory was deleted. It blocks until then, or until ctx is done.
func StandBy(ctx context.Context, dir *rundir.Run, o StandbyOptions) (*Owned, error) {
	machine, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read this machine's name: %w", err)
	}
	s := &standby{
		StandbyOptions: o,
		run:            dir,
		reader:         journal.NewReader(dir, nil),
		file: standbyFile{
			V:     jobs.FormatStandby.Version,
			Host:  machine,
			PID:   os.Getpid(),
			Since: time.Now().Truncate(time.Second),
		},
	}
	s.name = fmt.Sprintf("%s%s.%d", standbyPrefix, machine, s.file.PID)
	if err := s.reader.Watch(false); err != nil {
		return nil, err
	}
	switch owner := s.reader.Owner; {
	case owner == nil:
		return nil, text.Errorf("nobody has dispatched the run %s yet", dir.Name())
	case o.OtherMachine && s.reader.Liveness == journal.Alive:
		return nil, text.Errorf("the run %s is dispatched on this machine, so a standby here would die with it",
			dir.Name())
	case owner.Left:
		return nil, text.Errorf("nobody dispatches the run %s", dir.Name()).
			WithAdvice("dcs-tui resume %s continues it", text.ShellWord(text.Line(dir.Ref())))
	}
	if err := s.heartbeat(); err != nil {
		return nil, fmt.Errorf("show in the run directory that a standby watches: %w", err)
	}
	defer dir.Disk.Remove(dir.Path(s.name)) // otherwise the dispatcher removes it
	o.OnWatching()
	o.Notify("standing by for " + s.reader.Owner.String())
	return s.watch(ctx)
}

// watch watches the owner until the run is ours or over.
func (s *standby) watch(ctx context.Context) (*Owned, error) {
	location := s.run.Locate()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	said := ""
	var retryAt time.Time
	for {
		err := s.reader.Watch(false)
		// Only a successful check may lead to a takeover.
		if err == nil && time.Now().After(retryAt) && (s.reader.Liveness == journal.Dead || s.reader.IsHung()) {
			var o *Owned
			o, err = s.takeOver(ctx)
			if o != nil || errors.Is(err, ErrOver) {
				return o, err
			}
			var taken *journal.OwnedError
			// Another standby was faster, or the owner is alive.
			if errors.As(err, &taken) || errors.Is(err, journal.ErrFenced) {
				err = nil
			}
			if errors.Is(err, mirror.ErrOutdated) {
				return nil, err
			}
			retryAt = time.Now().Add(takeOverRetryDelay)
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && location.Deleted():
			return nil, ErrOver
		case err != nil && err.Error() != said:
			said = err.Error()
			s.Warn(said)
		}
		if time.Since(s.heartbeatAt) >= journal.HeartbeatInterval {
			_ = s.heartbeat() // without a heartbeat the dispatcher starts another standby
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// takeOver takes over the run from an owner that is dead, has left, or hangs. It returns ErrOver if
// that owner has ended the run, or was stopped by a person.
func (s *standby) takeOver(ctx context.Context) (*Owned, error) {
	owner := s.reader.Owner
	r := journal.NewReader(s.run, journal.Follow(s.run).Packed())
	if _, err := r.Poll(nil); err != nil {
		return nil, err
	}
	t := r.Table()
	closed := t.Ended || t.Closed.How != ""
	if closed && r.Owner != nil && r.Owner.Token == owner.Token {
		return nil, ErrOver
	}
	opt := journal.TakeOptions{Notify: s.Notify, Standby: true}
	switch {
	case s.reader.Liveness != journal.Dead:
		opt.Silent = owner
		s.Notify(fmt.Sprintf("%s has given no heartbeat for %d s: taking the run over", owner,
			int(s.reader.SinceHeartbeat().Seconds())))
	case owner.Left:
		s.Notify(owner.String() + " has left the run unfinished: taking it over")
	default:
		s.Notify(owner.String() + " has died: taking the run over")
	}
	d, err := mirror.Read(s.run)
	if err != nil {
		return nil, err
	}
	if d != nil && d.Mirror {
		if err := s.claim(ctx); err != nil {
			return nil, fmt.Errorf("the run cannot be taken over: %w", err)
		}
		opt.Mirror = true
	}
	return take(ctx, s.run, opt)
}

// claim has the hosts of the run agree that this standby takes it over from a mirror.
func (s *standby) claim(ctx context.Context) error {
	connector, err := s.Connector(func(string, string) {})
	if err != nil {
		return err
	}
	p := pollsOf(s.run, connector, func() []*hosts.Host { return s.Hosts })
	return mirror.Claim(ctx, s.run, &p, mirror.Lock)
}

// heartbeat writes the file of this standby.
func (s *standby) heartbeat() error {
	began := time.Now()
	s.file.Heartbeat++
	b, err := json.Marshal(s.file)
	if err != nil {
		return err
	}
	err = rundir.ReplaceVolatile(s.run.Disk, s.run.Path(s.name), s.run.Path("."+s.name), append(b, '\n'), nil)
	if err == nil {
		s.heartbeatAt = began // one that fails is tried again at the next look
	}
	return err
}

// standbys keeps one standby dispatcher running for this run. It is not safe for concurrent use.
type standbys struct {
	run        *Run
	heartbeats map[string]lastHeartbeat // by name of the file
	machines   string                   // machines where a standby watches, joined
	startAt    time.Time                // time of the next start of a standby
	warned     map[string]bool          // warnings that were shown
}

// lastHeartbeat is the newest heartbeat of a standby.
type lastHeartbeat struct {
	file standbyFile
	at   time.Time // by this process's clock
}

// serve starts a standby whenever there is none, until the run is over.
func (s *standbys) serve() {
	every := time.NewTicker(standbysInterval)
	defer every.Stop()
	for {
		s.check(time.Now())
		if s.machines == "" && len(s.run.opts.Standby) > 0 && !time.Now().Before(s.startAt) &&
			!s.run.mirror.IsActive() {
			s.start()
		}
		select {
		case <-s.run.ctx.Done():
			return
		case <-every.C:
		}
	}
}

// check reads the files of standbys, removes stale ones, and reports a change.
func (s *standbys) check(now time.Time) {
	dir := s.run.dir
	names, err := dir.Disk.Names(dir.Dir)
	if err != nil {
		return
	}
	var on []string
	for _, name := range names {
		if !strings.HasPrefix(name, standbyPrefix) {
			continue
		}
		var f standbyFile
		b, err := dir.ReadPrivate(name, maxStandbyFile)
		if err != nil || json.Unmarshal(b, &f) != nil || f.V != jobs.FormatStandby.Version {
			continue
		}
		sign, known := s.heartbeats[name]
		if !known || sign.file.Heartbeat != f.Heartbeat || !sign.file.Since.Equal(f.Since) {
			sign = lastHeartbeat{f, now}
			s.heartbeats[name] = sign
		}
		if now.Sub(sign.at) < journal.StaleAfter {
			on = append(on, text.Line(f.Host))
		} else if dir.Disk.Remove(dir.Path(name)) == nil { // a standby that continues writes it again
			delete(s.heartbeats, name)
		}
	}
	slices.Sort(on)
	joined := strings.Join(slices.Compact(on), ", ")
	if joined == s.machines {
		return
	}
	s.machines = joined
	if joined == "" {
		s.run.printWarning("no standby dispatcher watches any more")
	} else {
		s.run.printText("a standby dispatcher watches on " + joined)
	}
	s.run.publisher.SetStandby(joined)
}

// start starts a standby on the first host that can have one.
func (s *standbys) start() {
	r := s.run
	s.startAt = time.Now().Add(startStandbyInterval)
	open := s.openMirror()
	for _, h := range r.opts.Standby {
		w, err := r.connector.Connect(r.ctx, h, &hosts.Open{
			Version: hosts.ProtocolVersion,
			Run:     r.dir.UID(),
			RunName: r.dir.Name(),
			Host:    h.Name,
			RunDir:  filepath.Clean(r.dir.Dir),
			Nonce:   r.dir.Nonce,
			WorkDir: h.WorkDir,
			Env:     r.secretEnv(),
			Standby: true,
			Mirror:  open,
		})
		if err == nil && open != nil && w.Hello().Mirrors {
			go s.keepMirror(h, w, open.Generation)
			return
		}
		if err == nil {
			w.Close()
			return
		}
		if r.ctx.Err() != nil {
			return
		}
		if said := fmt.Sprintf("no standby dispatcher on %s: %v", h.Name, err); !s.warned[said] {
			s.warned[said] = true
			r.printWarning(said)
		}
	}
}

// openMirror describes the next mirror. It returns nil if a mirror would not be enough to continue
// the run, because jobs get and return files of this machine.
func (s *standbys) openMirror() *hosts.OpenMirror {
	owner, err := journal.ReadOwner(s.run.dir)
	if err != nil || owner == nil || s.run.filesUsed.Load() {
		return nil
	}
	return &hosts.OpenMirror{Generation: mirror.NewGeneration(), Epoch: s.run.journal.Epoch(), Boot: owner.Boot}
}

// keepMirror keeps a mirror on h as long as it can.
func (s *standbys) keepMirror(h *hosts.Host, w hosts.Worker, generation string) {
	s.run.printText(fmt.Sprintf("the run directory is being copied to %s, which does not share it: "+
		"the run is not protected before that", h.Name))
	if err := s.run.mirror.Protect(h, w, generation); err != nil {
		s.run.publisher.SetStandby("")
		s.run.printWarning(fmt.Sprintf("no standby dispatcher on %s: %v", h.Name, err))
	}
}
