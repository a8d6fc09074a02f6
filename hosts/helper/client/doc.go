// Package client brings the helper to a host and speaks with it: it is the
// hosts.Connector of the dispatcher, the same over every Link.
//
// Connect opens a link, runs the one fixed text of bootstrap.go there, sends our
// own binary when the host does not have it, and exchanges Open and Hello. What
// it returns moves messages and nothing else: it sends no beats or pings, knows
// no jobs, and does not connect again by itself.
//
// Standard output of the far end is trusted only after a line that begins with a
// random nonce, because login shells print noise; what is noise is bounded. Every
// step has a deadline whose remedy is closing the link.
package client
