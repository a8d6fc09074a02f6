package cli

import (
	"dcs-tui/hosts"
	"dcs-tui/hosts/cmdlink"
	"dcs-tui/hosts/helper/client"
	"dcs-tui/hosts/locallink"
)

// connector wires the links together. log takes what helpers say.
func (a *app) connector(o *options, hs []*hosts.Host, log func(host, line string)) (hosts.Connector, error) {
	if err := a.checkSSH(o, hs); err != nil {
		return nil, err
	}
	a.checkBinary(hs)
	router := hosts.Router{"local": locallink.Opener{}, "command": cmdlink.Opener{}}
	if a.ssh != nil {
		router["ssh"] = a.sshOpener(o)
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
