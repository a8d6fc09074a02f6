//go:build linux

package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"time"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/jobs"
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
