// Package remote is the far side of hosts/helper, what runs on a host: the
// helper (`__host`), one for as long as one channel lives, which takes jobs over
// into a spool and reports what happens to them; the supervisors (`__slot`), which
// run one job after the other and outlive the helper; and `__sum`, the hash of
// the executable, for the bootstrap.
//
// It promises, whatever dies and whenever: an attempt starts at most
// once (its claim), never after its lease or after it was withdrawn; no outcome
// is known but from a whole sentinel or the supervisor that wrote it; and what is
// ended is ended whole, children that left the session included.
//
// How a job travels. The helper writes a spec into the spool's directory in/ and
// a token into the pipe that all its supervisors read. A token only wakes: it names a
// spec. Taking a spec is a rename into taken/, whose name says who took
// it; withdrawing it is an unlink in in/; so exactly one of both happens. The
// supervisor then creates the status file, which holds the claim and reserved
// bytes, runs the job, writes the sentinel into these and removes the taken
// spec. On a FIFO in the spool it tells the
// helper of that time; a lost line is made up for by looking at taken/ and at
// the sentinels, every few seconds.
//
// One helper serves a spool: a new one ends the older ones that are noted there,
// also those that are stopped or stuck. The end of a run, once begun, is carried
// through though the link breaks.
//
// Files helper*.go belong to the helper and files supervisor*.go to the supervisor; both
// use the others. The end of helper_owner.go is a third program, which suspends jobs.
//
// It decides nothing about jobs, opens no network connection, and must not be
// used by the dispatcher's side, which speaks to it through hosts/helper.
package remote
