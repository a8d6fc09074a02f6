//go:build linux

package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

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
func appendSealed(b []byte, m magic, v any) []byte {
	start := len(b)
	b = append(append(b, m.String()...), make([]byte, sealHeader-magicBytes)...)
	b = wire.Append(b, v)
	body := b[start+sealHeader:]
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(body, castagnoli))
	binary.LittleEndian.PutUint32(b[start+8:], uint32(len(body)))
	return b
}

// magic is the first four bytes of a sealed file: three letters for its kind, and the version of
// its format.
type magic struct {
	kind   string
	format *jobs.Format
}

const magicBytes = 4

func (m magic) String() string { return m.kind + string(rune('0'+m.format.Version)) }

// check returns an error if b does not begin with the magic.
func (m magic) check(b []byte) error {
	if len(b) < sealHeader || string(b[:len(m.kind)]) != m.kind {
		return fmt.Errorf("%w: %d bytes, no header", errSeal, len(b))
	}
	return m.format.Check(int(b[len(m.kind)]) - '0')
}

// unseal decodes what appendSealed wrote into *v, which must be zero. It returns a
// *jobs.VersionError for another version of the format, and errSeal for anything else.
func unseal[T any](b []byte, m magic, v *T) error {
	if err := m.check(b); err != nil {
		return err
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
var specMagic = magic{"DCS", &jobs.FormatSpoolJob}

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
	Pin     bool // each job is bound to cores of its own
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
var configMagic = magic{"DCG", &jobs.FormatSpoolConfig}

// configPrefix plus the generation of a helper is the file of its slotConfig.
const configPrefix = "config."

func configName(generation int64) string { return configPrefix + strconv.FormatInt(generation, 10) }

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
func (c *slotConfig) temps(by holder) tempNames {
	return tempNames{filepath.Join(c.Dir, "attempts"), c.Host, by}
}

// claimTemp returns the temp argument of makeClaim.
func (c *slotConfig) claimTemp(by holder) string {
	if !c.Network {
		return ""
	}
	return c.temps(by).path()
}

// Cleaners and people delete files in /var/tmp, also while jobs run. A helper that sees that the
// shared part of its spool is gone leaves, and the next one makes the spool again, as after any
// death of a helper. Supervisors of the earlier helper finish the jobs that they run. What they
// hold is found again by the processes of these jobs, and only then counts as held: a claim that
// was deleted must not lead to a second start.

// errSpoolDeleted is returned by a helper whose spool was deleted.
var errSpoolDeleted = errors.New("was deleted on the host; it is made again, and running jobs continue")

// errSpoolWritable is returned by a helper that could not share the control page.
var errSpoolWritable = errors.New("can be written again, so a new helper is started")

// checkSpool makes directories and files again that only the helper needs, and returns
// errSpoolDeleted if something is gone that supervisors share with it. If a file system does not
// answer, nothing counts as gone.
func (h *helper) checkSpool() error {
	for name, fd := range map[string]int{dirIn: h.in, dirTaken: h.taken, dirFree: h.free, fileReports: h.reportsFD} {
		var st unix.Stat_t
		if fstat(fd, name, &st) == nil && isReplaced(h.spool.path(name), uint64(st.Dev), st.Ino) {
			return fmt.Errorf("the spool %s %w", h.spool.dir, errSpoolDeleted)
		}
	}
	if control := h.spool.path(fileControl); h.control.private {
		if fd, err := openat(unix.AT_FDCWD, control, unix.O_RDWR, 0); err == nil {
			closeFile(fd, control)
			return fmt.Errorf("the spool %s %w", h.spool.dir, errSpoolWritable)
		}
	}
	if isReplaced(h.spool.path(fileControl), h.control.device, h.control.inode) {
		return fmt.Errorf("the spool %s %w", h.spool.dir, errSpoolDeleted)
	}
	for _, dir := range []string{dirStop, dirDone, dirProgress, dirScript, dirLog, dirHelpers} {
		if _, err := stat(h.spool.path(dir)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := makeOwnDir(h.spool.path(dir)); err != nil && !h.hasEnded() {
			h.reportTrouble("spool: %v", err)
		}
	}
	for name, write := range map[string]func() error{
		fileBoot: func() error {
			return writeFile(h.spool.path(fileBoot), []byte(h.config.Boot+"\n"))
		},
		dirHelpers + "/" + h.recordName(): h.register,
		fileMachine + h.open.Host:         func() error { _, err := h.machineID(); return err },
	} {
		isSkipped := h.open.Check && name == fileMachine+h.open.Host
		if _, err := stat(h.spool.path(name)); isSkipped || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := write(); err != nil && !h.hasEnded() {
			h.reportTrouble("%v", err)
		}
	}
	return nil
}

// isReplaced reports whether path certainly does not lead to a file any more.
func isReplaced(path string, device, inode uint64) bool {
	var st unix.Stat_t
	err := statat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return isMissing(err)
	}
	return uint64(st.Dev) != device || st.Ino != inode
}

// findProcesses returns the attempts that have living processes, each with the living supervisor of this
// spool that runs it. If there is none, the holder is zero.
func (h *helper) findProcesses() map[jobs.AttemptID]holder {
	t := scan(nil)
	found := map[jobs.AttemptID]holder{}
	for pid, id := range t.attempts(cookie(h.config.Run, h.config.Host, "")) {
		by := found[id]
		for at, ok := t[pid]; ok && at.pid > 1 && by.PID == 0; at, ok = t[at.ppid] {
			if h.spool.isSupervisor(at) {
				words := bytes.Split(procFile(at.pid, "cmdline"), []byte{0})
				slot, _ := strconv.Atoi(string(words[min(3, len(words)-1)]))
				by = holder{slot, at.pid, at.start}
			}
		}
		found[id] = by
	}
	return found
}

// hold records again that a supervisor runs an attempt, after its entry in taken/ was deleted, and
// its claim if that was deleted, too.
func (h *helper) hold(p hosts.ProbedJob, f attempts.Fate, by holder) hosts.ProbedJob {
	p.Slot, p.Started = by.Slot, f.Claim.At
	if f.State == attempts.Nothing {
		c := attempts.Claim{Run: h.config.Run, Attempt: p.Attempt, Host: h.config.Host, By: by.String(),
			Boot: h.config.Boot, At: wallClock()}
		if err := h.claim(&c); err != nil && !errors.Is(err, errClaimed) {
			p.Why = err.Error()
			return p
		}
	}
	name := takenName(p.Attempt, by)
	fd, err := openat(h.taken, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err == nil {
		err = closeFile(fd, name)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		p.Why = err.Error()
		return p
	}
	// The supervisor writes the sentinel before it removes the entry. If it has ended in the
	// meantime, nobody would remove ours.
	if f, _ := h.readFate(p.Attempt); f.State == attempts.Finished {
		unlinkat(h.taken, name, 0)
		p.Answer, p.Slot, p.Started, p.Outcome = hosts.HasExited, f.Slot, f.Outcome.Started, &f.Outcome
		return p
	}
	p.Answer = hosts.IsRunning
	return p
}
