// Package sshlink is the Link over ssh, on golang.org/x/crypto/ssh: no ssh
// program is run. It takes what sshconf resolved and opens one connection a
// host, through gateways where there are any, on which commands run in
// channels of their own.
//
// Host keys are strict, keys come from the agent, from files and with
// certificates; there is no password, no agent forwarding and no terminal.
// Every step that waits for the network has a limit, and its remedy is closing
// the connection: the library's own calls can wait for ever.
//
// The package does not look for a better moment to try again; that is the
// dispatcher's decision, made from the class of the error.
package sshlink
