//go:build linux

package remote

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

const (
	pieceBytes   = 32 << 10 // size of the pieces of contents
	pieceAhead   = 32       // pieces that are requested ahead in one part of the contents
	minWindow    = 1        // requested pieces in all
	maxWindow    = 64
	maxQueued    = 200 * time.Microsecond // see window
	ownAtOnce    = 4                      // attempts whose own files are received at once
	partsAtOnce  = 4                      // parts of the contents of one manifest
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
	transfers    files.Transfers
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
	n, progress := r.transfers.Progress()
	if n == 0 {
		return "", first
	}
	return "receives files: " + progress, first
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
	if rundir.IsFull(err) {
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
		r.window.enter(true)
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
	return m, h.receiveContents(r.store.Missing(m, h.runDir != ""))
}

// receiveContents receives contents, in several parts at once. If it fails in one part, it still
// receives the others.
func (h *helper) receiveContents(list []*files.Entry) error {
	if len(list) == 0 {
		return nil
	}
	total := int64(0)
	for _, e := range list {
		total += e.Size
	}
	transfer := h.files.transfers.Begin(total)
	defer transfer.End()
	failed := make(chan error, partsAtOnce)
	var group sync.WaitGroup
	for part := range slices.Chunk(list, (len(list)+partsAtOnce-1)/partsAtOnce) {
		group.Go(func() {
			c := &contents{helper: h, transfer: transfer}
			for _, e := range part {
				if e.Size > 0 {
					c.list = append(c.list, e)
				}
			}
			for _, e := range part {
				if err := h.files.store.Receive(e, c); err != nil {
					failed <- fmt.Errorf("%s: %w", e.Path, err)
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

// contents reads contents one after the other. It requests pieces ahead, each with the ends and
// beginnings of several contents if they are small.
type contents struct {
	helper   *helper
	transfer *files.Transfer
	list     []*files.Entry // that were not requested completely; none is empty
	at       int64          // in the first of them
	ahead    []chan *hosts.Piece
	piece    []byte // what was not read of the last piece
}

// Read returns files.ErrChanged if the dispatcher sends less than was requested.
func (c *contents) Read(b []byte) (int, error) {
	if len(c.piece) == 0 {
		// Wait for the window only if there is nothing else to do.
		for len(c.list) > 0 && len(c.ahead) < pieceAhead && c.helper.files.window.enter(len(c.ahead) == 0) {
			c.request()
		}
		if len(c.ahead) == 0 {
			return 0, files.ErrChanged
		}
		p := <-c.ahead[0]
		c.ahead, c.piece = c.ahead[1:], p.Bulk
		if p.Why != "" {
			return 0, errors.New(p.Why)
		}
		if len(p.Bulk) == 0 {
			return 0, files.ErrChanged
		}
		c.transfer.Add(len(p.Bulk))
	}
	n := copy(b, c.piece)
	c.piece = c.piece[n:]
	return n, nil
}

// request requests the next piece. There is space for it in the window.
func (c *contents) request() {
	m := hosts.Want{Offset: c.at}
	for m.Limit < pieceBytes && len(c.list) > 0 && len(m.Sums) < hosts.MaxContents {
		e := c.list[0]
		n := min(int64(pieceBytes-m.Limit), e.Size-c.at)
		m.Sums = append(m.Sums, e.Sum.String())
		m.Limit += int(n)
		c.at += n
		if c.at == e.Size {
			c.list, c.at = c.list[1:], 0
		}
	}
	c.ahead = append(c.ahead, c.helper.files.request(c.helper, m))
}

// request sends a Want, for which there is space in the window. The answer arrives on the channel.
func (r *receiver) request(h *helper, m hosts.Want) chan *hosts.Piece {
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

// enter takes space for a request. If there is none, it waits, or else returns false.
func (w *window) enter(wait bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for float64(w.inFlight) >= w.limit {
		if !wait {
			return false
		}
		w.cond.Wait()
	}
	w.inFlight++
	return true
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
