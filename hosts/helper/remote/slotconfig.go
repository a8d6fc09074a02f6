//go:build linux

package remote

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"dcs-tui/jobs"
)

// slotConfig is what all supervisors of one helper are told. It stands in a file
// of the spool (0600), not in arguments or environment: values of variables may
// be secrets.
type slotConfig struct {
	Run     string
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
}

func configName(generation int64) string { return "config." + strconv.FormatInt(generation, 10) }

func (s spool) writeConfig(generation int64, c *slotConfig) error {
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if err := os.WriteFile(s.path(configName(generation)), b, 0o600); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

func (s spool) readConfig(generation int64) (*slotConfig, error) {
	b, err := os.ReadFile(s.path(configName(generation)))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	c := &slotConfig{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("spool: %s: %w", configName(generation), err)
	}
	return c, nil
}

// cookie is the mark of an attempt's processes; without an attempt, the common
// beginning of all cookies of this run on this host.
func cookie(run, host, attempt string) string { return run + "/" + host + "/" + attempt }
