package cli

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// session is one dispatcher's life as its user sees it: from the first line on
// the console to the exit code.
//
// Four goroutines share it. The consumer (drive) takes results and writes them.
// The reporter writes notices and the progress. The guard listens to signals and
// stop files, so that it hears them also while a stopped terminal blocks the
// other two. The feeder submits jobs.
type session struct {
	app     *app
	con     *console
	run     *rundir.Run
	flags   *runFlags
	d       *dispatch.Dispatcher
	table   *jobs.Table // the dispatcher's until Close has returned
	journal *journal.Journal
	waiting []*jobs.Spec // stored, to be submitted

	notices *noticeQueue
	logs    *hostLogs
	joblogs []*jobLog
	ack     acker
	out     *resultPrinter

	earlier int64     // results up to this number are of earlier sessions
	began   time.Time // of this session
	first   jobs.ID   // of the jobs that this session may add
	places  places    // the reporter's, then drive's
	used    usage     // the reporter's, then the summary's

	cancelled atomic.Bool     // a person cancelled the run
	input     context.Context // ends when no more input is wanted
	endInput  context.CancelFunc
	stopWhy   atomic.Value
	inputErr  error // what was wrong with standard input; the feeder's, then drive's
	unread    bool  // not all jobs were read or submitted; the feeder's, then drive's
}

// drive runs the session to its end and returns the exit code. feed submits the
// jobs.
func (s *session) drive(feed func(ctx context.Context) error) int {
	ctx, cancel := context.WithCancel(context.Background())
	var feeder, others sync.WaitGroup
	feeder.Go(func() {
		s.inputErr = feed(ctx)
		if s.cancelled.Load() { // jobs that were submitted after the cancel
			s.d.Do(sched.Cancel{All: true, Why: "the run was cancelled"})
		}
	})
	over := make(chan struct{})
	others.Go(func() { s.report(over) })
	others.Go(func() { s.guard(over) })
	// An end that came before all jobs were submitted ends the feeder as well.
	others.Go(func() {
		select {
		case <-s.d.Finished():
		case <-over:
		}
		cancel()
	})

	s.consume()
	last := s.d.Snapshot() // a short run has seen no other
	if last != nil {
		s.used.note(time.Now(), last, s.flags.MaxSlots)
	}
	cancel()
	feeder.Wait()
	s.con.Status("")
	finish, err := s.d.Close()
	close(over)
	others.Wait()
	if last != nil {
		s.places.note(last)
	}
	s.flushNotices()
	s.logs.Close()
	for _, l := range s.joblogs {
		l.Close()
	}
	if cerr := s.journal.Close(); err == nil && finish.How != sched.Fenced {
		err = cerr
	}
	if err != nil {
		s.app.warn("the journal could not be written to the end: %v; `resume` asks the hosts for what it lacks", err)
	}
	return s.conclude(finish)
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
		case <-every.C:
		}
		s.ack.flush()
		snap := s.d.Snapshot()
		if snap == nil {
			continue
		}
		now := time.Now()
		s.places.note(snap)
		s.used.note(now, snap, s.flags.MaxSlots)
		switch {
		case snap.Finished:
			s.con.Status("")
		case s.con.Live():
			s.con.Status(progressLine(snap))
		case now.Sub(lastPlain) >= time.Minute:
			lastPlain = now
			s.con.Line(progressLine(snap))
		}
	}
}

func (s *session) flushNotices() {
	for _, n := range s.notices.take() {
		s.con.Line(s.con.noticeLine(n))
		if n.Host != "" {
			s.logs.Write(n.Host, cleanLine(n.Text))
		}
	}
}

// guard turns signals and stop files into what the dispatcher is told.
func (s *session) guard(over <-chan struct{}) {
	asked := interrupts{cancel: s.flags.OnInterrupt == "cancel"}
	files := time.NewTicker(2 * time.Second)
	defer files.Stop()
	for {
		select {
		case <-over:
			return
		case sig := <-s.app.signals:
			s.obey(asked.signal(sig), signalWord(sig))
		case <-files.C:
			switch stopFiles(s.run) {
			case wishDrain:
				s.once("the file "+rundir.StopFile, wishDrain)
			case wishCancel:
				s.once("the file "+rundir.StopNowFile, wishCancel)
			}
		}
	}
}

// once obeys a stop file the first time it is seen.
func (s *session) once(why string, w wish) {
	if old, _ := s.stopWhy.Load().(string); old != why {
		s.stopWhy.Store(why)
		s.obey(w, why)
	}
}

// obey carries a wish out and says so. The dispatcher is told first: a console
// that does not move must not keep it from hearing.
func (s *session) obey(w wish, why string) {
	switch w {
	case wishDrain:
		s.d.Do(sched.Drain{Why: why})
		s.con.Line(s.drainText())
	case wishStop:
		s.d.Do(sched.Stop{Why: why})
		s.con.Line(why + ": dispatching stops, running jobs go on")
	case wishCancel:
		s.cancelled.Store(true)
		s.endInput()
		s.d.Do(sched.Cancel{All: true, Why: why})
		s.con.Line(why + ": every job is cancelled; waiting for the running ones to end")
	case wishDetach:
		s.detach()
	case wishQuit:
		os.Exit(ExitLeft)
	}
}

// drainText says what a drain waits for; the dispatcher itself says that it drains.
func (s *session) drainText() string {
	running := 0
	if snap := s.d.Snapshot(); snap != nil {
		running = runningNow(snap)
	}
	switch running {
	case 0:
		return "no job is running"
	case 1:
		return "waiting for 1 running job; Ctrl-C again stops dispatching and leaves it running"
	}
	return "waiting for " + plural(running, "running job") + "; Ctrl-C again stops dispatching and leaves them running"
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

// stopFiles looks for STOP and STOP.now by listing the directory: over NFS a
// name made by another client may stay invisible to stat for half a minute.
func stopFiles(run *rundir.Run) wish {
	names, err := run.Disk.Names(run.Dir)
	if err != nil {
		return wishNothing
	}
	w := wishNothing
	for _, n := range names {
		switch n {
		case rundir.StopNowFile:
			return wishCancel
		case rundir.StopFile:
			w = wishDrain
		}
	}
	return w
}
