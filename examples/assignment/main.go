// Assignment solves one instance of the assignment problem by branch and bound: it assigns n tasks
// to n different agents out of m (m >= n) at the lowest total cost. It is the example of ExpoCloud
// (Goldenberg, arXiv 2208.12195), whose experiment asks how far three variants of the search get
// before a timeout:
//
//	brute  visits every assignment
//	bnb    cuts off a branch that costs as much as the best solution so far
//	heur   like bnb, with a lower bound for the cost of the rest of the branch
//
// It is an ordinary job for dcs-tui and not a part of it: see examples/assignment.txt.
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

// search is a branch and bound search. It assigns the tasks in order.
type search struct {
	cost  [][]int // cost of a task, by agent
	free  []bool  // which agents are free
	best  int     // lowest cost of a complete assignment so far
	nodes int64   // number of partial assignments visited

	cutOff, bound bool
}

// newSearch creates an instance, which is the same for all variants.
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

// assign assigns task t and the later ones to free agents. spent is the cost of the earlier tasks.
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

// rest returns a lower bound for the cost of task t and the later ones. It is the sum of the cost
// of each task with its cheapest free agent, even if several tasks share an agent.
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
