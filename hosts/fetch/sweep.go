package fetch

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// The name of a part: .NAME.fetch-CHANCE.PROCESS, of the process that writes it.
const (
	tempMark = ".fetch-"
	tempOld  = time.Hour // of another machine's: nobody has written to it for so long
)

var thisProcess = sync.OnceValue(journal.ProcessName)

// Sweep removes the parts that fetches which were killed have left in the run directory.
// What cannot be read or removed stays: Bring says what is wrong with the disk.
func Sweep(run *rundir.Run) {
	dir := run.Path(rundir.AttemptsDir)
	shards, _ := run.Disk.Names(dir)
	for _, shard := range shards {
		names, _ := run.Disk.Names(filepath.Join(dir, shard))
		for _, name := range names {
			if strings.HasPrefix(name, ".") && strings.Contains(name, tempMark) {
				sweepPart(run.Disk, filepath.Join(dir, shard, name))
			}
		}
	}
}

func sweepPart(disk rundir.Disk, path string) {
	_, name, _ := strings.Cut(filepath.Base(path), tempMark)
	_, process, _ := strings.Cut(name, ".")
	life := journal.ProcessLife(process)
	if life == journal.Unsure {
		if info, err := disk.Stat(path); err == nil && time.Since(info.ModTime()) > tempOld {
			life = journal.Dead
		}
	}
	if life == journal.Dead {
		disk.Remove(path)
	}
}
