// Package mirror keeps a copy of a run directory, the mirror, on a host that does not share the
// directory, so that a standby dispatcher there can continue the run.
//
// While a mirror is on, the dispatcher (Primary) launches nothing and shows no result before the
// host has made the records durable, too (Receiver). If the two lose contact, neither can know
// whether the other one works. The hosts of the run then decide by votes, once for each generation
// of a mirror: either the dispatcher continues alone, or the standby takes the run over. Each voter
// votes once, and durably. The numbers of votes that are needed (see votesNeeded) cannot be reached
// by both. No clock takes part in this.
package mirror
