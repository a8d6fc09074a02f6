// Package keepdeps holds module requirements while the rooms are being built.
package keepdeps

import (
	_ "charm.land/fang/v2"
	_ "github.com/BurntSushi/toml"
	_ "github.com/kevinburke/ssh_config"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/skeema/knownhosts"
	_ "github.com/spf13/cobra"
	_ "go.uber.org/goleak"
	_ "golang.org/x/crypto/ssh"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
)
