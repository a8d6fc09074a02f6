//go:build linux

package remote

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
)

const (
	pieceBytes   = 32 << 10 // size of the pieces of a content
	pieceAhead   = 32       // pieces of one content that are requested ahead
	minWindow    = 1        // requested pieces in all
	maxWindow    = 64
	maxQueued    = 200 * time.Microsecond // see window
	ownAtOnce    = 4                      // attempts whose own files are received at once
	filesAtOnce  = 4                      // contents of one manifest
	receiveRetry = 2 * time.Second
)

// receiver copies files of jobs to this host: those that every job gets, again after each Resend,
// and those of single attempts. While the files of an attempt are missing, its spec waits in the
// spool without a token.
type receiver struct {
	store        files.Store
	window       *window
	ownTokens    chan struct{} // semaphore of receiveOwn
	lastID       atomic.Int64
	heartbeatNow chan struct{} // capacity 1: send a heartbeat now
	totalBytes   atomic.Int64  // bytes of the transfers under way
	gotBytes     atomic.Int64
	since        atomic.Int64 // boot clock, ns: start of the transfers under way; 0: there are none
	problem      atomic.Pointer[string]
	sharedReady  atomic.Bool // the files that every job gets are complete

	mu            sync.Mutex
	pieceRequests map[int64]pieceRequest

	// The fields below are guarded by helper.mu.
	wantedVersion, haveVersion int // versions of the files that every job gets; each Resend asks for a new one
	syncing                    bool
	storeOpen                  bool
	heldLaunches               map[jobs.AttemptID]heldLaunch
}

// heldLaunch records which files an attempt waits for.
type heldLaunch struct {
	version  int  // of the files that every job gets
	needsOwn bool // its own files
}

// filesPrefix plus the host's name is the directory of the files that were sent to the host.
const filesPrefix = "files."

func filesDir(workDir, host string) string { return filepath.Join(workDir, filesPrefix+host) }

func newReceiver(dir string) *receiver {
	r := &receiver{
		store: files.Store{Dir: dir}, window: newWindow(), ownTokens: make(chan struct{}, ownAtOnce),
		heartbeatNow:  make(chan struct{}, 1),
		pieceRequests: map[int64]pieceRequest{}, heldLaunches: map[jobs.AttemptID]heldLaunch{},
	}
	r.lastID.Store(time.Now().UnixNano()) // differs from the ids of an earlier helper
	return r
}

// openFilesLocked opens the store. Runs without files of jobs have none.
func (h *helper) openFilesLocked() error {
	if h.files.storeOpen {
		return nil
	}
	err := h.files.store.Open(h.config.Boot)
	h.files.storeOpen = err == nil
	return err
}

// describeTransfers describes the transfers for a heartbeat, and whether they keep all jobs
// waiting.
func (h *helper) describeTransfers() (text string, first bool) {
	r := h.files
	first = h.open.Sends && !r.sharedReady.Load()
	if p := r.problem.Load(); p != nil {
		return *p, first
	}
	since := r.since.Load()
	if since == 0 {
		return "", first
	}
	return "receives files: " + files.Progress(r.gotBytes.Load(), r.totalBytes.Load(), uptime()-time.Duration(since)),
		first
}

// addTransfer records the start of a transfer of the given number of bytes.
func (r *receiver) addTransfer(bytes int64) {
	r.since.CompareAndSwap(0, int64(uptime()))
	r.totalBytes.Add(bytes)
}

// removeTransfer records the end of a transfer of the given number of bytes.
func (r *receiver) removeTransfer(bytes int64) {
	if r.totalBytes.Add(-bytes) <= 0 {
		r.gotBytes.Store(0)
		r.since.Store(0)
	} else {
		r.gotBytes.Add(-bytes)
	}
}

// requestSharedFiles requests the latest version of the files that every job gets.
func (h *helper) requestSharedFiles() {
	if !h.open.Sends {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files.wantedVersion++
	if !h.files.syncing {
		h.files.syncing = true
		go h.receiveAll()
	}
}

// receiveAll receives the files that every job gets until it has the wanted version.
func (h *helper) receiveAll() {
	r := h.files
	for {
		h.mu.Lock()
		version := r.wantedVersion
		err := h.openFilesLocked()
		if r.haveVersion == version {
			r.syncing = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		if err == nil {
			var m files.Manifest
			if m, err = h.receiveManifest(jobs.AttemptID{}); err == nil {
				err = r.store.SetTree(m)
			}
		}
		if err != nil {
			h.cannotReceive("the files that every job gets cannot be received", err)
			time.Sleep(receiveRetry)
			continue
		}
		r.problem.Store(nil)
		h.mu.Lock()
		r.haveVersion = version
		r.sharedReady.Store(true)
		h.releaseLocked()
		h.mu.Unlock()
		r.sendHeartbeatNow()
	}
}

// sendHeartbeatNow requests a heartbeat out of turn.
func (r *receiver) sendHeartbeatNow() {
	select {
	case r.heartbeatNow <- struct{}{}:
	default:
	}
}

// cannotReceive reports a problem with receiving files, once.
func (h *helper) cannotReceive(what string, err error) {
	text := fmt.Sprintf("%s: %v; it is tried again", what, err)
	if files.NoSpace(err) {
		text = fmt.Sprintf("there is no space in %s for the files that jobs get: %v; it is tried again",
			h.files.store.Dir, err)
	}
	if was := h.files.problem.Swap(&text); was == nil || *was != text {
		h.reportTrouble("%s", text)
	}
}

// holdLocked reports whether an attempt must wait for files, and requests these.
func (h *helper) holdLocked(job *hosts.LaunchJob) bool {
	r := h.files
	if job.Files == nil {
		return false
	}
	if _, ok := r.heldLaunches[job.Attempt]; ok {
		return true
	}
	held := heldLaunch{r.wantedVersion, job.Files.Own && !r.store.HasOwn(job.Attempt.String())}
	if !held.needsOwn && r.haveVersion >= held.version {
		return false
	}
	r.heldLaunches[job.Attempt] = held
	if held.needsOwn {
		go h.receiveOwn(job.Attempt)
	}
	return true
}

// releaseLocked sends the tokens of attempts whose files have come.
func (h *helper) releaseLocked() {
	for id, held := range h.files.heldLaunches {
		if held.needsOwn || held.version > h.files.haveVersion {
			continue
		}
		delete(h.files.heldLaunches, id)
		if h.waiting[id] {
			h.wakePipe.add(id)
		}
	}
	h.startSupervisorsLocked()
	h.wakePipe.send()
}

// readyLocked returns the attempts that wait for a slot and for nothing else.
func (h *helper) readyLocked() map[jobs.AttemptID]bool {
	if len(h.files.heldLaunches) == 0 {
		return h.waiting
	}
	list := map[jobs.AttemptID]bool{}
	for id := range h.waiting {
		if _, held := h.files.heldLaunches[id]; !held {
			list[id] = true
		}
	}
	return list
}

// receiveOwn receives the files of one attempt. If the dispatcher cannot send them, the job
// fails, which its supervisor finds out.
func (h *helper) receiveOwn(id jobs.AttemptID) {
	r := h.files
	r.ownTokens <- struct{}{}
	defer func() { <-r.ownTokens }()
	for {
		h.mu.Lock()
		wanted := h.waiting[id]
		h.mu.Unlock()
		if !wanted { // withdrawn or lapsed
			break
		}
		m, err := h.receiveManifest(id)
		if refused, ok := errors.AsType[*files.SendError](err); ok {
			err = r.store.RefuseOwn(id.String(), refused)
		} else if err == nil {
			err = r.store.SetOwn(id.String(), m)
		}
		if err == nil {
			r.problem.Store(nil)
			break
		}
		h.cannotReceive(fmt.Sprintf("the files of job %d cannot be received", id.Job), err)
		time.Sleep(receiveRetry)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if held, ok := r.heldLaunches[id]; ok {
		held.needsOwn = false
		r.heldLaunches[id] = held
		h.releaseLocked()
	}
}

// receiveManifest receives a manifest and those of its contents that are not here.
func (h *helper) receiveManifest(id jobs.AttemptID) (files.Manifest, error) {
	r := h.files
	var text []byte
	for {
		p := <-r.request(h, hosts.Want{Attempt: id, Offset: int64(len(text)), Limit: hosts.MaxChunk})
		if p.Why != "" {
			return nil, &files.SendError{Text: p.Why}
		}
		text = append(text, p.Bulk...)
		if int64(len(text)) >= p.Size || len(p.Bulk) == 0 {
			break
		}
	}
	m, err := files.Decode(text)
	if err != nil {
		return nil, err
	}
	missing := r.store.Missing(m, h.runDir != "")
	bytes := int64(0)
	for _, e := range missing {
		bytes += e.Size
	}
	if bytes > 0 {
		r.addTransfer(bytes)
		defer r.removeTransfer(bytes)
	}
	work, failed := make(chan *files.Entry), make(chan error, filesAtOnce)
	var group sync.WaitGroup
	for range min(filesAtOnce, len(missing)) {
		group.Go(func() {
			for e := range work {
				if err := r.store.Receive(e, pieceBytes, r.reader(h, e)); err != nil {
					failed <- fmt.Errorf("%s: %w", e.Path, err)
					return
				}
			}
		})
	}
	for _, e := range missing {
		select {
		case work <- e:
			continue
		case err = <-failed:
		}
		break
	}
	close(work)
	group.Wait()
	select {
	case err = <-failed:
	default:
	}
	return m, err
}

// reader returns a function that returns the pieces of a content in order. It requests some
// pieces ahead.
func (r *receiver) reader(h *helper, e *files.Entry) func(int64, int) ([]byte, error) {
	var ahead []chan *hosts.Piece
	next := int64(0)
	return func(int64, int) ([]byte, error) {
		for next < e.Size && len(ahead) < pieceAhead {
			n := min(pieceBytes, e.Size-next)
			ahead = append(ahead, r.request(h, hosts.Want{Sum: e.Sum.String(), Offset: next, Limit: int(n)}))
			next += n
		}
		p := <-ahead[0]
		ahead = ahead[1:]
		if p.Why != "" {
			return nil, errors.New(p.Why)
		}
		r.gotBytes.Add(int64(len(p.Bulk)))
		return p.Bulk, nil
	}
}

// request sends a Want when the window allows it. The answer arrives on the channel.
func (r *receiver) request(h *helper, m hosts.Want) chan *hosts.Piece {
	r.window.enter()
	m.ID = r.lastID.Add(1)
	answer := make(chan *hosts.Piece, 1)
	r.mu.Lock()
	r.pieceRequests[m.ID] = pieceRequest{answer, uptime()}
	r.mu.Unlock()
	h.outbox.send(&m)
	return answer
}

// answer passes a piece on. It does not block.
func (r *receiver) answer(p *hosts.Piece) {
	r.mu.Lock()
	a, ok := r.pieceRequests[p.ID]
	delete(r.pieceRequests, p.ID)
	r.mu.Unlock()
	if ok {
		r.window.leave(uptime() - a.sentAt)
		a.answer <- p
	}
}

// pieceRequest is a requested piece that has not arrived yet.
type pieceRequest struct {
	answer chan *hosts.Piece
	sentAt time.Duration // boot clock
}

// window bounds the number of requested pieces. More pieces than the link holds would queue,
// and launches and heartbeats would wait behind them. So the window shrinks when pieces take
// much longer than the fastest one did, and grows otherwise.
type window struct {
	mu       sync.Mutex
	cond     *sync.Cond
	inFlight int
	limit    float64
	fastest  time.Duration // grows slowly, because the link may have become slower
}

func newWindow() *window {
	w := &window{limit: 2 * minWindow}
	w.cond = sync.NewCond(&w.mu)
	return w
}

func (w *window) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for float64(w.inFlight) >= w.limit {
		w.cond.Wait()
	}
	w.inFlight++
}

func (w *window) leave(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight--
	w.fastest += w.fastest / 1024
	if w.fastest == 0 || took < w.fastest {
		w.fastest = took
	}
	if took > w.fastest+max(w.fastest/2, maxQueued) {
		w.limit = max(minWindow, w.limit*0.9)
	} else {
		w.limit = min(maxWindow, w.limit+1/w.limit)
	}
	w.cond.Broadcast()
}

// removeAttempts removes the directories of attempts whose outcomes and files are durable.
func (h *helper) removeAttempts(ids []jobs.AttemptID) {
	if h.open.KeepFiles {
		return
	}
	for _, id := range ids {
		if err := h.files.store.Drop(id.String()); err != nil {
			h.reportAttemptTrouble(id, "removing the directory of %s: %v", id, err)
		}
	}
}
