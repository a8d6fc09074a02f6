// Package hosts says which machines there are and how to talk to them: the
// inventory (hosts.toml), the type Host, the classes of errors, the messages
// that travel between dispatcher and host, and the two seams.
//
// The first seam is Link: it moves bytes to one host (sshlink, locallink,
// cmdlink). The second is Provider: it makes and ends hosts. Worker is what the
// dispatcher sees of a helper that answers over a Link (hosts/helper/client).
//
// The package opens no connection itself and decides nothing about jobs.
package hosts
