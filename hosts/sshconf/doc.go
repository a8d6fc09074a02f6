// Package sshconf resolves a host of the inventory to concrete ssh connection
// parameters (Target), honouring the user's own ssh_config as OpenSSH reads it:
// Host and Match blocks, Include, the first value obtained wins, what the
// inventory says comes before it. Source: ssh_config(5) of OpenSSH 9.
//
// A directive that is set for a host in use and that we cannot honour is named
// in a warning; those that mean nothing to a program without terminal,
// forwarding and multiplexing are left aside silently (see directives.go).
//
// The package opens no connection and reads no key; that is sshlink.
package sshconf
