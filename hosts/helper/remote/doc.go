// Package remote is the part of hosts/helper that runs on a host. Main runs one of four programs.
// The helper (`__host`), one per channel, puts jobs into a spool and reports what happens to them.
// The supervisors (`__slot`) run one job after the other and outlive the helper. The suspender
// (`__suspend`) stops jobs while an owner uses the machine. `__sum` prints the hash of the
// executable for the bootstrap.
//
// The package makes three promises, whichever process dies at whatever time. An attempt starts at
// most once (because of its claim), and never after its lease has expired or after it was
// withdrawn. An outcome comes only from a complete sentinel or from the supervisor that wrote it.
// An attempt is ended together with all of its processes, including children that left the session.
//
// The path of a job: the helper writes a spec into the directory in/ of the spool, and a token
// into the pipe that all its supervisors read. A token only wakes a supervisor; it names a spec. A
// supervisor takes a spec by renaming it into taken/ under a name that contains the supervisor.
// The helper withdraws a spec by removing it from in/. So exactly one of the two happens. The
// supervisor then creates the status file, which holds the claim and reserved bytes, runs the job,
// writes the sentinel into these bytes, and removes the taken spec. It reports to the helper
// through a FIFO in the spool. If a report is lost, the helper learns of it when it reconciles
// its state with taken/ and the sentinels every few seconds.
//
// One helper serves a spool: a new one ends the older ones that are registered there, even if they
// are stopped or stuck. Once the end of a run has begun, it is completed even if the link breaks.
//
// Files helper*.go belong to the helper, supervisor*.go to the supervisor, and suspend.go to the
// suspender. All use the others.
//
// The package makes no decisions about jobs and opens no network connection. The dispatcher must
// not import it, and uses it only through hosts/helper.
package remote
