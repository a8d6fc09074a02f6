package run

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"dcs-tui/dispatch/publish"
	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
)

// listen creates the socket for screens and commands. announce publishes its address.
func (r *Run) listen() error {
	var err error
	r.socket, err = socket.Listen(socket.Options{
		Base:        r.opts.SocketBase,
		Run:         r.dir.UID(),
		Epoch:       r.table.Epoch,
		Release:     r.opts.Program,
		Token:       r.journal.Token(),
		Handler:     calls{r},
		ReportPanic: r.printText,
	})
	switch {
	case err == nil:
	case r.opts.NeedSocket:
		return text.Errorf("%w", err).WithAdvice("dcs-tui resume --no-tui %s runs it without a screen",
			text.ShellWord(text.Line(r.dir.Ref())))
	default:
		r.printWarning("screens will show this run a second late: " + err.Error())
	}
	return nil
}

// announce writes the address of the socket to the owner file.
func (r *Run) announce() {
	if r.socket == nil {
		return
	}
	if err := r.journal.SetSocket(r.socket.Address()); err != nil {
		r.printWarning("screens will show this run a second late: " + err.Error())
	}
}

// publish starts to publish the state of the run.
func (r *Run) publish() {
	o := publish.Options{Run: r.dir, Token: r.journal.Token(), Dispatcher: r.d, Journal: r.journal,
		Warn: func(err error) { r.printWarning(err.Error()) }}
	if r.socket != nil {
		o.Socket = r.socket
	}
	r.publisher = publish.Start(o)
	if r.opts.Questions != nil {
		r.opts.Questions.publish(r.publisher)
	}
}

// lastStateTimeout bounds how long the end of a run waits for writing the last live.json.
const lastStateTimeout = 5 * time.Second

// closePublisher publishes the last state. The dispatcher has ended.
func (r *Run) closePublisher() {
	ctx, cancel := context.WithTimeout(context.Background(), lastStateTimeout)
	defer cancel()
	if err := r.publisher.Close(ctx); err != nil {
		r.printWarning(err.Error())
	}
}

// lastReadsDelay is how long hosts stay connected at the end. Screens that follow an output which
// only its host has can thus read its end.
const lastReadsDelay = 2 * time.Second

// awaitLastReads waits for lastReadsDelay if there may be such screens.
func (r *Run) awaitLastReads() {
	if r.socket == nil || r.socket.NumConnected() == 0 || !r.hostDirs.hasUnshared() {
		return
	}
	select {
	case <-time.After(lastReadsDelay):
	case <-r.signals.stopping:
	}
}

func (r *Run) closeSocket() {
	if r.socket == nil {
		return
	}
	// A call that hangs in the run directory ends with this process.
	runAtMost(WriteTimeout, r.socket.Close)
}

// calls implements socket.Handler.
type calls struct{ *Run }

func (c calls) Wake(ctx context.Context, name string) error {
	return c.shown(ctx, c.inbox.Wake(ctx, name))
}

func (c calls) Request(ctx context.Context, name string, body json.RawMessage) error {
	return c.shown(ctx, c.inbox.Request(ctx, name, body))
}

// showTimeout bounds how long an answer waits for live.json. Observers then see it a second later.
const showTimeout = time.Second

// shown returns err, the answer to a request. If that is nil, what was done is visible to the next
// command: it chooses jobs by what it reads, and would refuse to requeue one that was just canceled.
func (c calls) shown(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, showTimeout)
	defer cancel()
	c.publisher.Show(ctx)
	return nil
}

func (c calls) Why(ctx context.Context, job jobs.ID) (string, error) {
	text, err := c.d.Why(ctx, job)
	if err == nil && text == "" {
		err = socket.Refusef("the run has no job %d", job)
	}
	return text, c.ended(err)
}

func (c calls) Reply(question int64, text string) error {
	if c.opts.Questions == nil {
		return socket.Refusef("the dispatcher has asked nothing")
	}
	return c.opts.Questions.Answer(question, text)
}

// Read returns at most hosts.MaxChunk bytes.
func (c calls) Read(ctx context.Context, r socket.Read) (*socket.Piece, error) {
	// The state is read before the output: if the attempt is over by then, the output is complete.
	a, err := c.d.Attempt(ctx, r.Attempt)
	if err != nil {
		return nil, c.ended(err)
	}
	p, err := socket.ReadPiece(r, a, func() ([]byte, int64, error) {
		return c.d.Output(ctx, r.Attempt, r.File, r.Offset, min(r.Limit, hosts.MaxChunk))
	})
	return p, c.ended(err)
}

// ended returns socket.ErrGone for the error of a dispatcher that has ended.
func (c calls) ended(err error) error {
	if err != nil {
		select {
		case <-c.d.Ended():
			return socket.ErrGone
		default:
		}
	}
	return err
}

// Questions asks people on attached screens for secrets. A question stays open until somebody
// answers it. Answers are kept only in memory. It is safe for concurrent use.
type Questions struct {
	asking sync.Mutex // held while a question is asked

	mu     sync.Mutex
	last   int64
	open   *live.Question
	answer chan string
	setter questionSetter // publisher; nil: there is none yet
}

type questionSetter interface{ SetQuestion(*live.Question) }

var errUnanswered = errors.New("it was not answered")

// Ask asks a question and waits for the answer.
func (q *Questions) Ask(text string) ([]byte, error) {
	q.asking.Lock()
	defer q.asking.Unlock()
	answer := make(chan string, 1)
	q.mu.Lock()
	q.last++
	q.answer = answer
	q.set(&live.Question{ID: q.last, Text: text, Secret: true})
	q.mu.Unlock()
	secret := <-answer
	if secret == "" {
		return nil, errUnanswered
	}
	return []byte(secret), nil
}

// set changes the open question. mu is held.
func (q *Questions) set(open *live.Question) {
	q.open = open
	if q.setter != nil {
		q.setter.SetQuestion(open)
	}
}

// publish starts to show questions in live.json and at the socket.
func (q *Questions) publish(p questionSetter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.setter = p
	if q.open != nil {
		p.SetQuestion(q.open)
	}
}

// Answer answers a question. "" declines to answer. The error is a *socket.RefusedError if the
// question is no longer open.
func (q *Questions) Answer(id int64, text string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil || q.open.ID != id {
		return socket.Refusef("that was answered already")
	}
	q.answer <- text // does not block: the channel has capacity
	q.set(nil)
	return nil
}
