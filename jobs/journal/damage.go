package journal

import "fmt"

// Report describes what a Follower found in the journal.
type Report struct {
	Records int   // folded
	Torn    int64 // bytes of a last line that was never completed, which is not damage
	Ignored int64 // bytes that were appended after later epochs had fixed their files

	// Damaged reports that facts are missing: a line could not be read or did not
	// fit. The caller must reconcile every job that is not terminal with claims
	// and sentinels, not only open attempts.
	Damaged  bool
	Warnings []string // for people, at most maxWarnings
	More     int      // number of further warnings
}

const maxWarnings = 20

func (p *Report) warn(format string, args ...any) {
	if len(p.Warnings) == maxWarnings {
		p.More++
		return
	}
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// NewerRecordError reports a whole record of a kind or with a field that this program does not know.
type NewerRecordError struct {
	Location string // file and line
	What     string // for people: the kind or the field
	Ref      string // what to type as RUN
}

// Error names the record's location and what is new, and describes what to do.
func (e *NewerRecordError) Error() string {
	return fmt.Sprintf("%s: a newer dcs-tui wrote a record %s, which this one does not know: use that version "+
		"(`dcs-tui status %s` there)", e.Location, e.What, e.Ref)
}

func (f *Follower) damage(format string, args ...any) {
	f.report.Damaged = true
	f.table.Damaged = true
	f.report.warn(format, args...)
}
