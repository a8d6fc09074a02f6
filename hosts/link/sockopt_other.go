//go:build !linux

package link

import "syscall"

// control: TCP_USER_TIMEOUT is Linux's alone; keepalive probes must do elsewhere.
func control(_, _ string, _ syscall.RawConn) error { return nil }
