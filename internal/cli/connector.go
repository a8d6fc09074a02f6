package cli

import (
	"dcs-tui/hosts"
	"dcs-tui/hosts/cmdlink"
	"dcs-tui/hosts/helper/client"
	"dcs-tui/hosts/locallink"
)

// connector wires the links together. log takes what helpers say.
func (a *app) connector(o *options, inv *loadedInventory, log func(host, line string)) (hosts.Connector, error) {
	router := hosts.Router{"local": locallink.Opener{}, "command": cmdlink.Opener{}}
	if usesSSH(inv.Hosts) {
		opener, err := a.sshOpener(o)
		if err != nil {
			return nil, err
		}
		router["ssh"] = opener
	}
	return client.New(client.Options{Opener: router, Log: log, Bases: a.bases}), nil
}

func usesSSH(hs []*hosts.Host) bool {
	for _, h := range hs {
		if h.Link == "ssh" {
			return true
		}
	}
	return false
}
