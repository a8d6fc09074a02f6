// Package control carries a view.Source over a socket: the dispatcher serves its own,
// and a screen, on this machine or at the far end of an ssh connection, has a Client
// that is one.
//
// The socket lies in /tmp/dcs-UID, closed to others; whoever connects must be the same
// user, or root; to a client on another machine, which sees neither, the dispatcher
// proves that it knows the secret of the run. A connection begins with a line of JSON from each side (Hello), which
// every version can read; then come gob messages: calls with a number, their answers
// in any order, calls taken back, and at the end the dispatcher's goodbye, which says
// that what it has not answered it has not taken. That is not net/rpc, because calls that
// wait for news must end when their caller does, and because a client that sends
// without end or does not read must cost no more than its own few calls. Messages on
// one connection share one gob stream, so types are described once.
//
// Beside the Source there is a bell (TakeIn) for those who have left a request in the
// run directory and wait for what becomes of it.
//
// It knows nothing of runs, boards and terminals: what is asked goes to the Source as
// it came, within bounds. It does not find sockets (the file owner of a run names
// them) and does not connect through ssh: NewClient takes any connection.
package control
