package cli

import (
	"strings"
	"testing"

	"dcs-tui/dispatch"
)

// Notices wait in bounded room, and what did not fit is counted.
func TestNoticesAreBounded(t *testing.T) {
	q := newNoticeQueue()
	for range maxNotices + 5 {
		q.put(dispatch.Notice{Text: "x"})
	}
	list := q.take()
	if len(list) != maxNotices+1 || !strings.HasPrefix(list[maxNotices].Text, "5 further") {
		t.Errorf("%d notices, the last %q", len(list), list[len(list)-1].Text)
	}
	if len(q.take()) != 0 {
		t.Error("they were taken twice")
	}
}
