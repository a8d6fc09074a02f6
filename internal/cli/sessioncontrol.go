package cli

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"dcs-tui/dispatch/control"
	"dcs-tui/dispatch/inbox"
	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/socket"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// controlBase is where the directories of control sockets lie; tests change it.
var controlBase = "" // control's own

// listenControl makes the socket at which screens and commands attach: every
// dispatcher has one, also one that shows nothing itself. Without it a run goes on all
// the same, except one that only a screen shows. Nobody knows of it before showControl.
func (s *session) listenControl(inventory string) error {
	secret := ""
	if owner, err := journal.ReadOwner(s.run); err == nil && owner != nil {
		secret = owner.Token // else we can be attached to from this machine alone
	}
	server, err := control.Listen(control.Options{
		Base: controlBase, Program: version(), Run: s.run.UID(), Epoch: s.table.Epoch, Secret: secret,
		Open: func() (runview.Source, func(), error) { return s.openBoard(inventory) },
		TakeIn: func(ctx context.Context, name string) error {
			err := s.inbox.Wake(ctx, name)
			if errors.Is(err, inbox.ErrLeaving) {
				return control.ErrLeaving
			}
			return err
		},
		Fault: func(text string) { s.say(func() string { return console.CleanLine(text) }) },
	})
	switch {
	case err == nil:
		s.control = server
	case s.app.starter != nil:
		return exit.Usagef("%w", err).WithAdvice("dcs-tui resume --no-tui %s runs it without a screen", console.ShellWord(console.CleanLine(standing.Ref(s.run))))
	default:
		s.app.warn("nobody can attach to this run: %v", err)
	}
	return nil
}

// calls carries out what is asked at the socket.
func (s *session) calls() *run.Calls {
	c := &run.Calls{Dispatcher: s.d, Inbox: s.inbox}
	if q, ok := s.app.asker.(*questions); ok {
		c.Answer = func(id int64, text string) error {
			_, err := q.answer(id, text)
			var refused *runview.Refused
			if errors.As(err, &refused) {
				return socket.Refusef("%s", refused.Why)
			}
			return err
		}
	}
	return c
}

// showControl says in the file owner where the sockets are. The dispatcher has started.
func (s *session) showControl() {
	if s.control == nil {
		return
	}
	err := s.journal.SetAddress(s.control.Address())
	if err == nil {
		err = s.listenSocket()
	}
	if err != nil {
		s.app.warn("nobody can attach to this run: %v", err)
	}
}

// listenSocket creates the dispatcher's socket.
func (s *session) listenSocket() (err error) {
	opt := socket.Options{
		Base: controlBase, Run: s.run.UID(), Epoch: s.journal.Epoch(), Release: version(), Handler: s.calls(),
		Fault: func(text string) { s.say(func() string { return console.CleanLine(text) }) },
	}
	if owner, err := journal.ReadOwner(s.run); err == nil && owner != nil {
		opt.Token = owner.Token // for people; not needed
	}
	if s.socket, err = socket.Listen(opt); err != nil {
		return err
	}
	return s.journal.SetSocket(s.socket.Address())
}

// lastLookWithin is for those who follow an output that only its host has: when its link
// is closed nobody can read the end of it.
const lastLookWithin = 2 * time.Second

// lastLook gives those who are attached that moment.
func (s *session) lastLook() {
	if s.control == nil || s.control.Attached() == 0 && (s.socket == nil || s.socket.Connected() == 0) || len(s.places.Names()) == 0 {
		return
	}
	select {
	case <-time.After(lastLookWithin):
	case <-s.guard.hurry:
	}
}

func (s *session) closeControl() {
	if s.control == nil {
		return
	}
	closed := make(chan struct{})
	go func() {
		s.control.Close()
		if s.socket != nil {
			s.socket.Close()
		}
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(writePatience): // a call hangs in the run directory: the end of this process ends it
	}
}

// openBoard makes what attached screens look at. Nothing of it is there while nobody
// is attached.
func (s *session) openBoard(inventory string) (runview.Source, func(), error) {
	owner, err := journal.ReadOwner(s.run)
	if err != nil {
		owner = nil // only its name is missing on the screen
	}
	b := runview.FromDispatcher(s.d, boardOptions(s.run, runView(s.run, labOf(inventory), owner), s.act))
	s.addPast(b)
	q, _ := s.app.asker.(*questions)
	if q != nil {
		q.show(b)
	}
	return &servedBoard{b, s}, func() {
		if q != nil {
			q.show(nil)
		}
		b.Close()
	}, nil
}

// servedBoard is a board to which nothing can be asked any more when the run is over
// and its dispatcher takes leave of the hosts: what it took in then would be left.
type servedBoard struct {
	*runview.Board
	s *session
}

// Do is runview.Source's.
func (b *servedBoard) Do(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	select {
	case <-b.s.d.Finished():
		if a.Do != runview.Reply {
			return nil, control.ErrLeaving
		}
	default:
	}
	ans, err := b.Board.Do(ctx, a)
	if err == nil && a.Do == runview.Continue {
		b.s.continued()
	}
	return ans, err
}

// continued removes the causes of a drain that a person has ended: the next Ctrl-C
// drains again, and the file STOP is removed, as by resume.
func (s *session) continued() {
	s.guard.continued.Store(true)
	if err := s.run.Disk.Remove(s.run.Path(rundir.StopFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.say(func() string {
			return "the file " + rundir.StopFile + " cannot be removed: " + console.CleanLine(err.Error())
		})
	}
}

// addPast gives a board what happened before anybody looked.
func (s *session) addPast(b *runview.Board) {
	began := time.Now()
	var past runview.Earlier
	// What cannot be read is only missing among the events.
	_, _ = journal.Follow(s.run).Poll(journal.Limit{Durable: s.journal.Durable()}, func(_ int, r *jobs.Record) {
		if r.At < jobs.StampOf(began) && r.Kind != jobs.KindAcked { // the board hears of later ones itself
			past.Add(r)
		}
	})
	b.AddEarlier(&past)
}

// act carries out what a board cannot.
func (s *session) act(_ context.Context, a runview.Action) (*runview.Answer, error) {
	by := console.CleanLine(a.Why)
	if by == "" {
		by = "asked for on the screen"
	}
	switch a.Do {
	case runview.DrainRun:
		s.obey(wishDrain, by)
		return &runview.Answer{Done: 1, Text: "no more jobs are started; the dispatcher ends when the running ones have, unless continue comes first"}, nil
	case runview.StopRun:
		s.obey(wishStop, by)
		return &runview.Answer{Done: 1, Text: "dispatching stops; running jobs go on"}, nil
	case runview.CancelRun:
		s.obey(wishCancel, by)
		return &runview.Answer{Done: 1, Text: "every job is cancelled; the running ones are being ended"}, nil
	case runview.Reply:
		if q, ok := s.app.asker.(*questions); ok {
			return q.answer(int64(a.Number), a.Text)
		}
	}
	return nil, &runview.Refused{Why: "the dispatcher cannot do that: " + string(a.Do)}
}
