package cli

import (
	"fmt"
	"sync"

	"dcs-tui/dispatch"
)

// maxNotices bounds what waits to be written. A terminal that somebody has
// stopped with Ctrl-S must not hold the dispatcher up, nor fill its memory.
const maxNotices = 4096

// noticeQueue takes notices from the dispatcher, which may not wait, and keeps
// them for the goroutine that writes them.
type noticeQueue struct {
	mu      sync.Mutex
	list    []dispatch.Notice
	dropped int
	wake    chan struct{} // room for one
}

func newNoticeQueue() *noticeQueue { return &noticeQueue{wake: make(chan struct{}, 1)} }

// put is dispatch.Config.Notify.
func (q *noticeQueue) put(n dispatch.Notice) {
	q.mu.Lock()
	if len(q.list) < maxNotices {
		q.list = append(q.list, n)
	} else {
		q.dropped++
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take empties the queue. What had to be dropped is said in its place.
func (q *noticeQueue) take() []dispatch.Notice {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	if q.dropped > 0 {
		list = append(list, dispatch.Notice{Text: fmt.Sprintf("%d further notices were dropped; the journal has them", q.dropped)})
	}
	q.list, q.dropped = nil, 0
	return list
}
