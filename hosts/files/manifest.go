package files

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/hosts/helper"
	"dcs-tui/jobs/results"
)

// Sum is the SHA-256 of a content.
type Sum [32]byte

// ParseSum reads what String returns.
func ParseSum(s string) (sum Sum, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(sum) {
		return sum, fmt.Errorf("%.80q is not a SHA-256 sum", s)
	}
	return Sum(b), nil
}

func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Entry is one file, directory, or symbolic link of a manifest.
type Entry struct {
	Path  string // below the job's directory, with slashes; any bytes but NUL
	Kind  byte   // 'f', 'd', or 'l'
	Exec  bool   // files: may be executed
	Size  int64  // files: bytes
	Mtime int64  // files: ns since the Unix epoch
	Sum   Sum    // files
	// Target is where a link leads. Of a file on a host: the original, to which a symbolic
	// link is to lead; "" for the copy in the Store.
	Target string
	Origin string // files: where it lies on our side, absolute; "" in lists of returned files
}

// Manifest describes files, in the order of their paths: a directory precedes what it holds.
type Manifest []Entry

// Bytes returns the size of all files together.
func (m Manifest) Bytes() (n int64) {
	for i := range m {
		n += m[i].Size
	}
	return n
}

// manifestFile is how a manifest is encoded, in the way of messages: any bytes in names
// survive.
type manifestFile struct {
	Files   Manifest
	Refused string // why there is none: see Store.RefuseOwn
}

// Encode returns the manifest as bytes.
func (m Manifest) Encode() []byte { return helper.Append(nil, manifestFile{Files: m}) }

// Decode reads what Encode wrote. A path that leads out of the job's directory is an
// error, and so are bytes that were cut off. The error is a *SendError if there is no
// manifest because our side cannot send the files.
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

// check returns an error for what is no entry of a manifest.
func (e *Entry) check() error {
	if e.Kind != 'f' && e.Kind != 'd' && e.Kind != 'l' || e.Size < 0 ||
		strings.ContainsRune(e.Path, 0) || !filepath.IsLocal(e.Path) || filepath.Clean(e.Path) != e.Path {
		return errors.New("not an entry")
	}
	if e.Kind == 'l' && leadsOut(e.Path, e.Target) {
		return errors.New("the link leads out of the job's directory")
	}
	return nil
}

// leadsOut reports whether a symbolic link at path may lead out of the tree that path is
// relative to. ".." is accepted only in front: after a name it would count from wherever
// that name, which may be a link itself, leads.
func leadsOut(path, target string) bool {
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

// Progress describes how far a transfer is: "12 MiB of 1.0 GiB, 8.1 MiB/s".
func Progress(got, total int64, took time.Duration) string {
	text := results.HumanBytes(got) + " of " + results.HumanBytes(total)
	if took > time.Second && got > 0 {
		text += fmt.Sprintf(", %s/s", results.HumanBytes(int64(float64(got)/took.Seconds())))
	}
	return text
}
