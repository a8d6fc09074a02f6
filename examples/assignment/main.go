// Assignment solves one instance of the assignment problem by branch and bound: n
// tasks, each for another one of m agents (m >= n), at the lowest total cost. It is
// the example of ExpoCloud (Goldenberg, arXiv 2208.12195), whose experiment asks how far three
// variants of the search get before a timeout:
//
//	brute  every assignment is looked at
//	bnb    a branch that costs as much as the best solution so far is cut off
//	heur   the same, with a lower bound for what the rest of the branch must cost
//
// It is a job for dcs-tui like any program, and no part of it: see
// examples/assignment.txt.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
)

const usage = "usage: assignment brute|bnb|heur TASKS AGENTS INSTANCE"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "assignment:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) != 4 || !slices.Contains([]string{"brute", "bnb", "heur"}, args[0]) {
		return fmt.Errorf("%s", usage)
	}
	var numbers [3]int
	for i, arg := range args[1:] {
		n, err := strconv.Atoi(arg)
		if err != nil || n < 0 || n > 1000 {
			return fmt.Errorf("%q is not a number from 0 to 1000; %s", arg, usage)
		}
		numbers[i] = n
	}
	tasks, agents := numbers[0], numbers[1]
	if agents < tasks {
		return fmt.Errorf("%d agents cannot do %d tasks, one each", agents, tasks)
	}
	s := newSearch(args[0], tasks, agents, uint64(numbers[2]))
	s.assign(0, 0)
	fmt.Printf("cost=%d nodes=%d\n", s.best, s.nodes)
	return nil
}

// search is a branch and bound: tasks are given to agents in order.
type search struct {
	cost  [][]int // of a task, by agent
	free  []bool  // agents
	best  int     // lowest cost of a whole assignment so far
	nodes int64   // partial assignments looked at

	cutOff, bound bool
}

// newSearch makes an instance: the same for all variants.
func newSearch(variant string, tasks, agents int, instance uint64) *search {
	rng := rand.New(rand.NewPCG(instance, uint64(tasks)<<32|uint64(agents)))
	s := &search{free: make([]bool, agents), best: 1 << 40, cutOff: variant != "brute", bound: variant == "heur"}
	for range tasks {
		row := make([]int, agents)
		for a := range row {
			row[a] = 1 + rng.IntN(100)
		}
		s.cost = append(s.cost, row)
	}
	for a := range s.free {
		s.free[a] = true
	}
	return s
}

// assign gives task t and those after it to free agents; spent is the cost of
// those before.
func (s *search) assign(t, spent int) {
	s.nodes++
	if t == len(s.cost) {
		s.best = min(s.best, spent)
		return
	}
	least := spent
	if s.bound {
		least += s.rest(t)
	}
	if s.cutOff && least >= s.best {
		return
	}
	for a, free := range s.free {
		if free {
			s.free[a] = false
			s.assign(t+1, spent+s.cost[t][a])
			s.free[a] = true
		}
	}
}

// rest is a lower bound for the cost of task t and those after it: each by its
// cheapest free agent, whoever else may want that one.
func (s *search) rest(t int) int {
	sum := 0
	for _, row := range s.cost[t:] {
		least := 1 << 30
		for a, c := range row {
			if s.free[a] && c < least {
				least = c
			}
		}
		sum += least
	}
	return sum
}
