// Package link holds the implementations of hosts.Link: over ssh, to this machine, and
// over a command.
//
// The ssh link (ssh*.go) stands on golang.org/x/crypto/ssh: no ssh program is run. It
// opens one connection per host, through gateways where there are any, on which commands run
// in channels of their own. Host keys are strict, keys come from the agent, from files and
// with certificates; there is no password, no agent forwarding and no terminal. Every step
// that waits for the network has a limit, and its remedy is closing the connection: the
// library's own calls can wait for ever.
//
// Files config*.go resolve a host of the inventory to concrete ssh connection parameters
// (Target), as the user's own ssh would: `ssh -G` is asked, so Host and Match blocks,
// Include, canonical names and defaults are OpenSSH's, and a file that ssh refuses is
// refused here in ssh's own words. What the inventory says is passed as ssh's options, and
// so comes first. Without an ssh program no host can be resolved, and the error says what
// to install. A warning names each directive that applies to a host in use and is not
// supported. A host with a ProxyCommand is refused. Directives that have no meaning without
// a terminal, forwarding and multiplexing are ignored silently. Resolving opens no
// connection and reads no key.
//
// The local link runs a command as a child in a session of its own, with plain pipes for
// its standard streams. It is no supervisor of jobs: what leaves the command's process
// group, as the helper's supervisors do, is not touched.
//
// The command link uses any command whose standard streams reach a process on the host:
// `ssh ws01`, `docker exec -i box`, `kubectl exec -i pod --`, `srun --jobid=7`. The
// command gets three more arguments: /bin/sh, -c, and our fixed text. A command such as
// ssh joins its arguments with spaces, and a shell at the far end splits them again. For
// such a command the text is quoted (hosts.Host.Shells). It runs without a terminal and
// without an askpass program, so it cannot ask questions. The only heartbeat is the
// stream itself, and ending a stream ends the command on this side only.
//
// The package does not look for a better moment to try again; that is the dispatcher's
// decision, made from the class of the error.
package link
