// Package hosttest is what tests and benchmarks stand on when they need a host:
// a real OpenSSH server on loopback (SSHD), one conformance suite that every
// hosts.Link must pass (Conform), and a connection that needs no host at all (Worker).
//
// It is for tests and benchmark programs only; nothing of the product imports it.
package hosttest
