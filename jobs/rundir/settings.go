package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Settings is the content of run.toml: the user's settings when the run was created, which `resume`
// uses again. The file is written once and never changed.
type Settings struct {
	Version string    `toml:"version"` // of the program that made it
	UID     string    `toml:"uid"`     // random, file-name safe, at most 16 characters
	Name    string    `toml:"name"`
	Cwd     string    `toml:"cwd"` // working directory of jobs that set none
	Shell   string    `toml:"shell,omitempty"`
	Setup   string    `toml:"setup,omitempty"`
	Created time.Time `toml:"created"`

	// What every job gets and returns; see package hosts/files.
	Send      []string `toml:"send,omitempty"`
	Return    []string `toml:"return,omitempty"`
	KeepFiles bool     `toml:"keep_files,omitempty"`

	JobsFile      string `toml:"jobs_file,omitempty"`
	InventoryFile string `toml:"inventory_file,omitempty"`
	InventoryText string `toml:"inventory_text,omitempty"` // as read; "" without an inventory

	// Options are the flags as given. Values are strings, booleans, int64,
	// float64 or slices of them; durations are written as text ("30m").
	Options map[string]any `toml:"options,omitempty"`
	// EnvNames are the --env of the run, in the order given.
	EnvNames []EnvRef `toml:"env,omitempty"`
}

// EnvRef is one --env. For NAME=VALUE the value is stored. For NAME alone, whose value comes from
// the user's own environment, only a hash is stored, because the value may be a secret.
type EnvRef struct {
	Name   string `toml:"name"`
	Value  string `toml:"value,omitempty"`
	Hash   string `toml:"hash,omitempty"` // hex SHA-256 of the value at the start
	Stored bool   `toml:"stored,omitempty"`
}

func (a *Settings) encode() ([]byte, error) {
	for what, s := range map[string]string{"the directory": a.Cwd, "the inventory": a.InventoryText, "setup": a.Setup} {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("%s is not valid UTF-8 and cannot be kept in run.toml: %q", what, text.Shorten(s))
		}
	}
	for _, s := range slices.Concat(a.Send, a.Return) {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("--send or --return is not valid UTF-8 and cannot be kept in run.toml: %q",
				text.Shorten(s))
		}
	}
	var b bytes.Buffer
	b.WriteString("# What was asked of this run, for `dcs-tui resume`. Written by dcs-tui once, " +
		"when the run was made.\n")
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	if err := enc.Encode(a); err != nil {
		return nil, fmt.Errorf("what was asked cannot be written as TOML: %w", err)
	}
	return withChecksum(b.Bytes()), nil
}

// The first line of run.toml holds a checksum of the rest. Without it, a flipped bit could run
// other commands, and a lost end could change options. A file without this line was edited by the
// user.
const (
	sumPrefix = "# crc32c "
	sumSuffix = " of all below; take this line out if you change the file by hand\n"
)

// withChecksum returns a text below a line with its checksum.
func withChecksum(text []byte) []byte {
	return append([]byte(sumPrefix+jobs.Checksum(text)+sumSuffix), text...)
}

func verifyChecksum(b []byte) error {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	sum, ok := bytes.CutPrefix(first, []byte(sumPrefix))
	if !ok || len(sum) < 8 || jobs.Checksum(rest) == string(sum[:8]) {
		return nil
	}
	return errors.New("line 1: its checksum does not fit: the file is damaged, or was changed by hand " +
		"(if you did that and its content is right, remove its first line)")
}

func decodeSettings(b []byte) (*Settings, error) {
	if err := verifyChecksum(b); err != nil {
		return nil, err
	}
	a := new(Settings)
	found, err := toml.Decode(string(b), a)
	if err != nil {
		if bad, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, fmt.Errorf("line %d: %s", bad.Position.Line, bad.Message)
		}
		return nil, err
	}
	if keys := found.Undecoded(); len(keys) > 0 {
		return nil, fmt.Errorf("unknown key %q: if a newer dcs-tui wrote it, use that version", keys[0].String())
	}
	if a.UID == "" || len(a.UID) > 16 || CheckName(a.Name) != nil {
		return nil, fmt.Errorf("it names no run (uid %q, name %q)", text.Shorten(a.UID), text.Shorten(a.Name))
	}
	return a, nil
}

// InputFile exists in a run whose jobs are read one after another, for example from standard input.
// Its first word is an InputState. After InputBad, the error follows. Without the file, a run whose
// input was cut off would look like a finished one.
const InputFile = "input"

// OptionSource is the option in run.toml that records the source of the jobs that do not exist yet.
const OptionSource = "source"

// OptionJobs is the option in run.toml that records how many jobs the files of a run held. If a run
// directory has fewer, its creation was interrupted before any job was started.
const OptionJobs = "stored_jobs" // --jobs is another option

// OptionReturns is the option with the patterns of --return that name parameters. They are options
// of the jobs.
const OptionReturns = "job_returns"

// InputState is how far the input of a run was read.
type InputState string

const (
	InputOpen InputState = "open" // more jobs may follow
	// Read to its end and every job submitted, or canceled with the run.
	InputDone InputState = "done"
	InputBad  InputState = "bad" // read up to an error in it
)

// Input is how far the input of a run was read. The zero value means that the run has no input.
type Input struct {
	State InputState
	Fault string // of InputBad
	Again bool   // resume continues where it stopped
	// Of InputOpen: the run has all jobs that were given so far, and is kept open for more.
	IsKeptOpen bool
}

// keptOpen follows the state of an input with IsKeptOpen. Programs that do not know it ignore it.
const keptOpen = "kept"

// Cut reports whether jobs may be missing from the run.
func (i Input) Cut() bool { return i.State == InputOpen || i.State == InputBad }

// WriteInput stores durably how far the input was read.
func (r *Run) WriteInput(i Input) error {
	msg := string(i.State) + text.If(i.IsKeptOpen, " "+keptOpen)
	msg += text.If(i.Fault != "", " "+text.Clean(strings.ReplaceAll(i.Fault, "\n", "; "), 0))
	return Replace(r.Disk, r.Path(InputFile), []byte(msg+"\n"))
}

// ReadInput returns how far the input was read.
func (r *Run) ReadInput() (Input, error) {
	b, err := r.ReadListed(InputFile)
	if err != nil || b == nil {
		return Input{}, err
	}
	state, fault, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	again := r.Settings.Options[OptionSource] != nil
	switch i := (Input{State: InputState(state), Again: again}); i.State {
	case InputOpen:
		i.IsKeptOpen = fault == keptOpen
		return i, nil
	case InputDone, InputBad:
		i.Fault = fault
		return i, nil
	}
	return Input{State: InputOpen, Again: again}, nil // an unknown state does not prove an end
}

// InventoryFile holds the inventory of the last resume, as read, if it differs from
// that of run.toml. Later commands that reach hosts need the hosts that were added.
const InventoryFile = "inventory.toml"

// KeepInventory makes text the inventory of the run. An empty text means this machine
// alone.
func (r *Run) KeepInventory(text string) error {
	if err := Replace(r.Disk, r.Path(InventoryFile), withChecksum([]byte(text))); err != nil {
		return fmt.Errorf("cannot keep the inventory in the run directory: %w", err)
	}
	return nil
}

// Inventory returns the text of the run's inventory, and the file name to use in
// messages. The text is empty for this machine alone.
func (r *Run) Inventory() (text, file string, err error) {
	path := r.Path(InventoryFile)
	b, err := r.ReadListed(InventoryFile)
	if err == nil && b == nil {
		return r.Settings.InventoryText, r.Settings.InventoryFile, nil
	}
	if err == nil && len(b) == 0 {
		err = errors.New("it is empty")
	}
	if err == nil {
		err = verifyChecksum(b)
	}
	if err != nil {
		return "", "", fmt.Errorf("%s: %w (remove it, and the inventory of run.toml counts)", path, err)
	}
	if bytes.HasPrefix(b, []byte(sumPrefix)) {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return string(b), path, nil
}

// HostDirSuffix is the suffix of the file hosts/<host>.dir. The file holds the directory in which a
// host that does not share the run directory keeps its attempts, as "host:directory". Readers thus
// know where the outputs are without a connection to the host.
const HostDirSuffix = ".dir"

// maxHostDir bounds the size of such a file, in bytes.
const maxHostDir = 8192

// WriteHostDir stores the directory in which a host keeps its attempts.
func (r *Run) WriteHostDir(host, dir string) error {
	return Replace(r.Disk, r.Path(HostsDir, host+HostDirSuffix), []byte(host+":"+dir+"\n"))
}

// HostDirs returns "host:directory" for each host that does not share the run directory.
func (r *Run) HostDirs() map[string]string {
	found := map[string]string{}
	names, err := r.Disk.Names(r.Path(HostsDir))
	if err != nil {
		return found
	}
	for _, name := range names {
		if host, ok := strings.CutSuffix(name, HostDirSuffix); ok {
			if b, err := r.readChecked(r.Path(HostsDir, name), maxHostDir); err == nil {
				found[host] = strings.TrimSuffix(string(b), "\n")
			}
		}
	}
	return found
}

// FormatFile holds the version of jobs.FormatRun that a program must know to use the run, and the
// program that wrote the file: "1 v0.1.0". A run without it is of version 0, which every
// program reads.
const FormatFile = "format"

func formatText(program string) []byte {
	return fmt.Appendf(nil, "%d %s\n", jobs.FormatRun.Version, text.Clean(program, 200))
}

// CheckFormat returns an error if a newer program has made or resumed the run. Nothing else of such
// a run may be read or written.
func (r *Run) CheckFormat() error {
	_, err := r.readFormat()
	return err
}

// UpgradeFormat is CheckFormat for a program that is about to dispatch the run. Older programs
// refuse the run from then on.
func (r *Run) UpgradeFormat(program string) error {
	v, err := r.readFormat()
	if err == nil && v < jobs.FormatRun.Version {
		err = Replace(r.Disk, r.Path(FormatFile), formatText(program))
	}
	return err
}

func (r *Run) readFormat() (version int, err error) {
	b, err := r.ReadListed(FormatFile)
	if b == nil || err != nil {
		return 0, err
	}
	word, program, _ := bytes.Cut(bytes.TrimSpace(b), []byte(" "))
	version, err = strconv.Atoi(string(word))
	switch {
	case err != nil || version < 1:
		return 0, fmt.Errorf("%s: it is damaged; if no newer dcs-tui has used the run, write %q into it",
			r.Path(FormatFile), strconv.Itoa(jobs.FormatRun.Version))
	case version > jobs.FormatRun.Version:
		return 0, &formatError{
			r.Path(FormatFile),
			text.Line(string(program)),
			jobs.VersionError{Format: jobs.FormatRun, Found: version},
		}
	}
	return version, nil
}

// formatError reports a run of a newer program.
type formatError struct {
	path, program string
	cause         jobs.VersionError
}

func (e *formatError) Error() string {
	program := "a newer dcs-tui" + text.If(e.program != "", " ("+e.program+")")
	return fmt.Sprintf("%s: %s uses the run: it has version %d, and this dcs-tui knows version %d: "+
		"use the newer one; nothing was changed",
		e.path, program, e.cause.Found, e.cause.Format.Version)
}

func (e *formatError) Unwrap() error { return &e.cause }
