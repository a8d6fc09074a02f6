// Package e2e tests the whole program as its user has it: the real binary, real
// OpenSSH servers on loopback standing for workstations, real processes, and
// namespaces standing for other machines. It has no code to use. Tests wait for
// what they need to see, never for a time; where a time is the fault itself (the
// instant of a death, a machine asleep) they say so.
//
// DCS_LONG=1 makes the sweeps whole: every call of the dispatcher, hundreds of
// deaths and takeovers. DCS_SEED=n repeats the random choices of a test that has
// printed n.
package e2e
