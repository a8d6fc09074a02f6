//go:build linux

package remote

import (
	"os"
	"time"
)

// limits are the times after which the far side gives something up by itself.
// They are handed down from the program's entry, so that tests can be short.
type limits struct {
	silence time.Duration // a helper leaves when it has heard nothing for so long; its supervisors go on
	nowhere time.Duration // a supervisor leaves when its outcome has had no place to go for so long
	beat    time.Duration // the time between two beats, and between two looks at the spool
	// lastSlot is how long a user who wants a slot waits before it uses one though others hold all.
	lastSlot time.Duration
	site     site
}

// usual are the limits of the program itself.
var usual = limits{silence: 30 * time.Second, nowhere: time.Minute, beat: 3 * time.Second, lastSlot: 30 * time.Second, site: site{self: os.Getuid()}}
