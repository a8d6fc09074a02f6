package cli

import (
	"math"
	"time"

	"dcs-tui/jobs/live"
)

const (
	historyInterval = 5 * time.Minute
	historyParts    = 12
)

// hostHistory holds means over each historyInterval of the hour until Until, oldest first. With a
// thousand hosts it has about half a megabyte. Quantities that the host does not have are left out.
type hostHistory struct {
	Until      time.Time     `json:"until"`
	Interval   time.Duration `json:"interval_ns"`
	Load       gapNumbers    `json:"load"`
	OwnSlots   gapNumbers    `json:"own_slots"`
	OtherSlots gapNumbers    `json:"other_slots"`
	MemUsed    gapNumbers    `json:"memory_used_bytes,omitempty"`
	GPUsUsed   gapNumbers    `json:"gpus_used,omitempty"`
	Ended      gapNumbers    `json:"ended_per_minute"`
}

// gapNumbers are numbers, rounded to a hundredth; nil: not known.
type gapNumbers []*float64

// historyOf returns the history of a host until a time, or nil if there is no sample of that hour.
func historyOf(list []live.Sample, until time.Time) *hostHistory {
	begin := until.Add(-historyParts * historyInterval)
	if len(list) == 0 || list[len(list)-1].At.Before(begin) {
		return nil
	}
	means := func(value func(*live.Sample) float64) (numbers gapNumbers) {
		for _, v := range live.Means(list, begin, until, historyParts, value) {
			var known *float64
			if !math.IsNaN(v) {
				known = new(math.Round(v*100) / 100)
			}
			numbers = append(numbers, known)
		}
		return numbers
	}
	last := &list[len(list)-1]
	h := &hostHistory{Until: until.UTC(), Interval: historyInterval,
		Load:       means(func(s *live.Sample) float64 { return s.Load }),
		OwnSlots:   means(func(s *live.Sample) float64 { return float64(s.Own) }),
		OtherSlots: means(func(s *live.Sample) float64 { return s.Others }),
		Ended:      means(func(s *live.Sample) float64 { return s.Rate }),
	}
	if last.MemAll > 0 {
		h.MemUsed = means(func(s *live.Sample) float64 { return math.Round(float64(s.Mem)) })
	}
	if last.GPUAll > 0 {
		h.GPUsUsed = means(func(s *live.Sample) float64 { return s.GPUs })
	}
	return h
}
