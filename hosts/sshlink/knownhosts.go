package sshlink

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
)

// nowhere stands for the address of the far side: keys are looked up by name.
var nowhere = &net.TCPAddr{IP: net.IPv4zero}

// knownFiles reads sets of known_hosts files, each again when a file of it has changed.
type knownFiles struct {
	mu   sync.Mutex
	sets map[string]*known
}

// known is one set of files as read. It does not change.
type known struct {
	files  []string // those that exist
	stamps []stamp  // of all that were asked for
	db     *knownhosts.HostKeyDB
	names  map[string]string // temporary name of a cleaned copy: the file's own
	bad    []string          // a line each for people: FILE:LINE: what is wrong
}

func (k *knownFiles) load(files []string) (*known, error) {
	key := strings.Join(files, "\x00")
	stamps := make([]stamp, len(files))
	for i, f := range files {
		stamps[i] = stampOf(f)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if set := k.sets[key]; set != nil && slices.Equal(set.stamps, stamps) {
		return set, nil
	}
	set, err := readKnown(files)
	if err != nil {
		return nil, err
	}
	set.stamps = stamps
	if k.sets == nil {
		k.sets = map[string]*known{}
	}
	k.sets[key] = set
	return set, nil
}

// readKnown reads the files that exist. A line that cannot be read is named and
// left out, as OpenSSH does it; the library would give up every file.
func readKnown(files []string) (*known, error) {
	set := &known{names: map[string]string{}}
	for _, name := range files {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, os.ErrNotExist), name == os.DevNull:
		case err != nil:
			return nil, fmt.Errorf("known host keys cannot be read: %w", err)
		case !info.Mode().IsRegular(): // a pipe or a device may have no end
			return nil, fmt.Errorf("known host keys cannot be read: %s is not a regular file", name)
		default:
			set.files = append(set.files, name)
		}
	}
	var err error
	if set.db, err = knownhosts.NewDB(set.files...); err == nil {
		return set, nil
	}
	dir, err := os.MkdirTemp("", "dcs-known-")
	if err != nil {
		return nil, fmt.Errorf("known host keys: %w", err)
	}
	defer os.RemoveAll(dir)
	var copies []string
	for i, name := range set.files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("known host keys cannot be read: %w", err)
		}
		good, bad := cleanKnown(text)
		for _, b := range bad {
			set.bad = append(set.bad, name+":"+b)
		}
		copied := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(copied, good, 0o600); err != nil {
			return nil, fmt.Errorf("known host keys: %w", err)
		}
		set.names[copied] = name
		copies = append(copies, copied)
	}
	if set.db, err = knownhosts.NewDB(copies...); err != nil {
		return nil, fmt.Errorf("known host keys cannot be read: %w", err)
	}
	return set, nil
}

// own is the name of the file itself when file is our cleaned copy.
func (k *known) own(file string) string {
	if name := k.names[file]; name != "" {
		return name
	}
	return file
}

// place names the file and line of a known key.
func (k *known) place(file string, line int) string { return fmt.Sprintf("%s:%d", k.own(file), line) }
