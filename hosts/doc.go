// Package hosts describes the machines and how to reach them: the inventory
// (hosts.toml), the type Host, the classes of errors, the messages that travel between
// dispatcher and host, and the seams Link, which moves bytes to one host (hosts/link), and
// Worker, which is what the dispatcher sees of a helper that answers over a Link
// (hosts/helper). It runs the commands of a provider, which create and end hosts.
//
// The package opens no connection itself and decides nothing about jobs or instances.
package hosts
