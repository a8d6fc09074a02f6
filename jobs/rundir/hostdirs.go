package rundir

import (
	"os"
	"strings"
)

// HostDirSuffix ends the name of a file hosts/<host>.dir. It holds the directory in which
// a host that does not share the run directory keeps its attempts, as "host:directory".
// It tells readers where the outputs are while nobody is connected to the host.
const HostDirSuffix = ".dir"

// WriteHostDir stores the directory in which a host keeps its attempts.
func (r *Run) WriteHostDir(host, dir string) error {
	return Replace(r.Disk, r.Path(HostsDir, host+HostDirSuffix), []byte(host+":"+dir+"\n"))
}

// HostDirs returns "host:directory" for each host that keeps its attempts itself.
func (r *Run) HostDirs() map[string]string {
	found := map[string]string{}
	names, err := r.Disk.Names(r.Path(HostsDir))
	if err != nil {
		return found
	}
	for _, name := range names {
		if host, ok := strings.CutSuffix(name, HostDirSuffix); ok {
			if b, err := os.ReadFile(r.Path(HostsDir, name)); err == nil {
				found[host] = strings.TrimSuffix(string(b), "\n")
			}
		}
	}
	return found
}
