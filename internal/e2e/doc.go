// Package e2e tests the whole program as users run it: the real binary, real OpenSSH servers on
// loopback in place of workstations, real processes, and namespaces in place of other machines. It
// has only tests. Tests wait for conditions, never for a fixed time. Exceptions, where the time is
// the fault itself (the time of a death, a sleeping machine), have a comment.
//
// DCS_LONG=1 makes the sweeps complete: every call of the dispatcher, and hundreds of deaths and
// takeovers. DCS_SEED=n repeats the random choices of a test that has printed n.
package e2e
