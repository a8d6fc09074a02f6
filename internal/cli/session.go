package cli

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/control"
	"dcs-tui/dispatch/inbox"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/socket"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/places"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/outputs"
	"dcs-tui/jobs/rundir"
)

// session is one dispatcher's life as its user sees it: from the first line on
// the console to the exit code.
//
// These goroutines share it. The guard hears signals; it never waits. serve
// carries out what they ask for. The consumer takes results and writes them. The
// reporter writes notices and the progress. The feeder submits jobs. The consumer
// and the reporter wait for whoever reads what they write, and only they do.
type session struct {
	app     *app
	con     *console.Console
	run     *rundir.Run
	flags   *runFlags
	d       *dispatch.Dispatcher
	table   *jobs.Table // the dispatcher's until Close has returned
	journal *journal.Journal
	waiting []*jobs.Spec // stored, to be submitted
	older   bool         // the hosts know a later dispatcher than the run directory does

	guard   *guard
	sayings chan func() string // lines for the reporter
	notices *noticeQueue
	words   map[string]standing.HostWord // the last notice of each host; the reporter's, then drive's
	logs    *hostLogs
	joblogs []*jobLog
	figures *outputs.Keeper // of outputs that only their host has
	ack     acker
	out     *resultPrinter

	inbox   *inbox.Inbox
	control *control.Server // nil: nobody can attach
	socket  *socket.Server  // nil: no command can ask the dispatcher

	typed   bool      // standard input is a terminal and has the jobs
	earlier int64     // results up to this number are of earlier sessions
	began   time.Time // of this session
	places  places.Known
	last    atomic.Pointer[dispatch.Snapshot] // the newest looked at
	located *rundir.Location                  // of the run directory when the session began
	gone    atomic.Bool                       // the run directory was found deleted at the end
	used    usage

	cancelled atomic.Bool     // a person cancelled the run
	input     context.Context // ends when no more input is wanted
	endInput  context.CancelFunc
	inputErr  error          // what was wrong with standard input; the feeder's, then drive's
	intake    standing.Input // how far standard input was read; the feeder's, then drive's
	unread    bool           // not all jobs were read or submitted; the feeder's, then drive's
	untaken   bool           // nobody took all results
	unprinted bool           // standard output failed; the consumer's, then drive's
	endsOnly  bool           // it starts no jobs
	brief     bool           // no summary: whoever drives it says what was done
}

// drive runs the session to its end and returns the exit code. opening is the
// first line on the console; feed submits the jobs.
func (s *session) drive(opening string, feed func(ctx context.Context) error) int {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	var feeder, reporter sync.WaitGroup
	feeder.Go(func() {
		s.inputErr = feed(ctx)
		if s.cancelled.Load() { // jobs that were submitted after the cancel
			s.d.Do(sched.Cancel{All: true, Why: "the run was cancelled"})
		}
	})
	go s.serve(over)
	go s.inbox.Serve(over)
	go s.showProblem(over)
	go s.keepJobLogs(over)
	// An end that came before all jobs were submitted ends the feeder as well.
	go func() {
		select {
		case <-s.d.Finished():
		case <-over:
		}
		cancel()
	}()
	s.guard.within(writePatience, nil, func() { s.con.Line(opening) })
	reporter.Go(func() { s.report(over) })

	s.untaken = !s.guard.within(writePatience, s.d.Finished(), s.consume) || s.unprinted
	cancel()
	s.guard.within(keepWithin, nil, func() { s.keepFigures(s.figures) }) // while the hosts are there
	s.lastLook()
	var finish sched.Finish
	var err error
	if !s.guard.within(closePatience, nil, func() {
		feeder.Wait()
		if last := s.d.Snapshot(); last != nil { // a short run has seen no other
			s.used.note(time.Now(), last, s.flags.MaxSlots)
			s.places.Note(last)
			s.last.Store(last)
		}
		finish, err = s.d.Close()
		if finish.How == sched.Fenced {
			s.older, _ = s.journal.SkipTo(finish.Epoch)
		}
		if cerr := s.journal.Close(); err == nil && finish.How != sched.Fenced {
			err = cerr
		}
		// The directory may have been deleted since the dispatcher last looked for it.
		if (err != nil || finish.How != sched.AllDone) && s.located.Deleted() {
			s.gone.Store(true)
		}
	}) {
		s.guard.within(writePatience, nil, func() {
			s.app.warn("the run directory or a host did not answer for %s; leaving nevertheless, `resume` continues the run",
				results.HumanDuration(closePatience))
		})
		s.closeControl()
		return exit.Left
	}
	close(over)
	s.closeControl()
	code := s.exitCode(finish)
	s.guard.within(writePatience, nil, func() {
		reporter.Wait()
		s.con.Status("")
		s.flushNotices()
		s.logs.Close()
		for _, l := range s.joblogs {
			if err := l.Close(); err != nil && !s.deleted() {
				s.app.warn("%v", err)
			}
		}
		if err != nil && !s.deleted() {
			s.app.warn("the journal could not be written to the end: %v; `resume` asks the hosts for what it lacks", err)
		}
		s.conclude(finish, code)
	})
	s.afterwards(code)
	return code
}

// report writes notices and keeps the progress line until the end.
func (s *session) report(over <-chan struct{}) {
	pause := 2 * time.Second
	if s.con.Live() {
		pause = 500 * time.Millisecond
	}
	every := time.NewTicker(pause)
	defer every.Stop()
	lastPlain := time.Now()
	for {
		select {
		case <-over:
			return
		case <-s.notices.wake:
			s.flushNotices()
			continue
		case text := <-s.sayings:
			if line := text(); line != "" {
				s.flushNotices() // what came of it so far
				s.con.Line(line)
			}
			continue
		case <-every.C:
		}
		s.ack.flush()
		snap := s.d.Snapshot()
		if snap == nil {
			continue
		}
		now := time.Now()
		s.places.Note(snap)
		s.last.Store(snap)
		s.used.note(now, snap, s.flags.MaxSlots)
		switch {
		case snap.Finished:
			s.con.Status("")
		case s.typed && snap.More: // it would stand in the line that is being typed
		case s.con.Live():
			s.con.Status(console.Progress(snap))
		case now.Sub(lastPlain) >= time.Minute:
			lastPlain = now
			s.con.Line(console.Progress(snap))
		}
	}
}

func (s *session) flushNotices() {
	for _, n := range s.notices.take() {
		s.con.Line(s.con.NoticeLine(n))
		if n.Host != "" {
			if n.Job == 0 {
				s.words[n.Host] = s.words[n.Host].After(n.Host, jobs.StampOf(n.At), n.Text)
			}
			s.logs.Write(n.Host, console.CleanLine(n.Text))
		}
	}
}

// detach goes on without the terminal.
func (s *session) detach() {
	if !s.app.onTerminal {
		return // nothing of ours is on it: there is nothing to leave
	}
	log, err := dispatcherLog(s.run)
	if err != nil {
		return // there is nobody left to tell; the journal has everything
	}
	defer log.Close()
	leaveTerminal(log)
	s.con.Detach(s.app.stderr)
	s.con.Line(time.Now().Format("2006-01-02 15:04:05") + "  the terminal is gone; the run goes on")
}
