package hosts

import (
	"testing"
	"time"
)

func clockTime(h, m int) time.Duration {
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
}

// TestRestOfTheQuietHours checks how much of the quiet hours is left, also across midnight (B7).
func TestRestOfTheQuietHours(t *testing.T) {
	night := []Quiet{{From: clockTime(22, 0), To: clockTime(6, 0)}}
	for _, tt := range []struct {
		name       string
		spans      []Quiet
		at         time.Duration
		left, next time.Duration
	}{
		{"before", night, clockTime(21, 59), 0, time.Minute},
		{"first moment", night, clockTime(22, 0), clockTime(8, 0), 0},
		{"midnight", night, 0, clockTime(6, 0), clockTime(22, 0)},
		{"last moment", night, clockTime(6, 0) - 1, 1, clockTime(16, 0) + 1},
		{"over", night, clockTime(6, 0), 0, clockTime(16, 0)},
		{"by day", []Quiet{{From: clockTime(9, 0), To: clockTime(17, 0)}},
			clockTime(12, 0), clockTime(5, 0), clockTime(21, 0)},
		{"two in a row", []Quiet{{From: 0, To: clockTime(6, 0)}, {From: clockTime(22, 0), To: clockTime(24, 0)}},
			clockTime(23, 0), clockTime(7, 0), clockTime(1, 0)},
		{"two that overlap",
			[]Quiet{{From: clockTime(8, 0), To: clockTime(12, 0)}, {From: clockTime(10, 0), To: clockTime(14, 0)}},
			clockTime(9, 0), clockTime(5, 0), clockTime(1, 0)},
		{"all day", []Quiet{{From: 0, To: clockTime(24, 0)}}, clockTime(12, 0), oneDay, clockTime(12, 0)},
		{"all day in two parts", []Quiet{{From: 0, To: clockTime(12, 0)}, {From: clockTime(12, 0), To: 0}},
			clockTime(3, 0), oneDay, clockTime(9, 0)},
		{"nothing", []Quiet{{From: clockTime(3, 0), To: clockTime(3, 0)}}, clockTime(3, 0), 0, NoQuietAhead},
		{"none", nil, clockTime(3, 0), 0, NoQuietAhead},
	} {
		t.Run(tt.name, func(t *testing.T) {
			left, next := QuietLeft(tt.spans, tt.at), UntilQuiet(tt.spans, tt.at)
			if left != tt.left || next != tt.next {
				t.Errorf("%s are left, and the next begin in %s; want %s and %s", left, next, tt.left, tt.next)
			}
		})
	}
}
