// Package link implements hosts.Link in three ways: over ssh (NewSSH), on this machine (NewLocal),
// and over a command (CommandOpener). It does not retry. The dispatcher decides when to try again,
// by the class of the error.
//
// The ssh link (ssh*.go) uses golang.org/x/crypto/ssh and runs no ssh program. It opens one
// connection per host, through gateways if there are any. Each command runs in a channel of its
// own. Host keys are strict. Keys come from the agent and from files, with certificates. There is
// no password, no agent forwarding, and no terminal. Every step that waits for the network has a
// timeout, after which the connection is closed, because calls of the library can block forever.
//
// Files config*.go resolve a host of the inventory to a Target, the parameters of an ssh
// connection, as the user's own ssh would. They run `ssh -G`, so Host and Match blocks, Include,
// canonical names, defaults, and messages about errors are OpenSSH's. Without an ssh program no
// host can be resolved. Settings of the inventory are passed as options of ssh, which take
// precedence. A warning names each directive of a host that is not supported, except directives
// that have no meaning without a terminal, forwarding, and multiplexing. A ProxyCommand that does
// what ProxyJump does is treated as one. A host with any other ProxyCommand is refused. Resolving
// opens no connection and reads no key.
//
// The local link runs a command as a child in a session of its own. It does not touch processes
// that leave the command's process group, as the helper's supervisors do.
//
// The command link uses any command whose standard streams reach a process on the host:
// `ssh ws01`, `docker exec -i box`, `kubectl exec -i pod --`, `srun --jobid=7`. The command gets
// three more arguments: /bin/sh, -c, and our fixed text, which is quoted for each shell at the far
// end that will split it (hosts.Host.Shells). It runs without a terminal and without an askpass
// program, so it cannot ask questions. It has no keepalive request. Closing a stream ends the
// command on this side only.
package link
