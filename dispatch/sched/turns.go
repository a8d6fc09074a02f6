package sched

import (
	"slices"

	"dcs-tui/jobs"
)

// What tells the order in which jobs start besides what stands in them, for those who
// show it.

// Hardnesses counts what HardnessOrder is made of: it changes when this does.
func (c *Core) Hardnesses() int { return len(c.hard.options) }

// HardnessOrder numbers the options of jobs that have a hardness (E2), from 1 for the
// easiest; those that are as hard as each other have one number.
func (c *Core) HardnessOrder() map[*jobs.Options]uint32 {
	var all []*tuple
	for _, f := range c.hard.list {
		all = append(all, f.list...)
	}
	slices.SortFunc(all, (*tuple).compare)
	number := make(map[*tuple]uint32, len(all))
	for i, t := range all {
		number[t] = uint32(i + 1)
	}
	order := make(map[*jobs.Options]uint32, len(c.hard.options))
	for _, o := range c.hard.options {
		order[o] = number[c.hard.of[o]]
	}
	return order
}

// Hybrid says that slots of this machine take the shortest job first and the others do
// not (D5).
func (c *Core) Hybrid() bool { return c.hybrid }
