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
)

// ErrChanged is returned for a file that was changed after its sum was taken.
var ErrChanged = errors.New("the file was changed while it was being sent")

// Source makes manifests of files of this machine and reads the contents that stand in
// them. It remembers sums by path, inode, size, and time. Safe for concurrent use.
type Source struct {
	base string   // absolute: what relative paths are relative to
	omit []string // absolute paths that are never sent, such as the run directory

	hashing sync.Mutex // held while a file is read: hosts that connect together ask for the same sums

	mu    sync.Mutex
	known map[string]content // by absolute path
	path  map[Sum]string     // where a content that stands in a manifest lies
	sets  map[string]*watched
}

// content is what a file held when its sum was taken.
type content struct {
	dev, ino    uint64
	size, mtime int64
	sum         Sum
	// young: it was read so soon after the last change that the next one may leave the same
	// time. Its sum is not believed again.
	young bool
}

// youngFor is longer than the steps in which file systems count times.
const youngFor = 2 * time.Second

// NewSource returns a Source of what lies below base, and of absolute paths.
func NewSource(base string, omit ...string) *Source {
	return &Source{base: base, omit: omit, known: map[string]content{}, path: map[Sum]string{}, sets: map[string]*watched{}}
}

// CheckItems reports what is wrong with items, PATH or PATH:DEST, as Manifest would. It
// reads no file.
func (s *Source) CheckItems(items []string) error {
	_, err := s.list(items, false)
	return err
}

// split returns the source of an item and its place below the job's directory.
func (s *Source) split(item string) (path, dest string, err error) {
	path = item
	if _, err := os.Lstat(s.abs(item)); err != nil {
		if i := strings.LastIndexByte(item, ':'); i > 0 {
			path, dest = item[:i], item[i+1:]
		}
	}
	if strings.ContainsRune(item, 0) || path == "" {
		return "", "", fmt.Errorf("%q is not a path", item)
	}
	if dest == "" {
		if dest = filepath.Clean(path); filepath.IsAbs(dest) {
			if dest, err = filepath.Rel(s.base, dest); err != nil {
				return "", "", err
			}
		}
	}
	if dest = filepath.Clean(dest); !filepath.IsLocal(dest) {
		return "", "", fmt.Errorf("%s leads out of %s: give its place in the directory of the job, as in %s:%s", item, s.base, path, filepath.Base(path))
	}
	if _, err := os.Stat(s.abs(path)); err != nil {
		var of *fs.PathError
		if errors.As(err, &of) {
			err = of.Err
		}
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	return path, dest, nil
}

func (s *Source) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.base, path)
}

// Manifest describes what the items name now. Symbolic links in it that lead out of the
// tree that is sent are an error. It reads files whose sums it does not know, so it can
// take long.
func (s *Source) Manifest(items []string) (Manifest, error) { return s.list(items, true) }

func (s *Source) list(items []string, sums bool) (Manifest, error) {
	all := map[string]Entry{}
	for _, item := range items {
		path, dest, err := s.split(item)
		if err != nil {
			return nil, err
		}
		w := &walk{s: s, item: dest, all: all, sums: sums}
		if err := w.begin(path); err != nil {
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
	s    *Source
	item string // its place below the job's directory
	all  map[string]Entry
	sums bool
}

func (w *walk) begin(path string) error {
	abs := w.s.abs(path)
	real := abs
	var rules []ignoreRules
	rel, err := filepath.Rel(w.s.base, abs)
	if err == nil && filepath.IsLocal(rel) {
		// What lies below base must not lead out of it through a symbolic link.
		root, err := os.OpenRoot(w.s.base)
		if err != nil {
			return err
		}
		_, err = root.Stat(rel)
		root.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if rel != "." { // rules of the directories above it count, too
			dir := "."
			for _, name := range append([]string{"."}, strings.Split(filepath.Dir(rel), "/")...) {
				if dir = filepath.Join(dir, name); name == "." && len(rules) > 0 {
					continue
				}
				up, err := readIgnore(filepath.Join(w.s.base, dir), dir)
				if err != nil {
					return err
				}
				rules = append(rules, up)
			}
		}
	} else {
		rel = "."
	}
	if real, err = filepath.EvalSymlinks(abs); err != nil {
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
		return w.file(real, w.item, st)
	}
	return w.dir(real, w.item, rel, rules)
}

// dir adds a directory: real is where it lies, dest its place, and rel what ignore rules
// know it by.
func (w *walk) dir(real, dest, rel string, rules []ignoreRules) error {
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
		if slices.Contains(w.s.omit, abs) || d.IsDir() && (d.Name() == ".git" || d.Name() == "dcs-runs") || ignored(rules, name, d.IsDir()) {
			continue
		}
		st, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed meanwhile
		case err != nil:
			return err
		case st.IsDir():
			err = w.dir(abs, to, name, rules)
		case st.Mode().IsRegular():
			err = w.file(abs, to, st)
		case st.Mode()&fs.ModeSymlink != 0:
			err = w.link(abs, to)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (w *walk) file(real, dest string, st fs.FileInfo) error {
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", real)
	}
	c := contentOf(st)
	if w.sums {
		var err error
		if c, err = w.s.sum(real, st); err != nil {
			return err
		}
	}
	w.all[dest] = Entry{Path: dest, Kind: 'f', Exec: st.Mode()&0o111 != 0, Size: c.size, Mtime: c.mtime, Sum: c.sum, Origin: real}
	return nil
}

func (w *walk) link(abs, dest string) error {
	target, err := os.Readlink(abs)
	if err != nil {
		return err
	}
	inItem, err := filepath.Rel(w.item, dest)
	if err != nil || leadsOut(inItem, target) {
		return fmt.Errorf("the symbolic link %s leads out of what is sent, to %s: name it in %s, or send a copy", abs, target, ignoreFile)
	}
	w.all[dest] = Entry{Path: dest, Kind: 'l', Target: target}
	return nil
}

func readIgnore(real, rel string) (ignoreRules, error) {
	b, err := os.ReadFile(filepath.Join(real, ignoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ignoreRules{dir: rel}, nil
	}
	if err != nil {
		return ignoreRules{}, err
	}
	return parseIgnore(rel, string(b))
}

func contentOf(st fs.FileInfo) content {
	c := content{size: st.Size(), mtime: st.ModTime().UnixNano()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		c.dev, c.ino = uint64(sys.Dev), sys.Ino
	}
	return c
}

// sum returns the sum of a file, from memory if the file has not changed.
func (s *Source) sum(real string, st fs.FileInfo) (content, error) {
	c := contentOf(st)
	if !s.isKnown(real, &c) {
		s.hashing.Lock()
		defer s.hashing.Unlock()
	}
	if !s.isKnown(real, &c) {
		f, err := openFile(real)
		if err != nil {
			return c, err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return c, err
		}
		c.sum = Sum(h.Sum(nil))
		c.young = time.Since(st.ModTime()) < youngFor
		now, err := f.Stat()
		if err != nil {
			return c, err
		}
		if after := contentOf(now); after.size != c.size || after.mtime != c.mtime || after.ino != c.ino {
			return c, fmt.Errorf("%s: %w", real, ErrChanged)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[real], s.path[c.sum] = c, real
	return c, nil
}

// isKnown completes the content of a file from memory, if the file has not changed.
func (s *Source) isKnown(real string, c *content) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.known[real]
	c.sum = was.sum
	return ok && !was.young && was == *c
}

// openFile opens a regular file, and neither follows a link nor waits for a pipe.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return f, nil
}

// Read returns up to limit bytes of a content that stands in a manifest. It returns
// ErrChanged if the file is not what it was.
func (s *Source) Read(sum Sum, offset int64, limit int) ([]byte, error) {
	s.mu.Lock()
	path, ok := s.path[sum]
	was := s.known[path]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("no file that is sent has the sum %s", sum)
	}
	f, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrChanged, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if now := contentOf(st); was.sum != sum || now.size != was.size || now.mtime != was.mtime || now.ino != was.ino {
		return nil, fmt.Errorf("%s: %w", path, ErrChanged)
	}
	b := make([]byte, max(0, min(int64(limit), was.size-offset)))
	_, err = io.ReadFull(io.NewSectionReader(f, offset, int64(len(b))), b)
	return b, err
}

// watched is a list of items whose manifest is made again from time to time.
type watched struct {
	version  int // changes with the manifest
	text     string
	scanning bool
	next     time.Time
}

const (
	scanEvery = 3 * time.Second
	scanShare = 50 // a scan may take at most one part in so many of the time
)

// Version returns a number that changes when what the items name has changed, some
// seconds later. It does not block.
func (s *Source) Version(items []string) int {
	key := strings.Join(items, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.sets[key]
	if w == nil {
		w = &watched{}
		s.sets[key] = w
	}
	if now := time.Now(); !w.scanning && !now.Before(w.next) {
		w.scanning = true
		go func() {
			m, err := s.Manifest(items)
			text := fmt.Sprint(err)
			if err == nil {
				text = string(m.Encode())
			}
			sum := sha256.Sum256([]byte(text))
			s.mu.Lock()
			defer s.mu.Unlock()
			if text := string(sum[:]); text != w.text {
				w.text = text
				w.version++
			}
			w.scanning = false
			w.next = time.Now().Add(max(scanEvery, scanShare*time.Since(now)))
		}()
	}
	return w.version
}
