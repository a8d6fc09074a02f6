// Package fetch reads the files of attempts on hosts that keep them to themselves (they
// do not share the run directory), over connections of its own, and brings those that are
// over into the run directory, where everybody who looks for them looks first.
//
// It asks for files by the uid of the run and the number of the attempt alone: no host
// says what is read or where it is written. It starts nothing on a host, changes nothing
// there, and needs no dispatcher: one that is alive is not disturbed.
package fetch
