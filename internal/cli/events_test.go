package cli

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

func TestEventFilter(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 2, 0, 0, time.Local)
	stamp := func(ago time.Duration) jobs.Stamp { return jobs.StampOf(now.Add(-ago)) }
	for _, c := range []struct {
		f    eventFilter
		r    jobs.Record
		want bool
	}{
		{eventFilter{}, jobs.Record{}, true},
		{eventFilter{jobs: "3,5-6"}, jobs.Record{Kind: jobs.KindLost, Job: 6}, true},
		{eventFilter{jobs: "3,5-6"}, jobs.Record{Kind: jobs.KindLost, Job: 4}, false},
		{eventFilter{jobs: "3"}, jobs.Record{Kind: jobs.KindEnded}, false},
		{eventFilter{jobs: "3,10-20"}, jobs.Record{Kind: jobs.KindAccepted, Job: 4, Count: 7}, true},
		{eventFilter{jobs: "3,11-20"}, jobs.Record{Kind: jobs.KindAccepted, Job: 4, Count: 7}, false},
		{eventFilter{host: "a"}, jobs.Record{Host: "a"}, true},
		{eventFilter{host: "a"}, jobs.Record{Host: "ab"}, false},
		{eventFilter{since: "2h"}, jobs.Record{At: stamp(time.Hour)}, true},
		{eventFilter{since: "2h"}, jobs.Record{At: stamp(3 * time.Hour)}, false},
		{eventFilter{since: "2026-03-14"}, jobs.Record{At: stamp(15 * time.Hour)}, true},
		{eventFilter{since: "2026-03-14"}, jobs.Record{At: stamp(16 * time.Hour)}, false},
		{eventFilter{since: "2026-03-14 15:00"}, jobs.Record{At: stamp(time.Minute)}, true},
	} {
		if err := c.f.read(now); err != nil {
			t.Fatal(err)
		}
		if got := c.f.wants(&c.r); got != c.want {
			t.Errorf("%+v, %+v: %v", c.f, c.r, got)
		}
	}
	for _, f := range []eventFilter{{jobs: "x"}, {since: "yesterday"}, {since: "-2h"}} {
		if err := f.read(now); err == nil || !strings.Contains(err.Error(), "--") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
