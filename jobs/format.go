package jobs

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Format is a format in which programs of several versions meet: a file that outlives the program
// that wrote it, or a protocol. docs/reference/formats.md states which versions a program reads.
type Format struct {
	Name    string // for people
	Version int    // that this program reads and writes
}

// The formats. A new one also belongs in Formats.
var (
	// FormatRun covers everything in a run directory. The file rundir.FormatFile holds its version,
	// which every command checks before it reads anything else. Raise it with any change that an
	// older program must not ignore: a kind or a field of a record, an option of a job, a setting.
	FormatRun      = Format{"the run", 2}
	FormatSpecs    = Format{"jobs.jsonl", 2}
	FormatOwner    = Format{"the file owner", 1}
	FormatLive     = Format{"live.json", 2}
	FormatMirror   = Format{"mirror.json", 1}
	FormatStandby  = Format{"the file of a standby", 1}
	FormatClaim    = Format{"the claim of an attempt", 3}
	FormatSentinel = Format{"the sentinel of an attempt", 1}
	FormatTemplate = Format{"the template in run.toml", 1}
	// Requests are left by programs that do not dispatch the run.
	FormatRequest = Format{"the request", 1}
	FormatStream  = Format{"the protocol of run -", 1}
	FormatSocket  = Format{"the socket protocol", 2}
	// The helpers and supervisors of a run share a spool, also those of two versions.
	FormatSpool       = Format{"the spool", 5}
	FormatSpoolJob    = Format{"a job in the spool", 5}
	FormatSpoolConfig = Format{"the configuration in the spool", 7}
	// The runs of all users and versions meet in share_dir.
	FormatSlots = Format{"a claim of slots", 3}
	FormatCores = Format{"a claim of cores", 1}
	FormatUsage = Format{"a record of usage", 1}
	// The programs of a user meet in the state directory.
	FormatRunIndex = Format{"an entry of the index of runs", 1}
)

// Formats lists all formats. A test checks that each of them is refused in a newer version.
var Formats = []*Format{&FormatRun, &FormatSpecs, &FormatOwner, &FormatLive, &FormatMirror, &FormatStandby,
	&FormatClaim, &FormatSentinel, &FormatTemplate, &FormatRequest, &FormatStream, &FormatSocket,
	&FormatSpool, &FormatSpoolJob, &FormatSpoolConfig, &FormatSlots, &FormatCores,
	&FormatUsage, &FormatRunIndex}

// VersionError reports a version of a format that this program does not know.
type VersionError struct {
	Format Format
	Found  int
}

// Error names both versions and the program to use.
func (e *VersionError) Error() string {
	who := "newer"
	if e.Found < e.Format.Version {
		who = "older"
	}
	return fmt.Sprintf("%s has version %d, and this dcs-tui knows version %d: use the %s dcs-tui that wrote it",
		e.Format.Name, e.Found, e.Format.Version, who)
}

// Check returns a *VersionError if this program does not know version v.
func (f Format) Check(v int) error {
	if v == f.Version {
		return nil
	}
	return &VersionError{f, v}
}

// checkFields returns an error that replaces err, the error of reading a record or a specification
// whose checksum matches, if it has a field that this program does not know. That is not damage,
// because a newer program wrote it.
func checkFields(err error) error {
	if !errors.Is(err, json.ErrUnknownName) {
		return nil
	}
	var bad *json.SemanticError
	for errors.As(err, &bad) { // the last one is about the field
		err = bad.Err
	}
	return &UnknownFieldError{bad.JSONPointer.LastToken()}
}

// UnknownFieldError reports a field that only a newer program knows.
type UnknownFieldError struct{ Name string }

// Error names the field and the program to use.
func (e *UnknownFieldError) Error() string {
	return fmt.Sprintf("a newer dcs-tui wrote the field %.40q, which this one does not know: use that version", e.Name)
}
