//go:build linux

package remote

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// fileMachine and the host's name is the file that holds the random part of the id of this
// machine in a run.
const fileMachine = "machine."

// machineID returns what tells this machine from others that the dispatcher may find under
// the same name. The random part, which is kept in work_dir, tells clones of a machine
// apart; the system's own id tells machines apart that share work_dir. The spool, which is
// elsewhere on the machine, has a copy: a machine that has lost its directory of the run
// still has the processes of its attempts.
func (h *helper) machineID() (string, error) {
	if h.open.Check {
		return "", nil
	}
	note, copied := filepath.Join(h.workDir, fileMachine+h.open.Host), h.spool.path(fileMachine+h.open.Host)
	b, err := readFile(note)
	if errors.Is(err, fs.ErrNotExist) {
		if b, err = readFile(copied); errors.Is(err, fs.ErrNotExist) {
			random := make([]byte, 8)
			rand.Read(random)
			b, err = []byte(hex.EncodeToString(random)), nil
		}
		if err == nil {
			err = replace(temps{h.workDir, h.open.Host, h.holder()}.path(), note, b)
		}
		if err == nil {
			b, err = readFile(note) // another helper may have been faster
		}
	}
	if err == nil {
		if was, _ := readFile(copied); !bytes.Equal(was, b) {
			err = writeFile(copied, b)
		}
	}
	if err != nil {
		return "", err
	}
	system, _ := os.ReadFile("/etc/machine-id")
	return fmt.Sprintf("%s-%08x", b, crc32.ChecksumIEEE(system)), nil
}
