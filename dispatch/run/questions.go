package run

import (
	"errors"
	"sync"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs/live"
)

// Questions asks people on attached screens for secrets. A question stands until somebody
// answers it. Answers are in memory only. Safe for concurrent use.
type Questions struct {
	turn sync.Mutex // one question at a time

	mu     sync.Mutex
	last   int64
	open   *live.Question
	answer chan string
	shown  questionSetter // the publisher; nil: there is none yet
}

type questionSetter interface{ SetQuestion(*live.Question) }

var errUnanswered = errors.New("it was not answered")

// Ask asks a question and waits for the answer.
func (q *Questions) Ask(text string) ([]byte, error) {
	q.turn.Lock()
	defer q.turn.Unlock()
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
	if q.shown != nil {
		q.shown.SetQuestion(open)
	}
}

// publish shows questions in live.json and at the socket from now on.
func (q *Questions) publish(p questionSetter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shown = p
	if q.open != nil {
		p.SetQuestion(q.open)
	}
}

// Answer answers a question; "" declines to answer. The error is a *socket.RefusedError
// when the question is not asked any more.
func (q *Questions) Answer(id int64, text string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil || q.open.ID != id {
		return socket.Refusef("that was answered already")
	}
	q.answer <- text // has room
	q.set(nil)
	return nil
}
