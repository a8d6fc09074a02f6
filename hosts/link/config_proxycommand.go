package link

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// jumpCommand matches a command, its words separated by single spaces, that does what ProxyJump
// does: `ssh -W %h:%p gate`, or the older `ssh gate nc %h %p`. Options may stand on both sides of
// the gateway.
var jumpCommand = sync.OnceValue(func() *regexp.Regexp {
	const options = `((?: (?:-[qTxan]|-W ?(?:%h|\[%h\]):%p|-l ?\S+|-p ?\S+))*)`
	return regexp.MustCompile(`^(?:exec )?(?:\S*/)?ssh` + options + ` ([^-|;&<>$\x60, ][^|;&<>$\x60, ]*)` + options +
		`( (?:\S*/)?(?:nc|ncat|netcat)(?: .*)? %h %p)?$`)
})

// sshOption matches an option of such a command.
var sshOption = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` -([qTxan]|([Wlp]) ?(\S+))`) })

// jumpOfProxyCommand returns the gateway of a ProxyCommand that does what ProxyJump does, in the
// form of ProxyJump. It returns "" for any other command.
func jumpOfProxyCommand(command []string) string {
	m := jumpCommand().FindStringSubmatch(strings.Join(command, " "))
	if m == nil {
		return ""
	}
	gateway, netcat := m[2], m[4] != ""
	values := map[string]string{}
	for _, option := range sshOption().FindAllStringSubmatch(m[1]+m[3], -1) {
		values[option[2]] = option[3]
	}
	if netcat == (values["W"] != "") { // it forwards in neither way, or in both
		return ""
	}
	if user := values["l"]; user != "" && !strings.Contains(gateway, "@") {
		gateway = user + "@" + gateway
	}
	if port := values["p"]; port != "" {
		gateway += ":" + port
	}
	return gateway
}

// proxyTokens returns the tokens of ProxyCommand and ProxyJump (ssh_config(5), section TOKENS).
func (t *Target) proxyTokens() tokens {
	return tokens{"%h": t.HostName, "%p": strconv.Itoa(t.Port), "%r": t.User, "%n": t.Alias, "%%": "%"}
}

// setProxyCommand sets the ProxyCommand of t. The command is the user's own shell text. What its
// tokens insert may come from elsewhere, so shell syntax in it is refused, as OpenSSH does since
// version 9.6.
func setProxyCommand(t *Target, s settings, command string) error {
	if !isOff(s.first("proxyusefdpass")) {
		return errors.New("ProxyUseFdpass yes in the ssh configuration is not supported: " +
			"without it the ProxyCommand must pass the bytes on itself; or " + useSSH(t.Config))
	}
	values := t.proxyTokens()
	for _, token := range []string{"%h", "%n", "%r"} {
		if strings.Contains(command, token) && strings.ContainsAny(values[token], "'`\"$\\;&<>|(){}*?[]!# \t\r\n") {
			return fmt.Errorf("%q cannot stand for %s in the ProxyCommand, because the shell would interpret it",
				values[token], token)
		}
	}
	t.proxyPattern = command
	var err error
	t.ProxyCommand, err = values.expand(command)
	if err != nil {
		return fmt.Errorf("ProxyCommand: %w", err)
	}
	return nil
}
