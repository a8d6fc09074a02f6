package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Asked is run.toml: what the user asked for when the run was made, so that
// `resume` asks for the same. It is written once and never changed.
type Asked struct {
	Version string    `toml:"version"` // of the program that made it
	UID     string    `toml:"uid"`     // random, file-name safe, at most 16 characters
	Name    string    `toml:"name"`
	Cwd     string    `toml:"cwd"` // where jobs run unless they say otherwise
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

// EnvRef is one --env. NAME=VALUE is stored; of a NAME handed on from the user's
// own environment only the hash is, because it may be a secret.
type EnvRef struct {
	Name   string `toml:"name"`
	Value  string `toml:"value,omitempty"`
	Hash   string `toml:"hash,omitempty"` // hex SHA-256 of the value at the start
	Stored bool   `toml:"stored,omitempty"`
}

func (a *Asked) encode() ([]byte, error) {
	for what, s := range map[string]string{"the directory": a.Cwd, "the inventory": a.InventoryText, "setup": a.Setup} {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("%s is not valid UTF-8 and cannot be kept in run.toml: %q", what, cut(s))
		}
	}
	for _, s := range slices.Concat(a.Send, a.Return) {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("--send or --return is not valid UTF-8 and cannot be kept in run.toml: %q", cut(s))
		}
	}
	var b bytes.Buffer
	b.WriteString("# What was asked of this run, for `dcs-tui resume`. Written by dcs-tui once, when the run was made.\n")
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	if err := enc.Encode(a); err != nil {
		return nil, fmt.Errorf("what was asked cannot be written as TOML: %w", err)
	}
	return append(fmt.Appendf(nil, "%s%08x%s", sumPrefix, crc32.Checksum(b.Bytes(), castagnoli), sumSuffix), b.Bytes()...), nil
}

// The first line of run.toml holds a checksum of the rest: a flipped bit in it
// would have other commands run, and a lost end other options be taken. A file
// without that line is one that a person has changed.
const (
	sumPrefix = "# crc32c "
	sumSuffix = " of all below; take this line out if you change the file by hand\n"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checkAsked(b []byte) error {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	sum, ok := bytes.CutPrefix(first, []byte(sumPrefix))
	if !ok || len(sum) < 8 || fmt.Sprintf("%08x", crc32.Checksum(rest, castagnoli)) == string(sum[:8]) {
		return nil
	}
	return errors.New("line 1: its checksum does not fit: the file is damaged, or was changed by hand (if you did that, and all in it is right, take out its first line)")
}

func decodeAsked(b []byte) (*Asked, error) {
	if err := checkAsked(b); err != nil {
		return nil, err
	}
	a := new(Asked)
	if err := toml.Unmarshal(b, a); err != nil {
		var bad toml.ParseError
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("line %d: %s", bad.Position.Line, bad.Message)
		}
		return nil, err
	}
	if a.UID == "" || len(a.UID) > 16 || CheckName(a.Name) != nil {
		return nil, fmt.Errorf("it names no run (uid %q, name %q)", cut(a.UID), cut(a.Name))
	}
	return a, nil
}

func cut(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
