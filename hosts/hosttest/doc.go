// Package hosttest provides hosts for tests and benchmarks: a real OpenSSH server on loopback
// (SSHD), the conformance suite of hosts.Link (Conform), and a Worker without a machine.
//
// It is for tests and benchmark programs only. The product does not import it.
package hosttest
