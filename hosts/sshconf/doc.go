// Package sshconf resolves a host of the inventory to concrete ssh connection
// parameters (Target), as the user's own ssh would: `ssh -G` is asked, so Host
// and Match blocks, Include, canonical names and defaults are OpenSSH's, and a
// file that ssh refuses is refused here in ssh's own words. What the inventory
// says is passed as ssh's options, and so comes first. Without an ssh program no host
// can be resolved, and the error says what to install.
//
// A warning names each directive that applies to a host in use and is not supported. A
// host with a ProxyCommand is refused. Directives that have no meaning without a terminal,
// forwarding and multiplexing are ignored silently (see directives.go).
//
// The package opens no connection and reads no key; that is sshlink.
package sshconf
