package control

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"dcs-tui/jobs/runview"
)

// Dial connects to the socket of a dispatcher on this machine. run is the uid of the
// run that it must have.
func Dial(ctx context.Context, address, run, program string) (*Client, error) {
	dir := filepath.Dir(address)
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, gone(err)
	}
	uid := os.Geteuid()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && uid == 0 {
		uid = int(owner.Uid) // root may look at anybody's
	}
	if err := checkDir(dir, uid); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, gone(err)
	}
	if uc, ok := conn.(*net.UnixConn); ok {
		if err := checkPeer(uc, uid); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return NewClient(ctx, conn, run, program)
}

// gone says of an error in connecting that nobody is there.
func gone(err error) error { return fmt.Errorf("%w: %w", runview.ErrGone, err) }

// NewClient begins to talk on a connection, which is the client's from now on. What
// ctx bounds is the beginning.
func NewClient(ctx context.Context, conn net.Conn, run, program string) (*Client, error) {
	return newClient(ctx, conn, Hello{V: Version, Program: program, Run: run}, "")
}

// NewFarClient is NewClient for the dispatcher of another machine, of which nothing
// can be looked at: it must prove that it knows the secret of the run. The directory of
// sockets there may be gone, after a boot say, and somebody else's be in its place.
func NewFarClient(ctx context.Context, conn net.Conn, run, program, secret string) (*Client, error) {
	if secret == "" {
		conn.Close()
		return nil, errUnproven
	}
	return newClient(ctx, conn, Hello{V: Version, Program: program, Run: run, Nonce: rand.Text()}, secret)
}

var errUnproven = errors.New("who answers there does not prove to be the dispatcher of this run: nothing is shown and nothing asked")

func newClient(ctx context.Context, conn net.Conn, ours Hello, secret string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // not every connection has deadlines
	r := bufio.NewReader(conn)
	theirs, err := greet(conn, r, ours)
	if err == nil && !hmac.Equal([]byte(theirs.Proof), []byte(prove(secret, ours.Nonce))) {
		err = errUnproven
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w within %v", ErrDeaf, helloWithin)
		}
		return nil, err
	}
	c := &Client{conn: conn, hello: *theirs, slots: make(chan struct{}, maxCalls), queue: make(chan *request, 2*maxCalls),
		done: make(chan struct{}), calls: map[uint64]chan<- *reply{}}
	c.all.Go(c.write)
	c.all.Go(func() { c.read(newMessages(r)) })
	return c, nil
}

func greet(conn net.Conn, r *bufio.Reader, ours Hello) (*Hello, error) {
	if err := ours.write(conn); err != nil && !errors.Is(err, syscall.EPIPE) { // who hung up may have said why
		return nil, gone(err)
	}
	theirs, err := readHello(r)
	switch {
	case errors.Is(err, errStranger):
		return nil, err
	case err != nil:
		return nil, gone(err)
	case theirs.V != Version:
		return nil, &VersionError{Ours: ours, Theirs: *theirs}
	case ours.Run != "" && theirs.Run != ours.Run:
		return nil, gone(errors.New("its socket is that of another run now"))
	case theirs.Refused != "":
		return nil, fmt.Errorf("the dispatcher refuses: %s", theirs.Refused)
	}
	return theirs, nil
}
