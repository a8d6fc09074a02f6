package attempts

import (
	"archive/zip"
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// maxPackedFile bounds the files in packs, in bytes. An attempt with a larger one keeps its files: a
// pack saves files, not bytes.
const maxPackedFile = 256 << 10

// Packer moves the files of finished attempts of a run into packs, each of which takes the place of
// many files. See rundir.WithPacks for their form and for how they are read. Two packers of one
// run, for example of two dispatchers, do not disturb each other.
type Packer struct {
	Disk rundir.Disk
	Dir  string // holds attempts/
	Run  string // uid
	Host string // only attempts of this host are packed; "": those of all hosts
	// May reports whether the outcome of an attempt is recorded durably, and no launch of it can be
	// valid any more. Otherwise a host could start it again when its claim has gone into a pack.
	May func(jobs.AttemptID) bool
	// Least is the number of attempts in a pack below which none is made.
	Least int
	// Token returns the random part of a name. nil: crypto/rand.
	Token func() string
	// Temp returns the path in attempts/ of a pack that is being written. nil: SweepPacks knows it.
	Temp func() string

	reserved string // path of the file for the next pack; "": none
}

// Reserve keeps an empty file for the next pack, so that it can be written when no more files can be
// created: packing is what makes room for others then. Close removes the file.
func (p *Packer) Reserve() error {
	if p.reserved != "" {
		return nil
	}
	path := p.temp("000")
	f, err := rundir.WithoutPacks(p.Disk).OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	p.reserved = path
	return f.Close()
}

// Close removes what Reserve keeps.
func (p *Packer) Close() error {
	path := p.reserved
	if path == "" {
		return nil
	}
	p.reserved = ""
	return rundir.WithoutPacks(p.Disk).Remove(path)
}

// Among returns a function that reports whether ids, which are in order, have an attempt.
func Among(ids []jobs.AttemptID) func(jobs.AttemptID) bool {
	return func(id jobs.AttemptID) bool {
		_, is := slices.BinarySearchFunc(ids, id, jobs.AttemptID.Compare)
		return is
	}
}

// Shards returns the names of the directories of attempts that have files outside of packs.
func (p *Packer) Shards() ([]string, error) {
	l := list(rundir.WithoutPacks(p.Disk), p.Dir)
	return l.allShards(), l.errs.err()
}

// maxInPack is the maximum number of attempts in a pack. Readers refuse a pack with too many files.
const maxInPack = 4096

// Pack packs the attempts of a directory, and returns their number. Only attempts with a whole
// sentinel count: a claim without one, and a tombstone, guard against launches and stay. After any
// error, and after a loss of power at any point, each file is in its directory or in a whole pack.
func (p *Packer) Pack(shard string) (packed int, err error) {
	d, release := rundir.HoldDir(rundir.WithoutPacks(p.Disk), filepath.Join(p.Dir, rundir.AttemptsDir, shard))
	defer release()
	l := listShard(d, p.Dir, shard)
	var ids []jobs.AttemptID
	for _, id := range l.startedAttempts(shard) {
		if p.May(id) {
			ids = append(ids, id)
		}
	}
	if err := l.errs.err(); err != nil {
		return 0, err
	}
	for some := range slices.Chunk(ids, maxInPack) {
		if len(some) < p.Least {
			continue
		}
		n, perr := p.pack(l, shard, some)
		packed += n
		if perr != nil {
			return packed, perr
		}
	}
	return packed, nil
}

// temp returns the path of a pack of a directory that is being written.
func (p *Packer) temp(shard string) string {
	if p.Temp != nil {
		return p.Temp()
	}
	return filepath.Join(p.Dir, rundir.AttemptsDir, tempPrefix+shard+"."+p.token()+rundir.PackSuffix)
}

func (p *Packer) token() string {
	if p.Token != nil {
		return p.Token()
	}
	return rand.Text()
}

// pack packs attempts of a directory into one pack, and returns their number.
func (p *Packer) pack(l *listing, shard string, ids []jobs.AttemptID) (packed int, err error) {
	dir := filepath.Join(p.Dir, rundir.AttemptsDir)
	name := filepath.Join(dir, shard+"."+p.token()+rundir.PackSuffix)
	temp, mode := p.reserved, os.O_TRUNC
	if temp == "" {
		temp, mode = p.temp(shard), os.O_EXCL
	}
	w, packed, err := p.write(l, temp, mode, ids)
	if err != nil || packed < max(p.Least, 1) {
		return 0, errors.Join(err, p.discard(l.d, temp))
	}
	if err = l.d.Rename(temp, name); err == nil {
		p.reserved = ""
		err = l.d.SyncDir(dir)
	}
	if err == nil {
		if err = verify(l.d, name, w); err != nil {
			_ = l.d.Remove(name) // otherwise readers report it
		}
	}
	if err != nil {
		return 0, fmt.Errorf("packing the files of %s: %w", filepath.Join(dir, shard), err)
	}
	for _, file := range w.files {
		if rerr := l.d.Remove(filepath.Join(dir, shard, file)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return packed, err
}

// discard removes a pack that was not finished, or empties the reserved file.
func (p *Packer) discard(d rundir.Disk, temp string) error {
	if temp == p.reserved {
		f, err := d.OpenFile(temp, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
	return rundir.RemoveIfThere(d, temp)
}

// HasPacks reports whether files of attempts are in packs.
func HasPacks(d rundir.Disk, dir string) bool {
	names, _ := d.Names(filepath.Join(dir, rundir.AttemptsDir))
	return slices.ContainsFunc(names, func(name string) bool { _, ok := rundir.PackedName(name); return ok })
}

// tempPrefix begins the name of a pack that is being written. Readers ignore it.
const tempPrefix = ".new."

// SweepPacks removes packs that were being written for over a day.
func SweepPacks(d rundir.Disk, dir string, now time.Time) error {
	dir = filepath.Join(dir, rundir.AttemptsDir)
	names, err := d.Names(dir)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, ok := rundir.PackedName(strings.TrimPrefix(name, tempPrefix)); !ok ||
			!strings.HasPrefix(name, tempPrefix) {
			continue
		}
		if info, serr := d.Lstat(path); serr == nil && now.Sub(info.ModTime()) > 24*time.Hour {
			err = errors.Join(err, d.Remove(path))
		}
	}
	return err
}

// written describes a new pack.
type written struct {
	files []string // names, in the order of their removal: the status file, which shows that an attempt has
	// run, follows its outputs
	size int64
	sum  uint32 // IEEE
}

// Write adds to size and sum what follows in the pack.
func (w *written) Write(b []byte) (int, error) {
	w.size, w.sum = w.size+int64(len(b)), crc32.Update(w.sum, crc32.IEEETable, b)
	return len(b), nil
}

// write writes a pack with the files of attempts, and makes its content durable.
func (p *Packer) write(l *listing, path string, mode int, ids []jobs.AttemptID) (w written, packed int, err error) {
	f, err := l.d.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o600)
	if err != nil {
		return w, 0, err
	}
	out := bufio.NewWriterSize(io.MultiWriter(io.NewOffsetWriter(f, 0), &w), 1<<20)
	z := zip.NewWriter(out)
	for _, id := range ids {
		contents, ok := p.read(l, id)
		if !ok {
			continue
		}
		packed++
		for _, c := range contents {
			entry, err := z.CreateRaw(&zip.FileHeader{Name: c.name, Method: zip.Store, Modified: c.modified,
				CRC32:            crc32.ChecksumIEEE(c.data),
				CompressedSize64: uint64(len(c.data)), UncompressedSize64: uint64(len(c.data))})
			if err == nil {
				_, err = entry.Write(c.data)
			}
			if err != nil {
				return w, 0, errors.Join(err, f.Close())
			}
			w.files = append(w.files, c.name)
		}
	}
	err = z.Close()
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return w, packed, errors.Join(err, f.Close())
}

// content is a file of an attempt.
type content struct {
	name     string
	data     []byte
	modified time.Time
}

// read returns the files of an attempt that has finished, the status file last. ok is false if it has
// not, or if a file cannot be read or is too large. It reads the status file first: once that has a
// sentinel, the outputs are whole, and those of an attempt without one need not be read.
func (p *Packer) read(l *listing, id jobs.AttemptID) (all []content, ok bool) {
	for _, kind := range []jobs.File{jobs.FileStatus, jobs.FileOut, jobs.FileErr} {
		if kind != jobs.FileStatus && !l.isListed(id, kind) {
			continue
		}
		path := jobs.AttemptFile(p.Dir, id, kind)
		info, err := l.d.Lstat(path)
		if err != nil || info.Size() > maxPackedFile {
			return nil, false
		}
		data, size, err := rundir.ReadPart(l.d, path, 0, maxPackedFile) // a size in a cache may be out of date
		if err != nil || int64(len(data)) != size {
			return nil, false
		}
		if f := Decode(data, p.Run, id); kind == jobs.FileStatus && (f.State != Finished || f.Damaged ||
			p.Host != "" && p.Host != f.Host) {
			return nil, false
		}
		all = append(all, content{id.String() + "." + string(kind), data, info.ModTime()})
	}
	return append(all[1:], all[0]), true
}

// verify reads a pack again, and compares it with what was written.
func verify(d rundir.Disk, path string, w written) error {
	f, err := d.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var read written
	_, err = io.CopyBuffer(&read, io.NewSectionReader(f, 0, w.size+1), make([]byte, 1<<20))
	if err == nil && (read.size != w.size || read.sum != w.sum) {
		err = fmt.Errorf("%s has another content than was written", path)
	}
	return err
}

// Offers holds attempts of a run that is dispatched until their records are durable. It is not safe for
// concurrent use.
type Offers struct {
	waiting []Offer       // the oldest first
	retryAt time.Duration // see PutBack
}

// Offer holds attempts of one directory whose outcomes are recorded, and whose claims are not needed any more.
type Offer struct {
	Attempts  []jobs.AttemptID // in order
	Records   int64            // number of records of the dispatcher, with those of the outcomes
	WithFiles int              // number of attempts whose files keep launches waiting
}

// Add adds attempts, if there are any.
func (o *Offers) Add(f Offer) {
	if len(f.Attempts) > 0 {
		o.waiting = append(o.waiting, f)
	}
}

// PutBack adds attempts that Next has returned and that could not be packed. They are packed before all
// others, and nothing before retryAt, on the clock of Next.
func (o *Offers) PutBack(f Offer, retryAt time.Duration) {
	o.waiting, o.retryAt = slices.Insert(o.waiting, 0, f), retryAt
}

// Next removes the oldest attempts whose records are durable, and returns them. now is on a monotonic clock.
// durable is the number of records of the dispatcher that are durable.
func (o *Offers) Next(now time.Duration, durable int64) (f Offer, ok bool) {
	i := slices.IndexFunc(o.waiting, func(f Offer) bool { return durable >= f.Records })
	if i < 0 || now < o.retryAt {
		return f, false
	}
	f = o.waiting[i]
	o.waiting = slices.Delete(o.waiting, i, i+1)
	return f, true
}
