// Package e2e tests the whole program as its user has it: the real binary, real
// OpenSSH servers on loopback standing for workstations, real processes. It has
// no code to use. Tests wait for what they need to see, never for a time.
package e2e
