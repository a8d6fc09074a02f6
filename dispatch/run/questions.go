package run

import (
	"errors"
	"sync"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// Questions asks people on attached screens for secrets. A question stands until somebody
// answers it. Answers are in memory only. Safe for concurrent use.
type Questions struct {
	turn sync.Mutex // one question at a time

	mu     sync.Mutex
	last   int64
	open   *live.Question
	answer chan string
	shown  [2]questionSetter // the publisher, and a board; nil: there is none
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
	for _, s := range q.shown {
		if s != nil {
			s.SetQuestion(open)
		}
	}
}

// Show shows questions on a board from now on; nil: on none.
func (q *Questions) Show(b questionSetter) { q.showOn(1, b) }

// publish shows questions in live.json and at the socket from now on.
func (q *Questions) publish(p questionSetter) { q.showOn(0, p) }

func (q *Questions) showOn(i int, b questionSetter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shown[i] = b
	if b != nil && q.open != nil {
		b.SetQuestion(q.open)
	}
}

// Answer answers a question; "" refuses it.
func (q *Questions) Answer(id int64, text string) (*runview.Answer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil || q.open.ID != id {
		return nil, &runview.Refused{Why: "that was answered already"}
	}
	q.answer <- text // has room
	q.set(nil)
	return &runview.Answer{Done: 1}, nil
}
