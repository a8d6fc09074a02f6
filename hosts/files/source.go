package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"dcs-tui/internal/regular"
)

// ErrChanged is the error for a file that was changed after its sum was computed.
var ErrChanged = errors.New("the file was changed while it was being sent")

// Source makes manifests of files of this machine and reads the contents that they list. It
// remembers sums by path, inode, size, and time. It is safe for concurrent use.
type Source struct {
	base    string   // absolute directory of relative paths
	omitted []string // absolute paths that are never sent, such as the run directory

	// Held while a sum is computed, because hosts ask for the same sums at the same time.
	hashing sync.Mutex

	mu           sync.Mutex
	sums         map[string]content // by absolute path
	pathOf       map[Sum]string     // of the contents in manifests
	watchedLists map[string]*watched
}

// content describes a file when its sum was computed.
type content struct {
	device, inode uint64
	size, mtime   int64
	sum           Sum
	// changedRecently reports that the file was read so soon after a change that another
	// change might have left the same time. Then the sum is computed again.
	changedRecently bool
}

// recentAge is longer than the resolution of times in file systems.
const recentAge = 2 * time.Second

// NewSource returns a Source for paths relative to base and for absolute paths.
func NewSource(base string, omit ...string) *Source {
	return &Source{base: base, omitted: omit, sums: map[string]content{}, pathOf: map[Sum]string{},
		watchedLists: map[string]*watched{}}
}

// CheckItems returns the error that Manifest would return for items, each PATH or PATH:DEST.
// It reads no file.
func (s *Source) CheckItems(items []string) error {
	_, err := s.listItems(items, false)
	return err
}

// splitItem returns the source of an item and its destination in the job's directory.
func (s *Source) splitItem(item string) (path, dest string, err error) {
	path = item
	if _, err := os.Lstat(s.absolute(item)); err != nil {
		if i := strings.LastIndexByte(item, ':'); i > 0 {
			path, dest = item[:i], item[i+1:]
		}
	}
	if strings.ContainsRune(item, 0) || path == "" {
		return "", "", fmt.Errorf("%q is not a path", item)
	}
	if dest == "" {
		dest = filepath.Clean(path)
		if filepath.IsAbs(dest) {
			if dest, err = filepath.Rel(s.base, dest); err != nil {
				return "", "", err
			}
		}
	}
	dest = filepath.Clean(dest)
	if !filepath.IsLocal(dest) {
		return "", "", fmt.Errorf("%s leads out of %s: give its place in the directory of the job, as in %s:%s", item,
			s.base, path, filepath.Base(path))
	}
	if _, err := os.Stat(s.absolute(path)); err != nil {
		if of, ok := errors.AsType[*fs.PathError](err); ok {
			err = of.Err
		}
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	return path, dest, nil
}

func (s *Source) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.base, path)
}

// Manifest returns a manifest of the current files of items. A symbolic link that leads out of
// the tree that is sent is an error. It reads files whose sums are not known, so it can take
// long.
func (s *Source) Manifest(items []string) (Manifest, error) { return s.listItems(items, true) }

func (s *Source) listItems(items []string, sums bool) (Manifest, error) {
	all := map[string]Entry{}
	for _, item := range items {
		path, dest, err := s.splitItem(item)
		if err != nil {
			return nil, err
		}
		w := &walk{source: s, item: dest, all: all, sums: sums}
		if err := w.add(path); err != nil {
			return nil, err
		}
	}
	m := make(Manifest, 0, len(all))
	for _, e := range all {
		m = append(m, e)
	}
	slices.SortFunc(m, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return m, nil
}

// walk adds one item to a manifest.
type walk struct {
	source *Source
	item   string // its destination in the job's directory
	all    map[string]Entry
	sums   bool
}

func (w *walk) add(path string) error {
	abs := w.source.absolute(path)
	var rules []ignoreRules
	rel, err := filepath.Rel(w.source.base, abs)
	if err == nil && filepath.IsLocal(rel) {
		// A path below base must not lead out of it through a symbolic link.
		root, err := os.OpenRoot(w.source.base)
		if err != nil {
			return err
		}
		_, err = root.Stat(rel)
		root.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if rel != "." { // rules of the directories above it apply, too
			dir := "."
			for _, name := range append([]string{"."}, strings.Split(filepath.Dir(rel), "/")...) {
				dir = filepath.Join(dir, name)
				if name == "." && len(rules) > 0 {
					continue
				}
				up, err := readIgnore(filepath.Join(w.source.base, dir), dir)
				if err != nil {
					return err
				}
				rules = append(rules, up)
			}
		}
	} else {
		rel = "."
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return err
	}
	st, err := os.Stat(real)
	if err != nil {
		return err
	}
	for d := filepath.Dir(w.item); d != "."; d = filepath.Dir(d) {
		w.all[d] = Entry{Path: d, Kind: 'd'}
	}
	if !st.IsDir() {
		return w.addFile(real, w.item, st)
	}
	return w.addDir(real, w.item, rel, rules)
}

// addDir adds a directory. real is its path, dest its destination, and rel the path to which
// ignore rules apply.
func (w *walk) addDir(real, dest, rel string, rules []ignoreRules) error {
	if dest != "." {
		w.all[dest] = Entry{Path: dest, Kind: 'd'}
	}
	own, err := readIgnore(real, rel)
	if err != nil {
		return err
	}
	rules = append(slices.Clip(rules), own)
	list, err := os.ReadDir(real)
	if err != nil {
		return err
	}
	for _, d := range list {
		abs, to, name := filepath.Join(real, d.Name()), filepath.Join(dest, d.Name()), filepath.Join(rel, d.Name())
		if slices.Contains(w.source.omitted, abs) || d.IsDir() && isNeverMoved(d.Name()) ||
			isIgnored(rules, name, d.IsDir()) {
			continue
		}
		st, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed in the meantime
		case err != nil:
			return err
		case st.IsDir():
			err = w.addDir(abs, to, name, rules)
		case st.Mode().IsRegular():
			err = w.addFile(abs, to, st)
		case st.Mode()&fs.ModeSymlink != 0:
			err = w.addLink(abs, to)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (w *walk) addFile(real, dest string, st fs.FileInfo) error {
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", real)
	}
	c := contentOf(st)
	if w.sums {
		var err error
		if c, err = w.source.contentSum(real, st); err != nil {
			return err
		}
	}
	w.all[dest] = Entry{Path: dest, Kind: 'f', Exec: st.Mode()&0o111 != 0, Size: c.size, Mtime: c.mtime, Sum: c.sum,
		Origin: real}
	return nil
}

func (w *walk) addLink(abs, dest string) error {
	target, err := os.Readlink(abs)
	if err != nil {
		return err
	}
	inItem, err := filepath.Rel(w.item, dest)
	if err != nil || leadsOutside(inItem, target) {
		return fmt.Errorf("the symbolic link %s leads out of what is sent, to %s: name it in %s, or send a copy", abs,
			target, ignoreFile)
	}
	w.all[dest] = Entry{Path: dest, Kind: 'l', Target: target}
	return nil
}

// maxIgnore bounds the size of an ignore file in bytes.
const maxIgnore = 1 << 20

// readIgnore reads the ignore file of a directory. It may be a link. A pipe or a device is refused.
func readIgnore(real, rel string) (ignoreRules, error) {
	path := filepath.Join(real, ignoreFile)
	b, err := regular.Read(os.OpenFile, path, maxIgnore)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ignoreRules{dir: rel}, nil
	case errors.Is(err, regular.ErrKind), errors.Is(err, regular.ErrSize):
		return ignoreRules{}, fmt.Errorf("%s is not a file of at most %d KiB", path, maxIgnore>>10)
	case err != nil:
		return ignoreRules{}, err
	}
	return parseIgnore(rel, string(b))
}

func contentOf(st fs.FileInfo) content {
	c := content{size: st.Size(), mtime: st.ModTime().UnixNano()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		c.device, c.inode = uint64(sys.Dev), sys.Ino
	}
	return c
}

// contentSum returns the content of a file. It computes the sum unless it is known.
func (s *Source) contentSum(real string, st fs.FileInfo) (content, error) {
	c := contentOf(st)
	if !s.isKnown(real, &c) {
		s.hashing.Lock()
		defer s.hashing.Unlock()
	}
	if !s.isKnown(real, &c) {
		f, err := regular.Open(os.OpenFile, real, syscall.O_NOFOLLOW)
		if err != nil {
			return c, err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return c, err
		}
		c.sum = Sum(h.Sum(nil))
		c.changedRecently = time.Since(st.ModTime()) < recentAge
		now, err := f.Stat()
		if err != nil {
			return c, err
		}
		if after := contentOf(now); after.size != c.size || after.mtime != c.mtime || after.inode != c.inode {
			return c, fmt.Errorf("%s: %w", real, ErrChanged)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[real], s.pathOf[c.sum] = c, real
	return c, nil
}

// isKnown sets the sum of c if the file has not changed since the sum was computed.
func (s *Source) isKnown(real string, c *content) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.sums[real]
	c.sum = was.sum
	return ok && !was.changedRecently && was == *c
}

// Read returns up to limit bytes of a content that a manifest lists. The error is ErrChanged
// if the file has changed.
func (s *Source) Read(sum Sum, offset int64, limit int) ([]byte, error) {
	s.mu.Lock()
	path, ok := s.pathOf[sum]
	was := s.sums[path]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("no file that is sent has the sum %s", sum)
	}
	f, err := regular.Open(os.OpenFile, path, syscall.O_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrChanged, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if now := contentOf(st); was.sum != sum || now.size != was.size || now.mtime != was.mtime ||
		now.inode != was.inode {
		return nil, fmt.Errorf("%s: %w", path, ErrChanged)
	}
	b := make([]byte, max(0, min(int64(limit), was.size-offset)))
	_, err = io.ReadFull(io.NewSectionReader(f, offset, int64(len(b))), b)
	return b, err
}

// watched is a list of items that is scanned for changes.
type watched struct {
	version  int  // changes with the manifest
	sum      Sum  // of the manifest, or of the error
	scanning bool // a scan is running
	nextAt   time.Time
}

// The next scan begins after scanInterval, and later if scans take more than 1/scanShare of
// the time.
const (
	scanInterval = 3 * time.Second
	scanShare    = 50
)

// Version returns a number that changes some seconds after the files of items have changed.
// It does not block.
func (s *Source) Version(items []string) int {
	key := strings.Join(items, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watchedLists[key]
	if w == nil {
		w = &watched{}
		s.watchedLists[key] = w
	}
	if now := time.Now(); !w.scanning && !now.Before(w.nextAt) {
		w.scanning = true
		go func() {
			m, err := s.Manifest(items)
			sum := Sum(sha256.Sum256(fmt.Append(m.Encode(), err)))
			s.mu.Lock()
			defer s.mu.Unlock()
			if sum != w.sum {
				w.sum = sum
				w.version++
			}
			w.scanning = false
			w.nextAt = time.Now().Add(max(scanInterval, scanShare*time.Since(now)))
		}()
	}
	return w.version
}
