package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"

	"dcs-tui/internal/platform"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// The marks of an epoch exclude what older dispatchers write too late. They are stored twice: in
// the first line of the epoch's file, and as the same line in a file beside it, such as
// 000002.marks. The file of marks is written before the first line, so a first line never exists
// without it. The file of marks may count without a first line, because no older dispatcher acts on
// what it writes once the epoch's file exists (see Journal.Sync). A run directory of an older
// program has no files of marks.

func (e epochFile) marksName() string { return fmt.Sprintf("%06d.marks", e.epoch) }

// writeMarks writes the marks of our epoch to the file beside its journal file, durably. Failing is
// an error, as it is for the first line. Otherwise a single damaged bit of the first line could
// make later dispatchers count what older ones wrote too late, and break promises 1 and 2.
func (j *Journal) writeMarks(first *jobs.Record) error {
	if len(first.Files) == 0 {
		return nil
	}
	// The epoch is ours alone, and so is the name. An existing file belongs to an epoch whose file
	// was lost.
	return rundir.Overwrite(j.run.Disk, j.run.Path(rundir.JournalDir, j.file.marksName()), appendLine(nil, first))
}

// readMarks reads the record that writeMarks wrote. It returns nil if there is none or it is not
// whole.
func readMarks(r *rundir.Run, e epochFile) (*jobs.Record, error) {
	b, err := r.ReadListed(rundir.JournalDir, e.marksName())
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	return epochRecord(e, line), nil
}

// epochRecord reads the record with which an epoch begins. It returns nil if the line does not hold
// one.
func epochRecord(e epochFile, line []byte) *jobs.Record {
	var d jobs.RecordReader
	rec := new(jobs.Record)
	body, ok := lineBody(line)
	if !ok || d.Read(body, rec) != nil || rec.Kind != jobs.KindEpoch || rec.Epoch != e.epoch {
		return nil
	}
	return rec
}

// A journal that ends early after a whole line looks like one whose dispatcher was
// killed there. So each heartbeat records in the owner file how much of the journal is
// durable. Comparing the two finds a restored snapshot, a copy of the run directory,
// and a file server that lost data it had synced.

// extent is a length of a file and the checksum of its bytes up to there.
type extent struct {
	length int64
	sum    uint32
}

// identify records the identity of the run directory, so that a copy can be told from the
// original. It records nothing if inode numbers change with every mount.
func (o *Owner) identify(r *rundir.Run) error {
	info, err := r.Disk.Stat(r.Dir)
	if err != nil {
		return fmt.Errorf("cannot inspect the run directory: %w", err)
	}
	o.Inode, o.Device = platform.FileIdentity(r.Dir, info)
	return nil
}

// isElsewhere reports whether two owners certainly had different directories. Device
// numbers are compared only within one boot.
func (o *Owner) isElsewhere(had *Owner) bool {
	if o.Inode == 0 || had.Inode == 0 {
		return false
	}
	return o.Inode != had.Inode || o.Boot == had.Boot && o.Device != had.Device && o.Device != 0 && had.Device != 0
}

// checkOwner compares the journal and the run directory with what the last owner
// recorded. It returns the reasons why records may be missing, each a sentence.
func checkOwner(r *rundir.Run, files []epochFile, had, now *Owner) (missing []string, err error) {
	if had.Epoch == 0 {
		return nil, nil
	}
	if now.isElsewhere(had) {
		missing = append(missing, fmt.Sprintf("%s is a copy of the directory in which the run was dispatched", r.Dir))
	}
	for _, epoch := range slices.Compact([]int{had.Epoch, had.File}) {
		if e := fileOf(epoch); epoch > 0 && !slices.Contains(files, e) {
			missing = append(missing, e.label()+" is missing")
		}
	}
	e := fileOf(had.File)
	if !slices.Contains(files, e) {
		return missing, nil
	}
	length, sum, err := checksumOf(r, e, had.Bytes)
	switch {
	case err != nil:
		return nil, err
	case length < had.Bytes:
		missing = append(missing,
			fmt.Sprintf("%s has lost its end: %d bytes of %d are there", e.label(), length, had.Bytes))
	case sum != had.Sum:
		missing = append(missing, fmt.Sprintf("%s is not what its dispatcher wrote: "+
			"the checksum of its first %d bytes differs", e.label(), had.Bytes))
	}
	return missing, nil
}

// checksumOf returns the CRC-32C of the first limit bytes of a file, or of the whole file if it is
// shorter, and the number of those bytes.
func checksumOf(r *rundir.Run, e epochFile, limit int64) (n int64, sum uint32, err error) {
	f, err := r.Disk.OpenFile(e.path(r), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := crc32.New(castagnoli)
	n, err = io.Copy(hash, io.NewSectionReader(f, 0, limit))
	return n, hash.Sum32(), err
}

// fold applies a record. If a line was lost, a record that does not fit is tried again after the
// facts that it implies: a job that was launched had been accepted, and an attempt that exited
// had been launched. Nothing else is assumed, least of all the end of a job.
func (f *Follower) fold(r *jobs.Record) error {
	err := jobs.Fold(f.table, r)
	if err == nil || !f.report.Damaged {
		return err
	}
	for _, m := range impliedRecords(f.table, r) {
		if jobs.Fold(f.table, &m) != nil {
			return err
		}
		f.report.warn("assumed, because a later record needs it: %s of job %d (attempt %d)", m.Kind, m.Job, m.N)
	}
	return jobs.Fold(f.table, r)
}

// The maximum numbers of jobs in jobs.jsonl, and of attempts of a job, whose loss a record may
// prove.
const (
	maxLostJobs     = 1 << 20
	maxLostAttempts = 1000
)

// addMissingSpecs adds placeholders for accepted jobs whose specifications are lost: their attempts
// and results count, but they cannot be run.
func (f *Follower) addMissingSpecs(e epochFile, no int, r *jobs.Record) {
	have, last := f.table.NumSpecs(), int(r.Job)-1+r.Count
	if r.Job < 1 || r.Count < 1 || last < int(r.Job) || last <= have || last-have > maxLostJobs {
		return
	}
	f.damage("%s has lost jobs %d to %d, which %s:%d says are part of the run", rundir.SpecsFile, have+1, last,
		e.label(), no)
	var lost []*jobs.Spec
	for id := have + 1; id <= last; id++ {
		lost = append(lost, jobs.LostSpec(jobs.ID(id), rundir.SpecsFile+": the line is missing"))
	}
	f.table.SetSpecs(have, lost)
	f.run.MissingSpecs(last)
}

// impliedRecords returns the records that must have preceded r and are not in t.
func impliedRecords(t *jobs.Table, r *jobs.Record) []jobs.Record {
	var missing []jobs.Record
	last := r.Job
	if r.Kind == jobs.KindAccepted {
		last--
	}
	if n := t.NumJobs(); int(last) > n && int(last) <= t.NumSpecs() {
		missing = append(missing, jobs.Record{Kind: jobs.KindAccepted, At: r.At, Job: jobs.ID(n + 1),
			Count: int(last) - n})
	}
	known, state, open := 0, jobs.Queued, 0
	if j := t.Job(r.Job); j != nil {
		known, state, open = len(j.Attempts), j.State, len(j.Open())
	}
	anew := jobs.Record{Kind: jobs.KindRound, At: r.At, Job: r.Job}
	switch r.Kind {
	case jobs.KindLaunching, jobs.KindRunning, jobs.KindExited, jobs.KindLost, jobs.KindSuperseded, jobs.KindCanceled:
	case jobs.KindRound, jobs.KindEdited: // no attempt of the job can start any more
		if j := t.Job(r.Job); j != nil && !(state.Terminal() && r.Kind == jobs.KindRound) {
			for _, a := range j.Open() {
				next := jobs.Running
				open--
				if open == 0 {
					next = jobs.Queued
				}
				if state.Terminal() {
					next = state
				}
				missing = append(missing, jobs.Record{Kind: jobs.KindLost, At: r.At, Job: r.Job, N: a.ID.N,
					Host: a.Host, Next: next,
					Reason: "the journal's record of its end is damaged"})
			}
		}
		return missing
	case jobs.KindJob, jobs.KindCanceling:
		if state.Terminal() { // it ended or was about to end again, so it had begun again
			missing = append(missing, anew)
		}
		return missing
	default:
		return missing
	}
	if r.N-known > maxLostAttempts || r.N <= known {
		return missing // more than one line was lost
	}
	if state.Terminal() {
		missing = append(missing, anew)
	}
	for n := known + 1; n < r.N; n++ {
		next := jobs.Queued
		if open > 0 {
			next = jobs.Running
		}
		missing = append(missing,
			jobs.Record{Kind: jobs.KindLaunching, At: r.At, Job: r.Job, N: n},
			jobs.Record{Kind: jobs.KindLost, At: r.At, Job: r.Job, N: n, Next: next,
				Reason: "the journal's record of it is damaged"})
	}
	if r.Kind != jobs.KindLaunching {
		missing = append(missing, jobs.Record{Kind: jobs.KindLaunching, At: r.At, Job: r.Job, N: r.N, Host: r.Host})
	}
	return missing
}
