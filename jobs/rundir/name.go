package rundir

import (
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name of a run, in bytes.
const MaxName = 64

// CheckName says what is wrong with a run's name, nil if nothing. A name is one
// directory below dcs-runs and is shown on screens.
func CheckName(name string) error {
	why := ""
	switch {
	case name == "":
		why = "it is empty"
	case len(name) > MaxName:
		why = fmt.Sprintf("it is longer than %d bytes", MaxName)
	case strings.ContainsRune(name, '/'):
		why = "it has a slash (use --run-dir to choose the directory)"
	case strings.Trim(name, ".") == "":
		why = "it is made of dots alone"
	case name[0] == '-':
		why = "it begins with a dash and would be read as an option"
	case !utf8.ValidString(name):
		why = "it is not valid UTF-8"
	case strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0:
		why = "it has a control character"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%q cannot be the name of a run: %s", name, why)
}

// DefaultName makes a name from the jobs file and the time: "sweep-20260314-1502".
func DefaultName(jobsFile string, now time.Time) string {
	base := filepath.Base(jobsFile)
	if jobsFile == "" || jobsFile == "-" {
		base = "stdin"
	}
	if ext := filepath.Ext(base); ext != base {
		base = strings.TrimSuffix(base, ext)
	}
	var b strings.Builder
	for _, r := range base {
		switch {
		case b.Len() >= 40:
		case r < utf8.RuneSelf && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._+", r)):
			b.WriteRune(r)
		case b.Len() > 0: // never first: a name does not begin with a dash
			b.WriteByte('-')
		}
	}
	if strings.Trim(b.String(), ".-") == "" {
		b.Reset()
		b.WriteString("run")
	}
	return b.String() + now.Format("-20060102-1504")
}

// uidLetters leaves out 0, 1, l and o, which people mix up; 32 of them, so that
// a random byte maps onto them evenly.
const uidLetters = "abcdefghijkmnpqrstuvwxyz23456789"

// newUID returns 12 random letters: file-name safe, 60 bits.
func newUID(random io.Reader) (string, error) {
	b, err := randomBytes(random, 12)
	for i := range b {
		b[i] = uidLetters[b[i]%32]
	}
	return string(b), err
}

func randomHex(random io.Reader, n int) (string, error) {
	b, err := randomBytes(random, n)
	return hex.EncodeToString(b), err
}

func randomBytes(random io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(random, b); err != nil { // never with crypto/rand
		return nil, fmt.Errorf("no random bytes: %w", err)
	}
	return b, nil
}
