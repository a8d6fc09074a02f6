//go:build linux

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/labfs"
)

// The dimensions of the lab.
const (
	hostCount = 4
	slots     = 4 // per host
	lostAfter = "20s"
)

// lab has four hosts and two desks (machines to dispatch from) on a network of their own, with one
// shared directory.
type lab struct {
	t *testing.T
	// Contains the bridge and the shared directory, and shows the machines' processes.
	hub   *namespaces
	hosts []*machine // ws1 … ws4; ws4 is reached through ws3
	desks []*machine // desk1 and desk2
	vms   []*machine // vm1 and vm2: without power, for a provider
	runs  []string   // their names
	// The shared directory's server; nil: all machines share one memory file system directly.
	nfs *labfs.Server
	dir string // on this machine: the output of the dispatchers
}

// The directories of the lab, the same on each of its machines. A real user has only shared. Jobs
// write their marks to marks, which no fault ever affects.
const (
	sharedDir = "/srv/shared"
	marksDir  = "/srv/marks"
	keysDir   = "/srv/keys"
	binDir    = "/srv/bin"
	homeDir   = "/root" // each machine has its own
)

// newLab returns a lab whose shared directory is the same file system for all machines, with 64 MB.
func newLab(t *testing.T) *lab {
	t.Helper()
	needLab(t)
	return buildLab(t, nil)
}

// newNetLab returns a lab whose machines see the shared directory as NFS shows it: each through its
// own client, up to stale out of date, and able to hang or to fail.
func newNetLab(t *testing.T, stale time.Duration) *lab {
	t.Helper()
	needLab(t)
	server := labfs.New(t)
	return buildLab(t, server, labfs.Options{Stale: stale, WriteBack: true})
}

func buildLab(t *testing.T, server *labfs.Server, options ...labfs.Options) *lab {
	t.Helper()
	l := &lab{nfs: server, t: t, dir: t.TempDir()}
	if *keepFlag != "" {
		l.dir = filepath.Join(*keepFlag, strings.ReplaceAll(t.Name(), "/", "_"))
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range hostCount {
		l.hosts = append(l.hosts, &machine{lab: l, name: fmt.Sprintf("ws%d", i+1), ip: fmt.Sprintf("10.77.0.%d", i+1),
			sshd: true})
	}
	for i := range 2 {
		l.desks = append(l.desks, &machine{lab: l, name: fmt.Sprintf("desk%d", i+1),
			ip: fmt.Sprintf("10.77.0.%d", i+101)})
		l.vms = append(l.vms, &machine{lab: l, name: fmt.Sprintf("vm%d", i+1), ip: fmt.Sprintf("10.77.0.%d", i+51),
			sshd: true})
	}
	shared := "mount -t tmpfs -o size=64m shared /srv/shared"
	if server != nil {
		shared = "mount --bind " + server.Dir + " /srv/shared"
		for _, m := range l.machines() {
			m.mount = server.Mount(options[0])
		}
	}
	script := `set -e
mount -t tmpfs lab /srv
mkdir /srv/shared /srv/marks /srv/keys /srv/bin /srv/cloud
` + shared + `
for m in ws1 ws2 ws3 ws4 desk1 desk2 vm1 vm2; do
	mkdir -p /srv/$m/tmp /srv/$m/vartmp /srv/$m/root
	chmod 1777 /srv/$m/tmp /srv/$m/vartmp
	chmod 700 /srv/$m/root
done
ip link set lo up
ip link add br0 type bridge
ip link set br0 up
` + stay
	hub, err := newNamespaces(nil, "", script)
	if err != nil {
		t.Fatal(err)
	}
	l.hub = hub
	t.Cleanup(hub.stop) // ends all processes of all machines, too
	if err := l.writeFiles(); err != nil {
		t.Fatal(err)
	}
	for _, m := range append(l.hosts, l.desks...) {
		if err := m.boot(); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *lab) machines() []*machine { return slices.Concat(l.hosts, l.desks, l.vms) }

// writeFiles writes keys, configurations, the inventory and the programs.
func (l *lab) writeFiles() error {
	keys := l.hub.path(keysDir)
	for _, name := range []string{"host_key", "id"} {
		// ssh-keygen runs on this machine, on files that are visible here.
		if err := hosttest.NewKey(filepath.Join(keys, name), "ed25519", ""); err != nil {
			return err
		}
	}
	pub, err := os.ReadFile(filepath.Join(keys, "id.pub"))
	if err != nil {
		return err
	}
	hostKey, err := os.ReadFile(filepath.Join(keys, "host_key.pub"))
	if err != nil {
		return err
	}
	var known, inventory strings.Builder
	fmt.Fprintf(&inventory, "[defaults]\nuser = \"root\"\nidentity = %q\nslots = %d\nyield = false\n"+
		"nice = 0\nlost_after = %q\n", keysDir+"/id", slots, lostAfter)
	for i, m := range l.hosts {
		fmt.Fprintf(&known, "%s %s", m.ip, hostKey)
		fmt.Fprintf(&inventory, "\n[[host]]\nname = %q\naddress = %q\n", m.name, m.ip)
		if i == 3 {
			fmt.Fprintf(&inventory, "jump = %q\n", l.hosts[2].ip)
		}
	}
	for _, m := range l.vms {
		fmt.Fprintf(&known, "%s %s", m.ip, hostKey)
	}
	sshd := "ListenAddress 0.0.0.0:22\nHostKey " + keysDir +
		"/host_key\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n" +
		"PrintMotd no\nPrintLastLog no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n" +
		"AuthorizedKeysFile " + keysDir + "/authorized_keys\n"
	files := map[string]string{
		keysDir + "/authorized_keys": string(pub),
		keysDir + "/known_hosts":     known.String(),
		keysDir + "/sshd_config":     sshd,
		keysDir + "/ssh_config": "Host *\n\tUser root\n\tIdentityFile " + keysDir +
			"/id\n\tIdentitiesOnly yes\n\tIdentityAgent none\n" +
			"\tUserKnownHostsFile " + keysDir +
			"/known_hosts\n\tGlobalKnownHostsFile none\n\tStrictHostKeyChecking yes\n",
		keysDir + "/hosts.toml": inventory.String(),
		cloudHosts:              inventory.String() + cloudInventory,
		binDir + "/job":         jobScript,
		binDir + "/cloud":       cloudScript,
	}
	for name, text := range files {
		if err := os.WriteFile(l.hub.path(name), []byte(text), 0o700); err != nil {
			return err
		}
	}
	if err := runCommand("cp", program, l.hub.path(binDir+"/dcs-tui")); err != nil {
		return err
	}
	// OpenSSH 9.8 and later penalize an address whose connections fail. Older versions do not know
	// the option.
	config := l.hub.path(keysDir + "/sshd_config")
	out, _ := exec.Command("/usr/sbin/sshd", "-t", "-h", filepath.Join(keys, "host_key"), "-f", config, "-o",
		"PerSourcePenalties=no").CombinedOutput()
	if !strings.Contains(string(out), "Bad configuration option") {
		return os.WriteFile(config, []byte(sshd+"PerSourcePenalties no\n"), 0o700)
	}
	return nil
}

// readFile returns a file of the lab, or "" if it does not exist.
func (l *lab) readFile(name string) string {
	b, _ := os.ReadFile(l.hub.path(name))
	return string(b)
}
