package cli

import (
	"fmt"
	"strings"
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

// noticeLine is a notice as a line on the console.
func (c *console) noticeLine(n dispatch.Notice) string {
	mark := c.glyph("·", "-")
	text := cleanLine(withoutSubject(n.Text, n.Host))
	if n.Job != 0 {
		job := fmt.Sprintf("job %d", n.Job)
		return c.paint(yellow, mark+" "+job) + "  " + hostPart(n.Host) + withoutSubject(text, job)
	}
	at := ""
	if !n.At.IsZero() {
		at = n.At.Format("15:04:05") + "  "
	}
	return c.paint(dim, mark+" "+at) + hostPart(n.Host) + text
}

// withoutSubject takes a host's name, or "job 7", off a text that begins with it:
// the line has it already.
func withoutSubject(text, subject string) string {
	if rest, ok := strings.CutPrefix(text, subject); ok && subject != "" && rest != "" && (rest[0] == ' ' || rest[0] == ':') {
		return strings.TrimLeft(rest, ": ")
	}
	return text
}

func hostPart(host string) string {
	if host == "" {
		return ""
	}
	return cleanLine(host) + "  "
}
