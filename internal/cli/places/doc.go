// Package places remembers where the hosts that do not share the run directory keep their
// attempts, for whoever looks at the run when nobody is connected to them.
//
// It reads no outputs and asks no host: a host says its place in its hello.
package places
