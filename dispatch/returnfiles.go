package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// returns holds the state of the files that attempts return. It is safe for concurrent use.
type returns struct {
	mu      sync.Mutex
	fetched map[jobs.AttemptID]bool // attempts whose files are here
	// The jobs of which an attempt moves its files to their places: of each job only one does at a
	// time. The channel is closed when it has.
	placing    map[jobs.ID]chan struct{}
	returnedBy map[uint64]jobs.ID // job that returned the file at a path, by a hash of the path
}

func newReturns() *returns {
	return &returns{fetched: map[jobs.AttemptID]bool{}, placing: map[jobs.ID]chan struct{}{},
		returnedBy: map[uint64]jobs.ID{}}
}

// startPlacing waits until no attempt of a job moves its files. end must be called then.
func (r *returns) startPlacing(ctx context.Context, job jobs.ID) (end func(), err error) {
	done := make(chan struct{})
	for {
		r.mu.Lock()
		other := r.placing[job]
		if other == nil {
			r.placing[job] = done
		}
		r.mu.Unlock()
		if other == nil {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.placing, job)
		close(done)
	}), nil
}

func (r *returns) isFetched(id jobs.AttemptID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fetched[id]
}

func (r *returns) setFetched(id jobs.AttemptID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetched[id] = true
}

// forget frees the state of an attempt whose job has its result.
func (r *returns) forget(id jobs.AttemptID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.fetched, id)
}

// isWaiting reports whether an outcome must not count before its files are here.
func (r *returns) isWaiting(id jobs.AttemptID, o *jobs.Outcome) bool {
	return o.OK() && o.Files > 0 && !r.isFetched(id)
}

// dropUnfetched removes such outcomes from the observations of a host that cannot be queried. Until
// their files are here, they only prove that the attempts have started.
func (r *returns) dropUnfetched(m *hosts.Inspected) {
	m.Jobs = slices.DeleteFunc(m.Jobs, func(j hosts.ExitedJob) bool {
		if !r.isWaiting(j.Attempt, &j.Outcome) {
			return false
		}
		m.Runs = append(m.Runs, j.Attempt)
		return true
	})
}

// Errors that end the return of files of an attempt that does not count.
var (
	errSurplus = errors.New("the job has its result")
	errStale   = errors.New("the attempt is of an earlier round, or is not known")
)

// claimPlaces permits an attempt to move its files to their places. Otherwise it returns errSurplus
// or errStale. release must be called when the engine has its outcome.
func (d *Dispatcher) claimPlaces(ctx context.Context, id jobs.AttemptID) (release func(), err error) {
	release, err = d.returns.startPlacing(ctx, id.Job)
	if err != nil {
		return nil, err
	}
	refused, err := query(ctx, d, func(e *engine) error {
		t := e.core.Table()
		j, at := t.Job(id.Job), t.Attempt(id)
		switch {
		case j == nil || at == nil:
			return errStale
		case j.State.Terminal():
			return errSurplus
		case mayCount(j, at):
			return nil
		}
		return errStale
	})
	if err = cmp.Or(err, refused); err != nil {
		release()
	}
	return release, err
}

// fetch is the transfer of the files that one attempt returns.
type fetch struct {
	ended     hosts.ExitedJob
	cancel    context.CancelFunc
	killed    bool   // the attempt must be ended
	linkBroke bool   // it failed because the link broke; a probe will find the outcome again
	release   func() // nil: its files are not being moved to their places yet
}

const (
	fetchRetryDelay = 2 * time.Second
	// maxHostFetches bounds the attempts of a host whose files are returned at the same time.
	maxHostFetches = 16
	// fetchChunk is the size of a request, in bytes. Heartbeats and exits wait for at most one
	// request.
	fetchChunk = 128 << 10
)

// fetchReturned removes the outcomes whose files are not here yet from a message, and starts to
// fetch those files.
func (a *agent) fetchReturned(m *hosts.Exits) {
	var waiting []jobs.AttemptID
	for i := range m.Jobs {
		if a.d.returns.isWaiting(m.Jobs[i].Attempt, &m.Jobs[i].Outcome) {
			waiting = append(waiting, m.Jobs[i].Attempt)
		}
	}
	if len(waiting) == 0 {
		return
	}
	needs := a.needsFiles(waiting)
	var held []hosts.StartedJob
	m.Jobs = slices.DeleteFunc(m.Jobs, func(j hosts.ExitedJob) bool {
		if !needs[j.Attempt] || !a.d.returns.isWaiting(j.Attempt, &j.Outcome) {
			return false
		}
		held = append(held, hosts.StartedJob{Attempt: j.Attempt, Slot: j.Slot, At: j.Outcome.Started})
		a.startFetch(j)
		return true
	})
	if len(held) > 0 { // a host reports no start together with an end
		a.sendEvent(sched.AttemptsStarted{Host: a.name, Msg: &hosts.Started{Jobs: held}})
	}
}

// fetchProbed does the same for the answer to a probe or a list. Such an attempt counts as running.
// If no record of it is left, its files are fetched when it is probed again, with a record.
func (a *agent) fetchProbed(list []hosts.ProbedJob) {
	var waiting []jobs.AttemptID
	for i := range list {
		if p := &list[i]; p.Answer == hosts.HasExited && a.d.returns.isWaiting(p.Attempt, p.Outcome) {
			waiting = append(waiting, p.Attempt)
		}
	}
	if len(waiting) == 0 {
		return
	}
	needs := a.needsFiles(waiting)
	for i := range list {
		p := &list[i]
		fetched, ok := needs[p.Attempt]
		if ok && p.Answer == hosts.HasExited && a.d.returns.isWaiting(p.Attempt, p.Outcome) {
			if fetched {
				a.startFetch(hosts.ExitedJob{Attempt: p.Attempt, Slot: p.Slot, Outcome: *p.Outcome})
			}
			p.Answer, p.Started, p.Outcome = hosts.IsRunning, p.Outcome.Started, nil
		}
	}
}

// needsFiles returns for which of the attempts an outcome must wait for its files: those that the
// host was given and whose outcomes may still count. The value is false for those without a record.
// The core decides about all others, and ignores them if they are not attempts of the host.
func (a *agent) needsFiles(ids []jobs.AttemptID) map[jobs.AttemptID]bool {
	needs, _ := query(a.ctx, a.d, func(e *engine) map[jobs.AttemptID]bool { // none after the end
		needs := map[jobs.AttemptID]bool{}
		t := e.core.Table()
		for _, id := range ids {
			switch at := t.Attempt(id); {
			case at == nil || at.Host == "":
				needs[id] = false
			case e.core.IsAssigned(a.name, id) && mayCount(t.Job(id.Job), at):
				needs[id] = true
			}
		}
		return needs
	})
	return needs
}

// mayCount reports whether the outcome of an attempt may still count. A lost attempt's may.
func mayCount(j *jobs.Job, at *jobs.Attempt) bool {
	return !j.State.Terminal() && at.Round == j.Round && (at.State.Open() || at.State == jobs.AttemptLost)
}

func (a *agent) startFetch(j hosts.ExitedJob) {
	if a.fetches[j.Attempt] != nil {
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	b := &fetch{ended: j, cancel: cancel}
	a.fetches[j.Attempt] = b
	go func() {
		a.fetchFiles(ctx, b)
		select {
		case a.fetched <- b:
		case <-a.ctx.Done():
			b.cancelTransfer()
		}
	}()
}

// cancelTransfer cancels the transfer, and allows other attempts of the job to transfer files.
func (b *fetch) cancelTransfer() {
	b.cancel()
	if b.release != nil {
		b.release()
	}
}

// cancelFetches cancels the fetches of attempts that are to be ended.
func (a *agent) cancelFetches(ids []jobs.AttemptID) {
	for _, id := range ids {
		if b := a.fetches[id]; b != nil {
			b.killed = true
			b.cancel()
		}
	}
}

// handleFetched passes the outcome on.
func (a *agent) handleFetched(b *fetch) {
	delete(a.fetches, b.ended.Attempt)
	if b.linkBroke && b.killed {
		b.linkBroke, b.ended.Outcome.Stopped = false, true
	}
	switch {
	case b.linkBroke && a.worker != nil: // the link has been replaced already
		a.startFetch(b.ended)
	case !b.linkBroke:
		a.sendEvent(sched.AttemptsEnded{Host: a.name, Msg: &hosts.Exits{Jobs: []hosts.ExitedJob{b.ended}}})
	}
	b.cancelTransfer()
}

// fetchFiles fetches the files that an attempt returns. It retries while a disk of this machine
// fails. Any other error makes the attempt fail. ctx ends when the link breaks.
func (a *agent) fetchFiles(ctx context.Context, b *fetch) {
	id, told := b.ended.Attempt, ""
	select {
	case a.fetchTokens <- struct{}{}:
		defer func() { <-a.fetchTokens }()
	case <-ctx.Done():
		b.linkBroke = true
		return
	}
	for {
		err := a.tryFetch(ctx, b)
		var place *files.PlaceError
		var gone *goneError
		var full *files.SpaceError
		switch {
		case err == nil:
			a.d.returns.setFetched(id)
			return
		case errors.Is(err, errSurplus):
			return
		case errors.Is(err, errStale):
			b.ended.Outcome.Stopped = true // it must not count as a success without its files
			return
		case ctx.Err() != nil:
			b.linkBroke = true
			return
		case errors.As(err, &gone), errors.As(err, &place) && !IsDiskFault(err), errors.As(err, &full) && full.TooLarge:
			b.ended.Outcome.Unreturned, b.ended.Outcome.Error = true, "its files could not be returned: "+err.Error()
			return
		}
		if text := err.Error(); text != told {
			told = text
			a.sendJobNotice(id.Job, fmt.Sprintf("the files that job %d returns cannot be copied now: %s; "+
				"this is tried again, and the job counts as running until then", id.Job, text))
		}
		select {
		case <-time.After(fetchRetryDelay):
		case <-ctx.Done():
		}
	}
}

// IsDiskFault reports whether an error is caused by a disk or a file server, and may be temporary.
func IsDiskFault(err error) bool {
	faults := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.ESTALE, syscall.ETIMEDOUT,
		syscall.EINTR}
	return slices.ContainsFunc(faults, func(fault error) bool { return errors.Is(err, fault) })
}

// goneError is the error for a file that the host no longer has.
type goneError struct{ why string }

func (e *goneError) Error() string { return e.why }

// Bounds of the list of the files that an attempt returns, which its host sends. With
// maxHostFetches they bound the memory that a host can make us use.
const (
	maxReturnedFiles = 1 << 18
	maxReturnedList  = 16 << 20 // bytes
)

// returnedList reads the list of the files that an attempt returns.
func (a *agent) returnedList(
	b *fetch, read func(path string, offset, size int64) ([]byte, error),
) (files.Manifest, error) {
	var list []byte
	for {
		data, err := read("", int64(len(list)), -1)
		if err != nil {
			return nil, err
		}
		list = append(list, data...)
		if len(list) > maxReturnedList {
			return nil, &goneError{fmt.Sprintf("the list of them has more than %s", text.Size(maxReturnedList))}
		}
		if len(data) < fetchChunk {
			break
		}
	}
	m, err := files.Decode(list)
	switch {
	case err != nil:
		return nil, &goneError{err.Error()}
	case len(m) != int(b.ended.Outcome.Files) || len(m) > maxReturnedFiles:
		return nil, &goneError{fmt.Sprintf("the host lists %d of them, and reported %d (at most %d can be returned)",
			len(m), b.ended.Outcome.Files, maxReturnedFiles)}
	}
	return m, nil
}

// placement returns where the files of an attempt may be written. Only the patterns of the job
// itself decide: a host that lies about what they match is not believed.
func (a *agent) placement(ctx context.Context, id jobs.AttemptID) (*files.Placement, error) {
	f := &a.d.cfg.Files
	if f.Source == nil {
		return nil, &goneError{"this run returns no files"}
	}
	spec, err := a.specOf(ctx, id)
	if errors.Is(err, errNotGiven) {
		return nil, errStale
	}
	if err != nil {
		return nil, err
	}
	patterns, err := jobs.ParseReturn(f.patterns(spec))
	if err != nil {
		return nil, &goneError{err.Error()}
	}
	return &files.Placement{Base: f.BaseDir, Records: f.RecordDir, Attempt: id.String(), Patterns: patterns,
		Protected: f.Protected, Space: &a.space}, nil
}

func (a *agent) tryFetch(ctx context.Context, b *fetch) error {
	id := b.ended.Attempt
	place, err := a.placement(ctx, id)
	if err != nil {
		return err
	}
	read := func(path string, offset, size int64) ([]byte, error) {
		data, is, err := a.output(ctx, hosts.Read{Attempt: id, File: hosts.FileReturned, Path: path, Offset: offset,
			Limit: fetchChunk})
		if errors.Is(err, fs.ErrNotExist) {
			err = &goneError{err.Error()}
		}
		if err == nil && size >= 0 && is != size {
			err = &goneError{fmt.Sprintf("%q was changed after the job had ended", path)}
		}
		return data, err
	}
	m, err := a.returnedList(b, read)
	if err != nil {
		return err
	}
	transfer := a.transfers.Begin(m.Bytes())
	defer transfer.End()
	content := func(path string, offset, size int64) ([]byte, error) {
		data, err := read(path, offset, size)
		transfer.Add(len(data))
		return data, err
	}
	err = place.Place(m, content, func() error {
		release, err := a.d.claimPlaces(ctx, id)
		b.release = release
		return err
	})
	if err == nil {
		a.reportRepeats(id, m)
	} else if b.release != nil {
		b.release()
	}
	return err
}

// reportRepeats reports the files that another job has returned before.
func (a *agent) reportRepeats(id jobs.AttemptID, m files.Manifest) {
	r := a.d.returns
	first, by, n := "", jobs.ID(0), 0
	r.mu.Lock()
	for i := range m {
		path := maphash.String(pathSeed, m[i].Path)
		if was := r.returnedBy[path]; was != 0 && was != id.Job {
			n++
			if n == 1 {
				first, by = m[i].Path, was
			}
		}
		r.returnedBy[path] = id.Job
	}
	r.mu.Unlock()
	if n > 0 {
		more := text.If(n > 1, fmt.Sprintf(" and %d more", n-1))
		a.sendJobNotice(id.Job, fmt.Sprintf("jobs %d and %d both return %q%s: the file of job %d is replaced; "+
			"let each job return a file with its own name", by, id.Job, first, more, by))
	}
}

// describeReturns describes the return of files from the host; "": none are returned now.
func (a *agent) describeReturns() string {
	n, progress := a.transfers.Progress()
	return text.If(n != 0, fmt.Sprintf("returns files of %s: %s", text.Plural(n, "job"), progress))
}

// releaseFiles notifies hosts that these results and their files are durable here.
func (e *engine) releaseFiles(results []*Result) {
	var of map[string][]jobs.AttemptID
	for _, r := range results {
		if r.Outcome != nil && r.Outcome.Files > 0 {
			jobs.Insert(&of, r.Host, append(of[r.Host], r.Attempt))
			e.d.returns.forget(r.Attempt)
			go files.RemovePlaceRecord(e.d.cfg.Files.RecordDir, r.Attempt.String()) // the disk may hang
		}
	}
	for host, ids := range of {
		if a := e.agents[host]; a != nil {
			a.enqueue(hosts.Returned{Attempts: ids})
		}
	}
}
