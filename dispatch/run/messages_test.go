package run

import (
	"strings"
	"testing"

	"dcs-tui/dispatch"
)

// TestMessagesAreBounded checks that the queue of notices is bounded and that dropped notices are
// counted.
func TestMessagesAreBounded(t *testing.T) {
	q := newMessages()
	for range maxMessages + 5 {
		q.notice(dispatch.Notice{Text: "x"})
	}
	list := q.takeAll()
	if len(list) != maxMessages+1 || !strings.HasPrefix(list[maxMessages].notice.Text, "5 further") {
		t.Errorf("%d notices, the last %q", len(list), list[len(list)-1].notice.Text)
	}
	if len(q.takeAll()) != 0 {
		t.Error("they were taken twice")
	}
}
