// Package inbox takes in what people ask of the dispatcher of a run: request files in the
// run directory, requests through the socket, and the STOP files. It gives each to the
// core once, by its name, and removes its file when the answer is durable.
//
// It makes requests only of STOP files and for the program that wires it, and decides
// nothing about jobs (dispatch/sched does).
package inbox
