package files

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"dcs-tui/hosts/helper"
)

// Sum is the SHA-256 of a content.
type Sum [32]byte

// ParseSum parses the result of String.
func ParseSum(s string) (sum Sum, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(sum) {
		return sum, fmt.Errorf("%.80q is not a SHA-256 sum", s)
	}
	return Sum(b), nil
}

// String returns the sum in hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Entry is one file, directory, or symbolic link of a manifest.
type Entry struct {
	Path  string // relative to the job's directory, with slashes; any bytes but NUL
	Kind  byte   // 'f', 'd', or 'l'
	Exec  bool   // files: executable
	Size  int64  // files: bytes
	Mtime int64  // files: ns since the Unix epoch
	Sum   Sum    // files
	// Target is the target of a link. Of a file on a host it is the original, to which a
	// symbolic link is made, or "" for the copy in the Store.
	Target string
	Origin string // files: absolute path on the dispatcher's machine; "" in lists of returned files
}

// Manifest describes files, sorted by path, so that a directory precedes its content.
type Manifest []Entry

// Bytes returns the total size of the files, at most math.MaxInt64.
func (m Manifest) Bytes() (n int64) {
	for i := range m {
		n += m[i].Size
		if n < 0 {
			return math.MaxInt64
		}
	}
	return n
}

// manifestFile is the encoded form of a manifest, in the encoding of messages, which keeps
// any bytes in names.
type manifestFile struct {
	Files   Manifest
	Refused string // why there is no manifest: see Store.RefuseOwn
}

// Encode returns the manifest as bytes.
func (m Manifest) Encode() []byte { return helper.Append(nil, manifestFile{Files: m}) }

// Decode decodes the result of Encode. Truncated data and a path that leads out of the job's
// directory are errors. The error is a *SendError if the manifest was refused.
func Decode(b []byte) (Manifest, error) {
	var f manifestFile
	if err := helper.Decode(b, &f); err != nil {
		return nil, fmt.Errorf("the list of files is damaged: %w", err)
	}
	if f.Refused != "" {
		return nil, &SendError{f.Refused}
	}
	for i := range f.Files {
		if err := f.Files[i].check(); err != nil {
			return nil, fmt.Errorf("the list of files is damaged: %w: %.100q", err, f.Files[i].Path)
		}
	}
	return f.Files, nil
}

// check returns an error for an invalid entry.
func (e *Entry) check() error {
	if e.Kind != 'f' && e.Kind != 'd' && e.Kind != 'l' || e.Size < 0 ||
		strings.ContainsRune(e.Path, 0) || !filepath.IsLocal(e.Path) || filepath.Clean(e.Path) != e.Path {
		return errors.New("not an entry")
	}
	if e.Kind == 'l' && leadsOutside(e.Path, e.Target) {
		return errors.New("the link leads out of the job's directory")
	}
	return nil
}

// leadsOutside reports whether a symbolic link at path may lead out of the tree to which path is
// relative. ".." is accepted only at the beginning: a name before it may itself be a link.
func leadsOutside(path, target string) bool {
	if target == "" || filepath.IsAbs(target) {
		return true
	}
	up := 0
	for i, name := range strings.Split(target, "/") {
		if name == ".." {
			if up != i {
				return true
			}
			up++
		}
	}
	return up > strings.Count(path, "/")
}
