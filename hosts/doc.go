// Package hosts describes the machines and how they are reached: the inventory (hosts.toml),
// the type Host, the classes of errors, and the messages between dispatcher and host. Its
// interfaces are Link, a connection to one host (implemented by hosts/link), and Worker, a
// helper that answers over a Link (implemented by hosts/helper). It runs the commands of a
// provider, which create and terminate hosts.
//
// The package opens no connection itself and decides nothing about jobs or instances.
package hosts
