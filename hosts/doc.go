// Package hosts describes the machines and how they are reached: the inventory (hosts.toml), the
// type Host, the classes of errors, and the messages between dispatcher and host. Load reads an
// Inventory. The interfaces are Link, a connection to one host (implemented by hosts/link),
// Connector, which starts a helper over a Link, and Worker, a running helper (both implemented by
// hosts/helper). The package also runs the commands of a Provider, which create and terminate
// hosts.
//
// The package opens no connections itself and makes no decisions about jobs or instances.
package hosts
