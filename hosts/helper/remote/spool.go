//go:build linux

package remote

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/jobs"
)

// spool names the files of a host's spool. Old supervisors and new helpers share its
// format, so a change needs a new controlMagic.
type spool struct{ dir string }

func (s spool) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

const (
	dirIn    = "in"    // waiting specs: GENERATION-ATTEMPT
	dirTaken = "taken" // specs that a supervisor has taken: ATTEMPT@SLOT.PID.START
	dirFree  = "free"  // files of finished specs, for reuse
	dirStop  = "stop"  // ATTEMPT: requests that the supervisor ends it as "stopped"
	// Status files of ended attempts that could not be written to their place.
	dirDone = "done"
	// ATTEMPT: what the job wrote to DCS_PROGRESS; ATTEMPT.report: to DCS_REPORT.
	dirProgress = "progress"
	dirScript   = "script"  // commands too long for an argument
	dirLog      = "log"     // standard error of supervisors
	dirHelpers  = "helpers" // helpers that serve the spool, or did: GENERATION.PID.START
	fileControl = "control" // the control page
	fileReports = "reports" // FIFO from the supervisors to the helper
	fileBoot    = "boot"    // id of the boot in which the spool was last used
)

// makeSpool creates base/runs/run/host unless it exists. Nobody else may enter any level.
func makeSpool(base, run, host string) (spool, error) {
	dir := base
	for _, part := range []string{"runs", run, host} {
		dir = filepath.Join(dir, part)
		if err := ownDir(dir); err != nil {
			return spool{}, err
		}
	}
	s := spool{dir}
	for _, part := range []string{dirIn, dirTaken, dirFree, dirStop, dirDone, dirProgress, dirScript, dirLog, dirHelpers} {
		if err := ownDir(s.path(part)); err != nil {
			return spool{}, err
		}
	}
	if err := mkfifo(s.path(fileReports), 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return spool{}, err
	}
	return s, nil
}

// ownDir creates dir with mode 0700, or checks that it is our directory and closes it to
// others: dir may be below /tmp.
func ownDir(dir string) error {
	err := mkdir(dir, 0o700)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	mode, err := checkOurs(dir)
	if err == nil && mode&0o077 != 0 {
		return chmod(dir, 0o700)
	}
	return err
}

// checkOurs checks that dir is a directory of our user, and returns its mode.
func checkOurs(dir string) (mode uint32, err error) {
	var st unix.Stat_t
	if err := statat(unix.AT_FDCWD, dir, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, fmt.Errorf("%s is not a directory; remove it", dir)
	}
	if int(st.Uid) != os.Getuid() {
		return 0, fmt.Errorf("%s belongs to user %d, not to us; remove it or set another work_dir", dir, st.Uid)
	}
	return st.Mode, nil
}

// checkOwner returns an error if dir, possibly behind a symbolic link, belongs neither to us
// nor to root: its owner could replace what we create in it.
func checkOwner(dir string) error {
	st, err := stat(dir)
	if err == nil && st.Uid != 0 && int(st.Uid) != os.Getuid() {
		err = fmt.Errorf("%s belongs to user %d, not to us; set another work_dir for this host", dir, st.Uid)
	}
	return err
}

// specName is the name of a waiting spec. It contains the generation, so that a new helper
// can invalidate the tokens of an older one by renaming the spec.
func specName(generation int64, id jobs.AttemptID) string {
	b := strconv.AppendInt(make([]byte, 0, 40), generation, 10)
	return string(id.Append(append(b, '-')))
}

func parseSpecName(name string) (jobs.AttemptID, bool) {
	gen, rest, ok := strings.Cut(name, "-")
	if _, err := strconv.ParseInt(gen, 10, 64); !ok || err != nil {
		return jobs.AttemptID{}, false
	}
	id, err := jobs.ParseAttemptID(rest)
	return id, err == nil
}

// holder identifies the supervisor that holds an attempt: its slot and its process.
type holder struct {
	Slot  int
	PID   int
	Start uint64 // field 22 of /proc/PID/stat
}

func (h holder) String() string { return fmt.Sprintf("%d.%d.%d", h.Slot, h.PID, h.Start) }

func parseHolder(s string) (h holder, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return h, false
	}
	var err1, err2, err3 error
	h.Slot, err1 = strconv.Atoi(parts[0])
	h.PID, err2 = strconv.Atoi(parts[1])
	h.Start, err3 = strconv.ParseUint(parts[2], 10, 64)
	return h, err1 == nil && err2 == nil && err3 == nil && h.PID > 0
}

// alive reports whether that process still exists.
func (h holder) alive() bool {
	p, ok := readProc(h.PID)
	return ok && p.start == h.Start && p.state != 'Z' && p.state != 'X'
}

// takenName is the name of a taken spec.
func takenName(id jobs.AttemptID, by holder) string { return id.String() + "@" + by.String() }

func parseTakenName(name string) (jobs.AttemptID, holder, bool) {
	a, b, ok := strings.Cut(name, "@")
	id, err := jobs.ParseAttemptID(a)
	h, ok2 := parseHolder(b)
	return id, h, ok && ok2 && err == nil
}

// list returns the names in one of the spool's directories.
func (s spool) list(dir string) ([]string, error) {
	names, err := list(s.path(dir))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return names, nil
}

// spoolDirs holds descriptors of directories in a spool.
type spoolDirs struct{ in, taken, free int }

func (s spool) openDirs() (d spoolDirs, err error) {
	if d.in, err = openDir(s.path(dirIn)); err == nil {
		d.taken, err = openDir(s.path(dirTaken))
	}
	if err == nil {
		d.free, err = openDir(s.path(dirFree))
	}
	if err != nil {
		err = fmt.Errorf("opening the spool: %w", err)
	}
	return d, err
}

// taken returns the holder of each taken attempt.
func (s spool) taken() (map[jobs.AttemptID]holder, error) {
	names, err := s.list(dirTaken)
	if err != nil {
		return nil, err
	}
	m := make(map[jobs.AttemptID]holder, len(names))
	for _, n := range names {
		if id, h, ok := parseTakenName(n); ok {
			m[id] = h
		}
	}
	return m, nil
}

// checkName returns an error unless s can be one component of a path and fits into a
// sentinel beside the outcome.
func checkName(what, s string) error {
	forbidden := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/"\<>&`, r) }
	if s == "" || s == "." || s == ".." || len(s) > 64 || !utf8.ValidString(s) || strings.ContainsFunc(s, forbidden) {
		return fmt.Errorf("%s %q cannot be used as a file name (1 to 64 bytes without blanks, slashes, quotes, <, > and &)", what, s)
	}
	return nil
}

// A sealed file holds one value in the encoding of messages: a magic for kind and version,
// the CRC-32C and the length of the value (4 bytes each, little-endian), and the value. It
// keeps any bytes. Bytes after the value are ignored: files are reused, and the earlier
// content may have been longer.
const sealHeader = 12

var (
	errSpec    = errors.New("damaged job specification in the spool")
	errSeal    = errors.New("damaged")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendSealed appends the content of a sealed file to b.
func appendSealed(b []byte, magic string, v any) []byte {
	start := len(b)
	b = append(append(b, magic...), make([]byte, sealHeader-len(magic))...)
	b = wire.Append(b, v)
	body := b[start+sealHeader:]
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(body, castagnoli))
	binary.LittleEndian.PutUint32(b[start+8:], uint32(len(body)))
	return b
}

// unseal decodes what appendSealed wrote into *v, which must be zero. It returns errSeal for
// anything else.
func unseal[T any](b []byte, magic string, v *T) error {
	if len(b) < sealHeader || string(b[:len(magic)]) != magic {
		return fmt.Errorf("%w: %d bytes, no header", errSeal, len(b))
	}
	sum, n, body := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:]), b[sealHeader:]
	if uint64(n) > uint64(len(body)) {
		return fmt.Errorf("%w: %d bytes of %d", errSeal, len(body), n)
	}
	if crc32.Checksum(body[:n], castagnoli) != sum {
		return fmt.Errorf("%w: wrong checksum", errSeal)
	}
	if err := wire.Decode(body[:n], v); err != nil {
		return fmt.Errorf("%w: %w", errSeal, err)
	}
	return nil
}

// specMagic is the magic of a spec file, which holds a hosts.LaunchJob.
const specMagic = "DCS5"

func appendSpec(b []byte, j *hosts.LaunchJob) []byte { return appendSealed(b, specMagic, *j) }

// parseSpec decodes what appendSpec wrote. It returns errSpec for anything else.
func parseSpec(b []byte) (*hosts.LaunchJob, error) {
	j := &hosts.LaunchJob{}
	if err := unseal(b, specMagic, j); err != nil {
		return nil, fmt.Errorf("%w: %w", errSpec, err)
	}
	return j, nil
}

// slotConfig configures all supervisors of one helper. It is passed in a file of the spool
// with mode 0600, not in arguments or the environment, because values of variables may be
// secrets.
type slotConfig struct {
	Run     string // uid
	RunName string // what jobs see instead of the uid, unless ""
	Host    string
	Dir     string // the directory that holds attempts/
	Boot    string
	Network bool // Dir is on a network file system
	Cwd     string
	Shell   []string
	Setup   string
	Env     []jobs.EnvVar
	Nice    int
	Grace   time.Duration

	Signal     int // sent to a job WarnBefore its timeout; 0: none
	WarnBefore time.Duration

	ShareDir string // holds the locks of slots and GPUs
	GPUs     []int  // numbers of the devices, as CUDA counts them from 0
	RunDir   string // "" if this host does not see it

	Files     string // directory of the store of files
	Sends     bool   // every job gets files
	KeepFiles bool   // the directories of jobs are kept
}

// configMagic is the magic of the file of a slotConfig.
const configMagic = "DCG6"

func configName(generation int64) string { return "config." + strconv.FormatInt(generation, 10) }

func (s spool) writeConfig(generation int64, c *slotConfig) error {
	if err := writeFile(s.path(configName(generation)), appendSealed(nil, configMagic, *c)); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

func (s spool) readConfig(generation int64) (*slotConfig, error) {
	b, err := readFile(s.path(configName(generation)))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	c := &slotConfig{}
	if err := unseal(b, configMagic, c); err != nil {
		return nil, fmt.Errorf("spool: %s: %w", configName(generation), err)
	}
	return c, nil
}

// temps returns the names of temporary files beside the attempts.
func (c *slotConfig) temps(by holder) temps {
	return temps{filepath.Join(c.Dir, "attempts"), c.Host, by}
}

// claimTemp returns the temp argument of makeClaim.
func (c *slotConfig) claimTemp(by holder) string {
	if !c.Network {
		return ""
	}
	return c.temps(by).path()
}

// cookie returns the mark of an attempt's processes or, for attempt "", the common prefix of
// the marks of this run on this host.
func cookie(run, host, attempt string) string { return run + "/" + host + "/" + attempt }

// The wake pipe: the helper writes a token per spec, and all its supervisors read.

// tokenBytes is the size of a token. It divides PIPE_BUF, so that tokens are never torn.
const tokenBytes = 32

// A token wakes one supervisor for one waiting spec. A token of job 0 asks the supervisor
// that reads it to leave.
func appendToken(b []byte, generation int64, id jobs.AttemptID) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(generation))
	b = binary.LittleEndian.AppendUint64(b, uint64(id.Job))
	b = binary.LittleEndian.AppendUint64(b, uint64(id.N))
	return binary.LittleEndian.AppendUint64(b, 0)
}

func parseToken(b []byte) (generation int64, id jobs.AttemptID) {
	return int64(binary.LittleEndian.Uint64(b)), jobs.AttemptID{
		Job: jobs.ID(binary.LittleEndian.Uint64(b[8:])),
		N:   int(binary.LittleEndian.Uint64(b[16:])),
	}
}

// wakePipe is the helper's end of the pipe, guarded by helper.mu.
type wakePipe struct {
	read, write int
	generation  int64
	unsent      []byte // tokens that did not fit into the pipe
}

func (p *wakePipe) open(generation int64) error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("making the wake pipe: %w", err)
	}
	p.read, p.write, p.generation = fds[0], fds[1], generation
	// Not inherited: supervisors block on the other end.
	unix.SetNonblock(p.write, true)
	unix.FcntlInt(uintptr(p.write), unix.F_SETPIPE_SZ, 1<<20) // fails if less is allowed
	return nil
}

// add queues a token for send.
func (p *wakePipe) add(id jobs.AttemptID) { p.unsent = appendToken(p.unsent, p.generation, id) }

// send writes as many tokens as fit. The others wait for the next call.
func (p *wakePipe) send() {
	for len(p.unsent) > 0 {
		// At most PIPE_BUF bytes, so that the write is all or nothing.
		n, err := unix.Write(p.write, p.unsent[:min(len(p.unsent), 4096)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		p.unsent = p.unsent[n:]
	}
	p.unsent = nil
}

// again sends tokens for everything that waits if no token is left: a token is lost when the
// supervisor that read it dies or leaves. A surplus token is harmless.
func (p *wakePipe) again(waiting map[jobs.AttemptID]bool) {
	if n, err := unix.IoctlGetInt(p.read, unix.TIOCINQ); err == nil && n == 0 && len(p.unsent) == 0 {
		for id := range waiting {
			p.add(id)
		}
	}
	p.send()
}

// dismiss asks n idle supervisors to leave.
func (p *wakePipe) dismiss(n int) {
	for range n {
		p.add(jobs.AttemptID{})
	}
	p.send()
}

func (p *wakePipe) close() {
	unix.Close(p.write)
	unix.Close(p.read)
	p.write, p.read = -1, -1
}

// tokens is a supervisor's end of the wake pipe. All supervisors of a helper read the same
// pipe, so a token that poll has shown may be gone when it is read.
type tokens struct {
	fd    int
	quick int // the same pipe, opened non-blocking; -1: not available
}

// openTokens opens the pipe behind fd a second time, because O_NONBLOCK belongs to the open
// file, which the other supervisors share.
func openTokens(fd int) tokens {
	quick, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		quick = -1
	}
	return tokens{fd, quick}
}

// nextToken waits for a token. It sends the pending report before it waits. It returns false
// when no token will come.
func (s *slot) nextToken() (generation int64, id jobs.AttemptID, ok bool) {
	var b [tokenBytes]byte
	n, err := -1, error(unix.EAGAIN)
	if s.pending.cur.Load() != nil && s.tokens.quick >= 0 {
		n, err = readToken(s.tokens.quick, b[:])
	}
	if err == unix.EAGAIN {
		s.flushPending()
		s.releaseSlots()
		n, err = readToken(s.tokens.fd, b[:])
	}
	if err != nil || n != tokenBytes {
		return 0, id, false
	}
	generation, id = parseToken(b[:])
	return generation, id, true
}

func readToken(fd int, b []byte) (int, error) {
	for {
		if n, err := unix.Read(fd, b); err != unix.EINTR {
			return n, err
		}
	}
}

// The kinds of report.
const (
	repStarted = 'S' // the attempt runs: Job, At
	repExited  = 'E' // it has ended: Outcome
	repLapsed  = 'L' // it never started: the lease had run out
	repRefused = 'R' // it never started and never will: Why, and the GPUs that others use
	repKnown   = 'K' // it was claimed before and is not run again
	repTrouble = 'T' // something a person should know: Why
)

// report is one line from a supervisor to the helper, in base64. It is only a hint, because
// it may be lost.
type report struct {
	Kind    byte
	Attempt jobs.AttemptID
	By      holder
	Job     int // pid and process group of the job's shell
	At      jobs.Stamp
	Outcome jobs.Outcome
	Why     string
	GPUs    []int // devices of the refused attempt that others use
}

// maxReport keeps a line below PIPE_BUF, so that it is written completely or not at all.
const maxReport = 4096

// append appends the line, with long texts cut.
func (r *report) append(b []byte) []byte {
	short := *r
	short.Why = cut(r.Why, 900) // long enough for a long path and the reason after it
	short.Outcome.Error, short.Outcome.LastLine = cut(r.Outcome.Error, 400), cut(r.Outcome.LastLine, maxLastLine)
	return append(base64.StdEncoding.AppendEncode(b, wire.Append(nil, short)), '\n')
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

var errReport = errors.New("not a supervisor's report")

// parseReport decodes a line without its newline.
func parseReport(line []byte) (r report, err error) {
	b, err := base64.StdEncoding.Strict().AppendDecode(nil, line)
	if err == nil {
		err = wire.Decode(b, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%w: %.40q: %w", errReport, line, err)
	}
	return r, nil
}
