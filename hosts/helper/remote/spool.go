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

// spool names the files of a host's spool. Its format is part of what old
// supervisors and new helpers share; a change of it needs a new controlMagic.
type spool struct{ dir string }

func (s spool) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

const (
	dirIn       = "in"       // specs that wait: GENERATION-ATTEMPT
	dirTaken    = "taken"    // specs that a supervisor has taken: ATTEMPT@SLOT.PID.START
	dirFree     = "free"     // files of specs that are done with, to be used again
	dirStop     = "stop"     // ATTEMPT: the supervisor shall end it and say "stopped"
	dirDone     = "done"     // status files of ended attempts that could not be written where they belong
	dirProgress = "progress" // ATTEMPT: what the job wrote to DCS_PROGRESS; ATTEMPT.report: to DCS_REPORT
	dirScript   = "script"   // commands too long for an argument
	dirLog      = "log"      // standard error of supervisors
	dirHelpers  = "helpers"  // helpers that serve it, or did: GENERATION.PID.START
	fileControl = "control"  // the page they all share
	fileReports = "reports"  // FIFO: supervisors to the helper
	fileBoot    = "boot"     // the boot id under which the spool was last used
)

// makeSpool makes (or finds) base/runs/run/host, each level ours alone.
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

// ownDir makes dir with mode 0700, or checks that it is a directory of ours
// that nobody else may enter: it may stand in /tmp.
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

// checkOurs checks that dir is a directory of ours, and returns its mode.
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

// checkOwner returns an error if a directory, possibly behind a symbolic link, belongs
// to another user than us or root: that user could replace what we create there.
func checkOwner(dir string) error {
	st, err := stat(dir)
	if err == nil && st.Uid != 0 && int(st.Uid) != os.Getuid() {
		err = fmt.Errorf("%s belongs to user %d, not to us; set another work_dir for this host", dir, st.Uid)
	}
	return err
}

// specName is the name of a waiting spec. The generation is in it so that a
// new helper, by renaming, takes it away from the tickets of the old one.
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

// holder describes which supervisor holds an attempt: its slot and its process.
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

// alive reports whether that very process still exists.
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

// list reads the names in one of the spool's directories.
func (s spool) list(dir string) ([]string, error) {
	names, err := list(s.path(dir))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return names, nil
}

// taken lists who holds what.
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

// checkName refuses what cannot be one component of a path, or would not fit
// into a sentinel beside the outcome.
func checkName(what, s string) error {
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/"\<>&`, r) }
	if s == "" || s == "." || s == ".." || len(s) > 64 || !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return fmt.Errorf("%s %q cannot be used as a file name (1 to 64 bytes without blanks, slashes, quotes, <, > and &)", what, s)
	}
	return nil
}

// Sealed files hold one value, encoded as in messages: a magic that names kind and
// version, CRC-32C and length of what follows (4 bytes each, little-endian), and the value.
// Any bytes survive. What follows it means nothing: files are reused, and may have been
// longer.
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

// unseal reads what appendSealed wrote into *v, which is zero. Anything else is errSeal.
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

// specMagic is that of a spec file, which holds a hosts.LaunchJob.
const specMagic = "DCS5"

func appendSpec(b []byte, j *hosts.LaunchJob) []byte { return appendSealed(b, specMagic, *j) }

// parseSpec reads what appendSpec wrote; anything else is errSpec.
func parseSpec(b []byte) (*hosts.LaunchJob, error) {
	j := &hosts.LaunchJob{}
	if err := unseal(b, specMagic, j); err != nil {
		return nil, fmt.Errorf("%w: %w", errSpec, err)
	}
	return j, nil
}

// slotConfig is what all supervisors of one helper are told. It stands in a file
// of the spool (0600), not in arguments or environment: values of variables may
// be secrets.
type slotConfig struct {
	Run     string // uid
	RunName string // what jobs see; "": the uid
	Host    string
	Dir     string // holds attempts/
	Boot    string
	Network bool // Dir is on NFS or the like
	Cwd     string
	Shell   []string
	Setup   string
	Env     []jobs.EnvVar
	Nice    int
	Grace   time.Duration

	Signal     int           // warns a job of its end; 0: none does
	WarnBefore time.Duration // how long before its timeout

	ShareDir string // holds the locks of GPUs
	GPUs     []int  // numbers of the devices, as CUDA counts them from 0
	RunDir   string // "" if this host does not see it

	Files     string // directory of the store of files
	Sends     bool   // every job gets files
	KeepFiles bool   // directories of jobs stay
}

// configMagic is that of the file. It is sealed like a spec, so that values which are no
// UTF-8 arrive as they are.
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

// temps names what a process writes beside the attempts.
func (c *slotConfig) temps(by holder) temps {
	return temps{filepath.Join(c.Dir, "attempts"), c.Host, by}
}

// claimTemp is the file as which a process first writes a status file, "" where it needs none.
func (c *slotConfig) claimTemp(by holder) string {
	if !c.Network {
		return ""
	}
	return c.temps(by).path()
}

// cookie is the mark of an attempt's processes; without an attempt, the common
// beginning of all cookies of this run on this host.
func cookie(run, host, attempt string) string { return run + "/" + host + "/" + attempt }

// The wake pipe: a helper writes a token for each spec, and all its supervisors read.

// tokenBytes is the size of a token. It divides PIPE_BUF, so that a write of
// several is never torn and a read of one is always whole.
const tokenBytes = 32

// A token wakes one supervisor: one spec waits. Job 0 asks the one that reads
// it to leave.
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

// wakePipe is the helper's end of the pipe. It is guarded by helper.mu.
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
	unix.SetNonblock(p.write, true)                           // ours alone: supervisors wait on the other end
	unix.FcntlInt(uintptr(p.write), unix.F_SETPIPE_SZ, 1<<20) // as much as is allowed
	return nil
}

// add puts a token into the queue; send writes it.
func (p *wakePipe) add(id jobs.AttemptID) { p.unsent = appendToken(p.unsent, p.generation, id) }

// send writes as many tokens as fit; the rest wait for the next call.
func (p *wakePipe) send() {
	for len(p.unsent) > 0 {
		// At most PIPE_BUF a write, so that it is all or nothing.
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

// again sends a token for everything that waits if no token is left: one was lost with
// a supervisor that died or left. A token too many does no harm.
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

// tokens is a supervisor's end of the wake pipe. All of a helper's supervisors read the
// same one, so that a token which is seen there
// may be gone when it is read.
type tokens struct {
	fd    int
	quick int // the same pipe, read without waiting; -1: cannot be had
}

// openTokens opens the pipe behind fd once more: whether reading waits is a
// property of the open file, which the others share with us.
func openTokens(fd int) tokens {
	quick, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		quick = -1
	}
	return tokens{fd, quick}
}

// nextToken waits for a token. Pending reports are sent before it waits. It
// returns false when no token will come.
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

// The kinds of report, a supervisor's lines to the helper.
const (
	repStarted = 'S' // the attempt runs: Job, At
	repExited  = 'E' // it is over: Outcome
	repLapsed  = 'L' // it never started: the lease had run out
	repRefused = 'R' // it never started and never will; carries Why, and the GPUs that others use
	repKnown   = 'K' // it was claimed before: not run again
	repTrouble = 'T' // something a person should know: Why
)

// report is one line: the encoding of the report in base64. It is a sign, not a fact on
// record: it may be lost.
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

// maxReport keeps a line below PIPE_BUF, so that it is written whole or not at all.
const maxReport = 4096

// append appends the line. Texts are cut.
func (r *report) append(b []byte) []byte {
	short := *r
	short.Why = cut(r.Why, 900) // paths can be long, and the reason follows them
	short.Outcome.Error, short.Outcome.LastLine = cut(r.Outcome.Error, 400), cut(r.Outcome.LastLine, maxLastLine)
	return append(base64.StdEncoding.AppendEncode(b, wire.Append(nil, short)), '\n')
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

var errReport = errors.New("not a supervisor's report")

// parseReport reads a line without its newline.
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
