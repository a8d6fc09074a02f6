package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/hosts/hosttest"
)

func main() {
	dir := os.Args[1]
	var all []*hosttest.SSHD
	for i := range 4 {
		var o hosttest.Options
		if i > 0 {
			o.With = all[0]
		}
		sub := filepath.Join(dir, fmt.Sprintf("ws%d", i+1))
		os.MkdirAll(sub, 0o700)
		s, err := hosttest.NewSSHD(sub, o)
		if err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	for _, c := range [][2]int{{1, 1}, {4, 1}, {4, 4}, {4, 16}, {1, 4}, {1, 16}} {
		var b strings.Builder
		for i, s := range all[:c[0]] {
			fmt.Fprintf(&b, "[[host]]\nname = \"ws%d\"\naddress = \"127.0.0.1\"\nport = %d\nuser = %q\nidentity = %q\nslots = %d\nyield = false\nnice = 0\nwork_dir = %q\n\n", i+1, s.Port, s.User, s.Identity, c[1], filepath.Join(s.Dir, "work"))
		}
		os.WriteFile(filepath.Join(dir, fmt.Sprintf("h%dx%d.toml", c[0], c[1])), []byte(b.String()), 0o600)
	}
	os.Symlink(all[0].ConfigFile, filepath.Join(dir, "ssh_config"))
	time.Sleep(100 * time.Hour)
}
