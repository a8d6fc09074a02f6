//go:build linux

package remote

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"dcs-tui/jobs"
)

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

// configMagic names kind and version of the file; it is sealed like a spec, so
// that values which are no UTF-8 arrive as they are.
const configMagic = "DCG5"

func (c *slotConfig) append(b []byte) []byte {
	start := len(b)
	b = beginSeal(b, configMagic)
	for _, s := range []string{c.Run, c.RunName, c.Host, c.Dir, c.Boot, c.Cwd, c.Setup, c.ShareDir, c.RunDir, c.Files} {
		b = appendText(b, s)
	}
	flags := int64(0)
	for i, set := range []bool{c.Network, c.Sends, c.KeepFiles} {
		if set {
			flags |= 1 << i
		}
	}
	for _, n := range []int64{flags, int64(c.Nice), int64(c.Grace), int64(c.Signal), int64(c.WarnBefore)} {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(c.Shell)))
	for _, s := range c.Shell {
		b = appendText(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(c.GPUs)))
	for _, n := range c.GPUs {
		b = binary.AppendVarint(b, int64(n))
	}
	b = appendEnv(b, c.Env)
	endSeal(b[start:])
	return b
}

func parseConfig(b []byte) (*slotConfig, error) {
	r, err := unseal(b, configMagic)
	if err != nil {
		return nil, err
	}
	c := &slotConfig{}
	for _, s := range []*string{&c.Run, &c.RunName, &c.Host, &c.Dir, &c.Boot, &c.Cwd, &c.Setup, &c.ShareDir, &c.RunDir, &c.Files} {
		*s = r.text()
	}
	flags := r.int()
	c.Network, c.Sends, c.KeepFiles = flags&1 != 0, flags&2 != 0, flags&4 != 0
	c.Nice, c.Grace = int(r.int()), time.Duration(r.int())
	c.Signal, c.WarnBefore = int(r.int()), time.Duration(r.int())
	for range r.count(1) {
		c.Shell = append(c.Shell, r.text())
	}
	for range r.count(1) {
		c.GPUs = append(c.GPUs, int(r.int()))
	}
	c.Env = r.env()
	if r.bad || len(r.b) != 0 {
		return nil, fmt.Errorf("%w: wrong length", errSeal)
	}
	return c, nil
}

func configName(generation int64) string { return "config." + strconv.FormatInt(generation, 10) }

func (s spool) writeConfig(generation int64, c *slotConfig) error {
	if err := writeFile(s.path(configName(generation)), c.append(nil)); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

func (s spool) readConfig(generation int64) (*slotConfig, error) {
	b, err := readFile(s.path(configName(generation)))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	c, err := parseConfig(b)
	if err != nil {
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
