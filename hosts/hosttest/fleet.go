package hosttest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	xssh "golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
)

// Fleet is an ssh server in this process that plays many hosts, without a process for any of them.
// The user of a connection is the name of the host. It is safe for concurrent use.
type Fleet struct {
	ConfigFile string // an ssh_config for clients

	hosts    *Hostiles
	config   *xssh.ServerConfig
	listener net.Listener
	done     sync.WaitGroup

	mu          sync.Mutex
	conns       map[net.Conn]bool
	closed      bool
	numAccepted int
}

// NewFleet starts the server. dir gets the files of clients. The caller must call Close.
func NewFleet(dir string, list *Hostiles) (*Fleet, error) {
	f := &Fleet{ConfigFile: filepath.Join(dir, "ssh_config"), hosts: list, conns: map[net.Conn]bool{}}
	_, hostKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := xssh.NewSignerFromKey(hostKey)
	if err != nil {
		return nil, err
	}
	_, userKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := xssh.MarshalPrivateKey(userKey, "hosttest")
	if err != nil {
		return nil, err
	}
	key, known := filepath.Join(dir, "key"), filepath.Join(dir, "known_hosts")
	for path, text := range map[string]string{
		key:   string(pem.EncodeToMemory(block)),
		known: "fleet " + string(xssh.MarshalAuthorizedKey(signer.PublicKey())),
		f.ConfigFile: fmt.Sprintf("HostKeyAlias fleet\nUserKnownHostsFile %s\nIdentityFile %s\nIdentityAgent none\n",
			known, key),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	f.config = &xssh.ServerConfig{
		PublicKeyCallback: func(xssh.ConnMetadata, xssh.PublicKey) (*xssh.Permissions, error) { return nil, nil }}
	f.config.AddHostKey(signer)
	address := "127.0.0.1:0"
	if runtime.GOOS == "linux" { // all of 127.0.0.0/8 is local there
		address = "0.0.0.0:0"
	}
	if f.listener, err = net.Listen("tcp4", address); err != nil {
		return nil, err
	}
	f.done.Go(f.accept)
	return f, nil
}

// Port returns the port of the server.
func (f *Fleet) Port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// FleetHost returns the inventory entry of the ith host of the Fleet with that port. On Linux each host
// has an address of its own.
func FleetHost(port, i int) *hosts.Host {
	address := "127.0.0.1"
	if runtime.GOOS == "linux" {
		address = fmt.Sprintf("127.1.%d.%d", i/200, i%200+1)
	}
	return &hosts.Host{Name: fmt.Sprintf("node%04d", i), Addresses: []string{address},
		Port: port, User: fmt.Sprintf("node%04d", i), Link: "ssh",
		Slots: hosts.SlotRule{Fixed: 4}, Weight: 1, GPUs: -1}
}

// NumAccepted returns how many connections have been accepted so far.
func (f *Fleet) NumAccepted() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.numAccepted
}

// Cut cuts all connections at once.
func (f *Fleet) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
}

// Close cuts all connections and ends the server.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.listener.Close()
	f.Cut()
	f.done.Wait()
}

func (f *Fleet) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		if f.closed {
			conn.Close()
		}
		f.numAccepted++
		f.conns[conn] = true
		f.mu.Unlock()
		f.done.Go(func() {
			f.serve(conn)
			conn.Close()
			f.mu.Lock()
			delete(f.conns, conn)
			f.mu.Unlock()
		})
	}
}

// serve serves a connection until it ends.
func (f *Fleet) serve(conn net.Conn) {
	c, channels, requests, err := xssh.NewServerConn(conn, f.config)
	if err != nil {
		return
	}
	f.done.Go(func() { xssh.DiscardRequests(requests) })
	for n := range channels {
		ch, requests, err := n.Accept()
		if err != nil {
			continue
		}
		f.done.Go(func() {
			for r := range requests {
				var command struct{ Text string }
				ok := r.Type == "exec" && xssh.Unmarshal(r.Payload, &command) == nil
				r.Reply(ok, nil)
				if ok {
					f.done.Go(func() { f.runHelper(c.User(), command.Text, ch) })
				}
			}
		})
	}
}

// runHelper plays a helper in a channel until either side ends.
func (f *Fleet) runHelper(host, command string, ch xssh.Channel) {
	defer ch.Close()
	link, err := f.hosts.Open(context.Background(), &hosts.Host{Name: host})
	if err != nil {
		return
	}
	s, err := link.Start(context.Background(), command)
	if err != nil {
		return
	}
	f.done.Go(func() {
		io.Copy(s.Stdin(), ch)
		link.Close()
	})
	_, err = io.Copy(ch, s)
	if err == nil && s.Wait() == nil {
		ch.SendRequest("exit-status", false, xssh.Marshal(struct{ Status uint32 }{0}))
	}
	link.Close()
}
