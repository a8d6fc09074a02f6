// Package sshconf resolves a host of the inventory to concrete ssh connection
// parameters (Target), as the user's own ssh would: `ssh -G` is asked, so Host
// and Match blocks, Include, canonical names and defaults are OpenSSH's, and a
// file that ssh refuses is refused here in ssh's own words. What the inventory
// says is handed over as ssh's options, and so comes first. Where there is no ssh program
// the library kevinburke/ssh_config reads the files (see library.go for its limits).
//
// A directive in effect for a host in use that is not supported is named in a
// warning, and a host with a ProxyCommand is refused; those that mean nothing to a program without terminal, forwarding
// and multiplexing are left aside silently (see directives.go).
//
// The package opens no connection and reads no key; that is sshlink.
package sshconf
