package control

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Version is that of the messages after the hellos: raise it when one of the two
// sides would misunderstand the other, also because it does not know a field, such as
// view.Action.Waiting, that it must not ignore. The hellos themselves never change but
// for fields that are added.
const Version = 1

// maxHello bounds a hello, in bytes.
const maxHello = 4096

// Hello is what each side says first: a line of JSON.
type Hello struct {
	V       int    `json:"dcs"`               // Version
	Program string `json:"program"`           // version of the program, for people
	Path    string `json:"path,omitempty"`    // of the program, for people
	Run     string `json:"run,omitempty"`     // uid of the run
	Epoch   int    `json:"epoch,omitempty"`   // of the dispatcher; the server's
	PID     int    `json:"pid,omitempty"`     // of the dispatcher; the server's
	Refused string `json:"refused,omitempty"` // why the server says no more
	Nonce   string `json:"nonce,omitempty"`   // the client's: prove that you know the secret of the run
	Proof   string `json:"proof,omitempty"`   // the server's
}

// prove is the answer to a nonce of whoever knows the secret.
func prove(secret, nonce string) string {
	if secret == "" || nonce == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("dcs-tui control\x00" + nonce))
	return hex.EncodeToString(mac.Sum(nil))
}

// VersionError says that a dispatcher and a screen are of different programs.
type VersionError struct {
	Ours   Hello // that of the side which cannot talk
	Theirs Hello
}

func (e *VersionError) Error() string {
	with := e.Theirs.Path
	if with == "" {
		with = "that one"
	}
	return fmt.Sprintf("the dispatcher of this run is dcs-tui %s, and this is %s: they do not understand each other; use %s to look at the run",
		e.Theirs.Program, e.Ours.Program, with)
}

func (h *Hello) write(w io.Writer) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(b) >= maxHello {
		return errors.New("the names in the hello are too long")
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

var errStranger = errors.New("what answers there is no dcs-tui")

func readHello(r *bufio.Reader) (*Hello, error) {
	var line []byte
	for {
		c, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		if c == '\n' {
			break
		}
		if line = append(line, c); len(line) >= maxHello {
			return nil, errStranger
		}
	}
	h := new(Hello)
	if err := json.Unmarshal(line, h); err != nil || h.V == 0 {
		return nil, errStranger
	}
	return h, nil
}
