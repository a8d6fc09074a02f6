package jobs

import (
	"fmt"
	"reflect"
	"strings"
)

// ChangeOptions changes the options of jobs. Options that jobs share stay shared.
func ChangeOptions(specs []*Spec, change func(*Options)) {
	done := map[*Options]*Options{}
	for _, s := range specs {
		o := done[s.Options]
		if o == nil {
			own := *s.Options
			change(&own)
			o = &own
			done[s.Options] = o
		}
		s.Options = o
	}
}

// QueuesOf returns the queues of jobs, in the order of their first jobs.
func QueuesOf(specs []*Spec) []string {
	var names []string
	seen := map[string]bool{}
	for _, s := range specs {
		if !seen[s.Queue] {
			seen[s.Queue] = true
			names = append(names, s.Queue)
		}
	}
	return names
}

// OptionText is an option of a job as a jobs file sets it.
type OptionText struct{ Key, Value string }

// OptionTexts returns the options that a job sets itself, without share, queue_priority,
// and queue_slots, which are those of its queue.
func (s *Spec) OptionTexts() (list []OptionText) {
	add := func(key string, value any) {
		if !reflect.ValueOf(value).IsZero() {
			list = append(list, OptionText{key, fmt.Sprint(value)})
		}
	}
	add("name", s.Name)
	add("queue", s.Queue)
	add("priority", s.Priority)
	add("tries", s.Tries)
	if s.RetryDelay != nil {
		add("retry_delay", s.RetryDelay.String())
	}
	add("timeout", s.Timeout)
	if !s.Deadline.IsZero() {
		add("deadline", strings.TrimSuffix(s.Deadline.Local().Format("2006-01-02T15:04:05"), ":00"))
	}
	add("est", s.Estimate)
	add("tags", strings.Join(s.Tags, ","))
	add("gpus", s.GPUs)
	if s.MemBytes > 0 {
		add("mem", FormatSize(s.MemBytes))
	}
	add("slots", s.Slots)
	add("tokens", s.TokenText())
	add("after", s.AfterText())
	for _, e := range s.Env {
		add("env."+e.Name, e.Value)
	}
	add("cwd", s.Cwd)
	add("setup", s.Setup)
	add("on_lost", map[OnLost]string{OnLostRequeue: "requeue", OnLostWait: "wait"}[s.OnLost])
	if s.NoCopies {
		add("speculate", "false")
	}
	add("hardness", strings.Join(s.Hardness, ","))
	add("send", strings.Join(s.Send, ","))
	add("return", strings.Join(s.Return, ","))
	return list
}
