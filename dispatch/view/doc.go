// Package view is what a screen may see of a run and ask of it: plain data, bounded
// in size, safe to keep and to send over a socket, and the interface Source behind
// which it does not matter whether a dispatcher lives in this process, in another
// one, on another machine, or no more.
//
// It decides nothing, draws nothing and reads nothing itself. Texts in it are as they
// came from jobs and hosts: whoever shows them cleans them.
package view
