package files

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
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

// Encode returns the manifest as text, one line an entry. Any bytes in names survive.
func (m Manifest) Encode() []byte {
	var b []byte
	for i := range m {
		e := &m[i]
		b = append(b, e.Kind, ' ')
		b = strconv.AppendBool(b, e.Exec)
		b = strconv.AppendInt(append(b, ' '), e.Size, 10)
		b = strconv.AppendInt(append(b, ' '), e.Mtime, 10)
		b = append(append(b, ' '), e.Sum.String()...)
		for _, s := range []string{e.Path, e.Target, e.Origin} {
			b = strconv.AppendQuoteToASCII(append(b, ' '), s)
		}
		b = append(b, '\n')
	}
	return append(b, "end\n"...)
}

// Decode reads what Encode wrote. A path that leads out of the job's directory is an
// error, and so is a text that was cut off.
func Decode(b []byte) (Manifest, error) {
	body, ok := bytes.CutSuffix(b, []byte("end\n"))
	if !ok || len(body) > 0 && body[len(body)-1] != '\n' {
		return nil, fmt.Errorf("the list of files is cut off")
	}
	var m Manifest
	for line := range bytes.Lines(body) {
		e, err := decodeEntry(strings.TrimSuffix(string(line), "\n"))
		if err != nil {
			return nil, fmt.Errorf("the list of files is damaged: %w: %.100q", err, line)
		}
		m = append(m, e)
	}
	return m, nil
}

func decodeEntry(line string) (e Entry, err error) {
	f := strings.SplitN(line, " ", 6)
	if len(f) != 6 || len(f[0]) != 1 || !strings.Contains("fdl", f[0]) {
		return e, fmt.Errorf("not an entry")
	}
	e.Kind = f[0][0]
	if e.Exec, err = strconv.ParseBool(f[1]); err != nil {
		return e, err
	}
	if e.Size, err = strconv.ParseInt(f[2], 10, 64); err != nil {
		return e, err
	}
	if e.Mtime, err = strconv.ParseInt(f[3], 10, 64); err != nil {
		return e, err
	}
	if e.Sum, err = ParseSum(f[4]); err != nil {
		return e, err
	}
	rest := f[5]
	for _, to := range []*string{&e.Path, &e.Target, &e.Origin} {
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return e, err
		}
		*to, _ = strconv.Unquote(q) // a quoted prefix
		rest = strings.TrimPrefix(rest[len(q):], " ")
	}
	if rest != "" || e.Size < 0 || strings.ContainsRune(e.Path, 0) || !filepath.IsLocal(e.Path) || filepath.Clean(e.Path) != e.Path {
		return e, fmt.Errorf("not an entry")
	}
	if e.Kind == 'l' && leadsOut(e.Path, e.Target) {
		return e, fmt.Errorf("the link leads out of the job's directory")
	}
	return e, nil
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
