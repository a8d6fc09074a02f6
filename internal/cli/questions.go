package cli

import (
	"errors"
	"sync"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// asker asks a person for something secret.
type asker interface {
	ask(text string) ([]byte, error)
}

// askSecret asks a person for a passphrase: on the terminal, or through whoever stands
// in for it.
func (a *app) askSecret(what string) ([]byte, error) {
	if a.asker != nil {
		return a.asker.ask(what)
	}
	return a.askPassphrase(what)
}

// questions asks people on attached screens. A question stands until somebody answers
// it, however long nobody looks. What is answered is in memory only.
type questions struct {
	turn sync.Mutex // one question at a time

	mu    sync.Mutex
	last  int64
	open  *live.Question
	given chan string
	shown interface{ SetQuestion(*live.Question) } // nil: nobody looks
}

var errUnanswered = errors.New("it was not answered")

// ask waits for an answer.
func (q *questions) ask(text string) ([]byte, error) {
	q.turn.Lock()
	defer q.turn.Unlock()
	given := make(chan string, 1)
	q.mu.Lock()
	q.last++
	q.given = given
	q.put(&live.Question{ID: q.last, Text: text, Secret: true})
	q.mu.Unlock()
	secret := <-given
	if secret == "" {
		return nil, errUnanswered
	}
	return []byte(secret), nil
}

// put changes what is asked. mu is held.
func (q *questions) put(open *live.Question) {
	q.open = open
	if q.shown != nil {
		q.shown.SetQuestion(open)
	}
}

// show asks on a board from now on; nil: on none.
func (q *questions) show(b interface{ SetQuestion(*live.Question) }) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shown = b
	if b != nil && q.open != nil {
		b.SetQuestion(q.open)
	}
}

// answer answers a question; "" refuses it.
func (q *questions) answer(id int64, text string) (*runview.Answer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil || q.open.ID != id {
		return nil, &runview.Refused{Why: "that was answered already"}
	}
	q.given <- text // has room
	q.put(nil)
	return &runview.Answer{Done: 1}, nil
}
