package hosts

import (
	"net/netip"
)

// NetworkPart is a part of the network whose failure cuts off all hosts behind it. The zero value
// is our own connection to the network, which leads to every remote host.
type NetworkPart struct {
	Gateway string
	Prefix  netip.Prefix
}

// The lengths of the prefixes of addresses that are assumed to belong to one network.
const (
	prefixLen4 = 24
	prefixLen6 = 64
)

// NetworkParts returns the parts of the network that lead to the host, as far as the inventory
// shows. A local host needs none of them. Behind a gateway, the address is that of another network.
func (h *Host) NetworkParts() []NetworkPart {
	if h.Link == "local" {
		return nil
	}
	parts := []NetworkPart{{}}
	for _, jump := range h.Jump {
		parts = append(parts, NetworkPart{Gateway: jump})
	}
	if len(h.Jump) > 0 || h.Link != "ssh" {
		return parts
	}
	for _, text := range h.Addresses {
		if at, err := netip.ParseAddr(text); err == nil {
			parts = append(parts, NetworkPart{Prefix: prefixOf(at)})
		}
	}
	return parts
}

// prefixOf returns the network to which an address is assumed to belong.
func prefixOf(at netip.Addr) netip.Prefix {
	bits := prefixLen6
	at = at.Unmap().WithZone("")
	if at.Is4() {
		bits = prefixLen4
	}
	prefix, _ := at.Prefix(bits) // such a prefix always exists
	return prefix
}

// String describes the hosts behind the part, as the subject of a sentence.
func (p NetworkPart) String() string {
	switch {
	case p.Gateway != "":
		return "every host behind the gateway " + p.Gateway
	case p.Prefix.IsValid():
		return "every host in the network " + p.Prefix.String()
	}
	return "every remote host"
}
