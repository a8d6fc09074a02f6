package control

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peer returns the user at the other end of a unix socket, as the kernel knows him.
func peer(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	return int(cred.Uid), nil
}

// checkPeer refuses everybody but this user and root.
func checkPeer(conn *net.UnixConn, user int) error {
	uid, err := peer(conn)
	if err != nil {
		return fmt.Errorf("who is at the other end cannot be found out: %w", err)
	}
	if uid != user && uid != 0 {
		return fmt.Errorf("user %d is at the other end, who is neither user %d nor root", uid, user)
	}
	return nil
}
