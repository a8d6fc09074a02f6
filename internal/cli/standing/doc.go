// Package standing says how a run stands, from its files or the table of its jobs: how
// many jobs are in each state, what hosts and queues had of it, what kept them, how far its
// input was read, who dispatches it.
//
// It only looks, and takes nothing over; the one thing it writes is the mark how far the input
// was read. It prints nothing: what it says are lines for a console or an object of JSON.
package standing
