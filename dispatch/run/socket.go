package run

import (
	"context"
	"errors"
	"time"

	"dcs-tui/dispatch/control"
	"dcs-tui/dispatch/inbox"
	"dcs-tui/dispatch/publish"
	"dcs-tui/dispatch/socket"
	"dcs-tui/internal/advice"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/runview"
)

// listen makes the sockets at which screens and commands attach. Nobody knows of them
// before announce.
func (r *Run) listen() error {
	var err error
	if r.opts.Board != nil {
		r.server, err = control.Listen(control.Options{
			Base: r.opts.SocketBase, Program: r.opts.Program, Run: r.dir.UID(), Epoch: r.table.Epoch, Secret: r.journal.Token(),
			Open: func() (runview.Source, func(), error) { return r.opts.Board(r) },
			TakeIn: func(ctx context.Context, name string) error {
				err := r.inbox.Wake(ctx, name)
				if errors.Is(err, inbox.ErrLeaving) {
					return control.ErrLeaving
				}
				return err
			},
			Fault: r.sayText,
		})
	}
	if err == nil {
		r.socket, err = socket.Listen(socket.Options{
			Base: r.opts.SocketBase, Run: r.dir.UID(), Epoch: r.table.Epoch, Release: r.opts.Program, Token: r.journal.Token(),
			Handler: calls{r}, Fault: r.sayText,
		})
	}
	switch {
	case err == nil:
	case r.opts.NeedSocket:
		return advice.Errorf("%w", err).WithAdvice("dcs-tui resume --no-tui %s runs it without a screen", text.ShellWord(text.Line(r.dir.Ref())))
	default:
		r.sayText("warning: nobody can attach to this run: " + err.Error())
	}
	return nil
}

// announce writes the addresses of the sockets into the file owner.
func (r *Run) announce() {
	var err error
	if r.server != nil {
		err = r.journal.SetAddress(r.server.Address())
	}
	if r.socket != nil && err == nil {
		err = r.journal.SetSocket(r.socket.Address())
	}
	if err != nil {
		r.sayText("warning: nobody can attach to this run: " + err.Error())
	}
}

// publish begins to tell observers how the run stands.
func (r *Run) publish() {
	o := publish.Options{Run: r.dir, Token: r.journal.Token(), Dispatcher: r.d, Journal: r.journal,
		Warn: func(err error) { r.sayText("warning: " + err.Error()) }}
	if r.socket != nil {
		o.Socket = r.socket
	}
	r.publisher = publish.Start(o)
	if r.opts.Questions != nil {
		r.opts.Questions.publish(r.publisher)
	}
}

// lastStateTimeout bounds how long the end of a run waits for the last live.json.
const lastStateTimeout = 5 * time.Second

// closePublisher publishes the last state. The dispatcher has ended.
func (r *Run) closePublisher() {
	ctx, cancel := context.WithTimeout(context.Background(), lastStateTimeout)
	defer cancel()
	if err := r.publisher.Close(ctx); err != nil {
		r.sayText("warning: " + err.Error())
	}
}

// numConnected returns the number of screens and commands that are connected.
func (r *Run) numConnected() (n int) {
	if r.server != nil {
		n += r.server.Attached()
	}
	if r.socket != nil {
		n += r.socket.Connected()
	}
	return n
}

// lastLookDelay is for those who follow an output that only its host has: when its link is
// closed, nobody can read the end of it.
const lastLookDelay = 2 * time.Second

// lastLook gives attached screens that time.
func (r *Run) lastLook() {
	if r.numConnected() == 0 || r.hostDirs.num() == 0 {
		return
	}
	select {
	case <-time.After(lastLookDelay):
	case <-r.signals.stopping:
	}
}

func (r *Run) closeSocket() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if r.server != nil {
			r.server.Close()
		}
		if r.socket != nil {
			r.socket.Close()
		}
	}()
	select {
	case <-closed:
	case <-time.After(WriteTimeout): // a call hangs in the run directory: it ends with this process
	}
}
