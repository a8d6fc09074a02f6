// Package locallink is the Link to this very machine: a command runs as a child
// in a session of its own, with plain pipes for its standard streams. cmdlink
// uses the same process streams behind a command of the user's.
//
// It is no supervisor of jobs: what leaves the command's process group, as the
// helper's supervisors do, is not touched.
package locallink
