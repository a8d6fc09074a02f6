//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// drainTimeout bounds the wait for messages that were sent before the link broke. The Bye
// that ends the run may be among them.
const drainTimeout = time.Second

var (
	errTerminated = errors.New("asked to end by SIGTERM")
	errEndLate    = errors.New("cleaning up after the run took too long")
)

// helper is one `__host` process. It serves one channel.
type helper struct {
	open *hosts.Open
	dir  string // holds attempts/
	// The run's directory below work_dir: epoch files, and attempts unless they are shared.
	workDir    string
	runDir     string // "" if this host does not see it
	checkDir   string // what a check removes at its end; "" for a run
	spool      spool
	control    *control
	config     slotConfig
	generation int64
	madeSpool  bool        // there was no spool before this helper
	unready    error       // of makeReady; nil: launches may be accepted. Owned by prepare, then by launch
	wasAsked   atomic.Bool // the dispatcher has sent something other than pings
	slots      int         // as configured, and allowed by the administrators
	otherSlots int         // slots that only other users may use
	allowed    userLimits
	spoolDirs
	reportsFD       int // of the FIFO
	outbox          *outbox
	probes          *worker // probes, and other tasks that read attempt files
	reads           *worker // output for people, which waits for nothing else
	inspectionQueue questionQueue
	listQueue       questionQueue
	packQueue       questionQueue
	packer          *attempts.Packer // owned by the answers of packQueue; nil: see openPacker
	packReserved    atomic.Bool      // reservePack was called
	packFailed      atomic.Bool      // a failure of packing was reported
	disk            rundir.Disk      // for dir
	// Held to write a tombstone, and shared to read a status file: on a local file system and a
	// full disk, another goroutine would take a tombstone that is being written for a damaged
	// claim.
	tombstoneMu     sync.RWMutex
	pings           atomic.Int64
	fencedBy        atomic.Int64
	limits          limits
	self            proc          // this process
	processes       processLimits // guarded by mu
	ownsAllChildren bool          // all our children are supervisors or their orphans
	ending          atomic.Bool   // endRun has begun; only a successor stops it
	endDone         chan struct{} // closed when endRun has returned
	fs              fsState
	files           *receiver
	sharing         sharing
	memoryTotal     atomic.Int64 // bytes, as of the last heartbeat; 0: unknown
	progress        atomic.Pointer[map[string]string]
	owners          *owners
	owner           atomic.Pointer[hosts.Owner]       // latest result of owners.currentOwner
	ownerKnown      chan struct{}                     // closed after the first look
	reports         atomic.Pointer[map[string]string] // for the next heartbeat
	reportEnds      map[string]int64                  // by attempt: offset after the part that maintain has read

	mu            sync.Mutex
	waiting       map[jobs.AttemptID]bool // in the spool, not known to have been taken
	running       map[jobs.AttemptID]*heldAttempt
	started       []newStart          // in the order in which they were reported
	supervisors   map[int]*supervisor // children of ours, by pid
	limit         int
	wakePipe      wakePipe
	closing       bool
	hasConfig     bool // the configuration of supervisors was written
	crashes       int  // consecutive supervisors that died soon after their start
	resolved      map[jobs.AttemptID]bool
	unused        []string // names in free/
	requeueFailed bool     // some specs of an earlier helper must still be taken over
	requeueLapsed bool     // those specs must not start any more

	suspenderPID int        // pid of the last one
	foundGPUs    chan []int // receives the GPU numbers of this host
	gpus         gpuUse     // when last checked
	gpuQuery     single     // runs queryBusyGPUs
}

// heldAttempt is an attempt that a supervisor holds. All fields but ended are guarded by helper.mu.
type heldAttempt struct {
	holder  holder
	group   pgroup // process group of its shell
	claimed bool   // it is known to have been claimed; until then it may still be refused
	takenAt jobs.Stamp
	ended   chan struct{} // closed when it has ended
}

// hostMain serves one channel: it receives Open, sends Hello, and handles messages until
// the channel ends, the run ends, or nothing is received for too long.
func hostMain(stdin io.Reader, stdout io.Writer, limits limits) error {
	limits.endsSessions = leaveSession(limits.site)
	keepDescriptors()
	relaxTimers(helperSlack)
	if exe, err := os.Executable(); err == nil {
		// The bootstrap removes versions that were not used for a month.
		_ = os.Chtimes(exe, time.Now(), time.Now())
	}
	// A broken link must cause an error, not a fatal signal.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE, unix.SIGHUP)
	in := wire.NewReader(stdin)
	processes := openProcessLimits()
	if err := processes.check(helperThreads - numThreads(os.Getpid())); err != nil {
		return refuseOpen(in, stdout, err)
	}
	reserveThreads(helperThreads)
	first, err := firstMessage(in, limits.silence)
	if err != nil {
		return fmt.Errorf("waiting for the dispatcher's first message: %w", err)
	}
	open, ok := first.(*hosts.Open)
	if !ok {
		return fmt.Errorf("the dispatcher began with %q instead of open", first.Kind())
	}
	out := newOutbox(wire.NewWriter(stdout))
	switch {
	case open.Reads:
		err = serveReads(in, out, open, limits)
	case open.Ballot != nil:
		serveBallot(out, open)
	case open.Standby:
		err = serveStandby(in, out, open, limits)
	default:
		return serveRun(in, out, open, limits)
	}
	out.flush()
	return err
}

// refuseOpen answers the first message with an error. It starts no goroutine.
func refuseOpen(in *wire.Reader, stdout io.Writer, why error) error {
	if _, err := in.Read(); err != nil {
		return fmt.Errorf("waiting for the dispatcher's first message: %w", err)
	}
	hello := newHello()
	setError(hello, why)
	return wire.NewWriter(stdout).Write(hello)
}

// serveRun is hostMain for a channel that starts jobs.
func serveRun(in *wire.Reader, out *outbox, open *hosts.Open, limits limits) error {
	h, hello := newHelper(open, limits)
	if h == nil {
		out.send(hello)
		out.flush()
		return nil
	}
	h.outbox = out
	defer h.removeTraces()
	h.adoptOrphans() // before the first supervisor is started
	// Open it before the hello: the dispatcher asks for what ended earlier.
	reports, err := h.openReports()
	if err != nil {
		return err
	}
	h.reportsFD = reports.fd
	out.send(hello)
	err = h.serve(in, reports)
	// Tell an older dispatcher last of all why it is left alone.
	if by := h.newerEpoch(open.Epoch); by != 0 {
		h.refuseFenced(nil, by)
	}
	out.flush()
	h.removeUnusedSpool()
	h.deregister()
	return err
}

// firstMessage reads the first message. A link that was cut silently before it would keep
// this process for hours, and nobody knows about it yet.
func firstMessage(in *wire.Reader, limit time.Duration) (hosts.Message, error) {
	var m hosts.Message
	var err error
	if !withTimeout(limit, func() { m, err = in.Read() }) {
		return nil, fmt.Errorf("nothing received for %v", limit)
	}
	return m, err
}

// serve runs the helper's goroutines and handles messages.
func (h *helper) serve(in *wire.Reader, reports reportPipe) error {
	ended := make(chan error, 8)
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	go func() { <-term; ended <- errTerminated }()
	go func() { ended <- h.collect(reports) }()
	// Register before the first supervisor is started, because it may die at once.
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go h.reap(children)
	go h.sendHeartbeats()
	go h.continueStopped()
	go h.watchOwner()
	go h.watchShare()
	go func() { ended <- h.watchFiles() }()
	h.adoptSpool()
	h.requestSharedFiles()
	go func() { ended <- h.maintain() }()
	silence := time.AfterFunc(h.limits.silence, func() {
		ended <- fmt.Errorf("nothing received from the dispatcher for %v", h.limits.silence)
	})
	orders := make(chan hosts.Message, maxQueuedMessages)
	var readErr error // set before orders is closed
	go func() {
		defer close(orders)
		readErr = h.receiveMessages(in, orders, silence, ended)
	}()
	go func() {
		for m := range orders {
			if h.handle(m) {
				ended <- nil
				return
			}
		}
		ended <- readErr
	}()
	return h.untilEnd(ended)
}

// maxQueuedMessages is the number of messages that may wait for their handling.
const maxQueuedMessages = 256

// receiveMessages reads messages until the channel ends or a Bye comes. It does not handle them:
// heartbeats of the dispatcher must be received even if the handling of a message hangs on
// a file system.
func (h *helper) receiveMessages(in *wire.Reader, orders chan<- hosts.Message, silence *time.Timer,
	ended chan<- error) error {
	for {
		m, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		silence.Reset(h.limits.silence)
		bye := false
		switch m := m.(type) {
		case *hosts.Ping:
			h.pings.Store(m.Seq)
		case *hosts.Bye:
			bye = true
			if m.End {
				silence.Stop()
				h.ending.Store(true)
				time.AfterFunc(h.endLimit(), func() { ended <- errEndLate })
			}
		case *hosts.Piece: // there are many; they overtake other messages
			h.files.answer(m)
			continue
		default:
			h.wasAsked.Store(true)
		}
		if orders <- m; bye {
			return nil
		}
	}
}

// serveChannel handles the messages of a channel that has no helper. It returns when the channel
// ends, when handle reports that it is done, or when nothing is received for limit.
func serveChannel(in *wire.Reader, out *outbox, limit time.Duration,
	handle func(hosts.Message) (done bool, err error)) error {
	ended := make(chan error, 2)
	silence := time.AfterFunc(limit, func() { ended <- fmt.Errorf("nothing received for %v", limit) })
	defer silence.Stop()
	go func() {
		for {
			m, err := in.Read()
			done := false
			switch {
			case errors.Is(err, io.EOF):
				done, err = true, nil
			case err == nil:
				silence.Reset(limit)
				done, err = handle(m)
			}
			if done || err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case err := <-ended:
		return err
	case err := <-out.broken:
		return fmt.Errorf("writing the answers: %w", err)
	}
}

// untilEnd waits for the first reason to leave. If the end of the run has begun, it is
// completed first, whatever happens to the link.
func (h *helper) untilEnd(ended <-chan error) error {
	var why error
	select {
	case why = <-ended:
	case err := <-h.outbox.broken:
		why = fmt.Errorf("writing to the dispatcher: %w", err)
		select {
		case err := <-ended:
			if isImmediate(err) {
				why = err
			}
		case <-time.After(drainTimeout):
		}
	}
	for last := why; h.ending.Load() && !isImmediate(last); {
		select {
		case <-h.endDone:
			return why
		case last = <-ended:
			if isImmediate(last) {
				why = last
			}
		}
	}
	return why
}

// isImmediate reports whether a reason to leave applies even during the end of the run,
// because another helper must end it or it cannot be ended.
func isImmediate(why error) bool {
	_, fenced := errors.AsType[*hosts.FencedError](why)
	return fenced || isAny(why, errSuperseded, errTerminated, errEndLate)
}

// handle handles one message. It returns true to end the helper.
func (h *helper) handle(m hosts.Message) bool {
	switch m := m.(type) {
	case *hosts.Ping:
		h.extendLease(m.LeaseUptime)
	case *hosts.Launch:
		h.launch(m)
	case *hosts.Limit:
		h.setLimit(m.Slots)
	case *hosts.Share:
		h.setShare(m)
	case *hosts.Withdraw:
		h.withdraw(m)
	case *hosts.Kill:
		h.kill(m)
	case *hosts.Probe:
		h.probe(m)
	case *hosts.Inspect:
		h.inspectShared(m)
	case *hosts.List:
		h.list(m)
	case *hosts.Read:
		h.read(m)
	case *hosts.Resend:
		h.requestSharedFiles()
	case *hosts.Returned:
		h.reads.do(func() { h.removeAttempts(m.Attempts) })
	case *hosts.Pack:
		h.pack(m)
	case *hosts.Bye:
		if m.End {
			h.endRun(m.Pack)
			close(h.endDone)
		}
		return true
	default:
		h.reportTrouble("the dispatcher sent %q, which a helper does not expect", m.Kind())
	}
	return false
}

// reportTrouble reports something that a person should know. It does not block.
func (h *helper) reportTrouble(format string, args ...any) {
	h.reportAttemptTrouble(jobs.AttemptID{}, format, args...)
}

// reportAttemptTrouble is reportTrouble for one attempt.
func (h *helper) reportAttemptTrouble(id jobs.AttemptID, format string, args ...any) {
	h.outbox.send(&hosts.Trouble{Attempt: id, Text: fmt.Sprintf(format, args...)})
}

// sendProbed reports the state of attempts, if there are any.
func (h *helper) sendProbed(list []hosts.ProbedJob) {
	if len(list) > 0 {
		h.outbox.send(&hosts.Probed{Jobs: list})
	}
}

// sendWithdrawn reports attempts that will never start here, if there are any.
func (h *helper) sendWithdrawn(ids []jobs.AttemptID, why string) {
	if len(ids) > 0 {
		h.outbox.send(&hosts.Withdrawn{Attempts: ids, Why: why})
	}
}

// sendRefused reports attempts that this host cannot run, if there are any.
func (h *helper) sendRefused(ids []jobs.AttemptID, why string) {
	if len(ids) > 0 {
		h.outbox.send(&hosts.Refused{Attempts: ids, Why: why})
	}
}
