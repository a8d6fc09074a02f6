//go:build linux

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A lab has two machines without power, vm1 and vm2, for the provider of cloud.toml. The provider's
// commands create one file for each instance in cloudDir. For each new file, the director powers on
// a machine and writes the machine's address into the file. When the file is gone, it cuts the
// power.
const (
	cloudDir   = "/srv/cloud"
	cloudHosts = keysDir + "/cloud.toml"
)

const cloudScript = `#!/bin/sh
cd ` + cloudDir + `
if [ -e broken ]; then echo 'the cloud does not answer' >&2; exit 1; fi
case $1 in
create) [ -e "$2" ] || : >"$2" ;;
list) for name in "$2"-*; do if [ -e "$name" ]; then echo "$name" $(cat "$name"); fi; done ;;
terminate) rm -f "$2" ;;
esac
`

const cloudInventory = `
[[provider]]
name = "cloud"
create = "` + binDir + `/cloud create {name}"
list = "` + binDir + `/cloud list {run}"
terminate = "` + binDir + `/cloud terminate {name}"
max = 2
startup = "5s"
idle = "10s"
`

// cloudFaults occur only in runs with a provider.
var cloudFaults = []faultKind{
	{name: "instance preempted", weight: 20, make: (*director).preemptInstance},
	{name: "provider fails", weight: 4, make: (*director).breakCloud},
}

// instances returns the names of the instances that exist.
func (l *lab) instances() []string {
	files, _ := filepath.Glob(l.hub.path(cloudDir + "/dcs-*"))
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return files
}

// stepCloud acts as the provider does: it starts and ends machines.
func (d *director) stepCloud() {
	exist := map[string]bool{}
	for _, name := range d.lab.instances() {
		exist[name] = true
	}
	for _, m := range d.lab.vms {
		if m.instance != "" && !exist[m.instance] {
			d.must(m.releaseInstance(d.rand.IntN(2) == 0))
		}
		delete(exist, m.instance)
	}
	for name := range exist {
		for _, m := range d.lab.vms {
			if m.instance == "" {
				m.instance = name
				d.must(m.boot())
				// The file is moved into place, so the commands never see a partial address.
				file := d.lab.hub.path(cloudDir + "/" + name)
				d.must(os.WriteFile(filepath.Join(filepath.Dir(file), ".new"), []byte(m.ip+"\n"), 0o600))
				d.must(os.Rename(filepath.Join(filepath.Dir(file), ".new"), file))
				d.logEvent("instance %s is %s", name, m.name)
				break
			}
		}
	}
}

// releaseInstance ends the machine's instance. The next instance on it has an empty disk.
func (m *machine) releaseInstance(cut bool) error {
	m.powerOff(cut)
	m.instance = ""
	root := m.lab.hub.path("/srv/" + m.name)
	for _, dir := range []string{"tmp", "vartmp", "root"} {
		names, err := filepath.Glob(filepath.Join(root, dir, "*"))
		if err != nil {
			return err
		}
		hidden, _ := filepath.Glob(filepath.Join(root, dir, ".[a-z]*"))
		for _, name := range append(names, hidden...) {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// preemptInstance takes an instance away, as a cloud that needs its capacity.
func (d *director) preemptInstance() string {
	for _, m := range d.lab.vms {
		if name := m.instance; name != "" {
			silent := d.rand.IntN(2) == 0
			d.must(os.Remove(d.lab.hub.path(cloudDir + "/" + name)))
			d.must(m.releaseInstance(silent))
			d.preempted = append(d.preempted, name)
			return fmt.Sprintf("%s (%s), silent %v", name, m.name, silent)
		}
	}
	return ""
}

// breakCloud makes all commands of the provider fail for a while.
func (d *director) breakCloud() string {
	if d.isActive("provider fails") {
		return ""
	}
	file := d.lab.hub.path(cloudDir + "/broken")
	d.must(os.WriteFile(file, nil, 0o600))
	return d.repairAfterRandom(2, 20, "provider fails", func() { d.must(os.Remove(file)) })
}

// checkNoInstances checks that the run has ended its instances.
func (d *director) checkNoInstances() {
	d.t.Helper()
	if left := d.lab.instances(); len(left) > 0 {
		d.t.Errorf("the run is over, and its instances %s exist\n%s", strings.Join(left, ", "), d.newestOutput())
	}
	d.stepCloud() // cuts the power of the last ones
}
