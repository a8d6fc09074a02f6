package hosts

import (
	"context"
	"errors"
	"testing"
)

type namedOpener struct{ err error }

func (o namedOpener) Open(context.Context, *Host) (Link, error) { return nil, o.err }

// Each host gets the opener of its kind of link; an unknown kind is a person's
// mistake and names what there is.
func TestRouter(t *testing.T) {
	ssh, local := errors.New("ssh"), errors.New("local")
	r := Router{"ssh": namedOpener{ssh}, "local": namedOpener{local}}
	for link, want := range map[string]error{"ssh": ssh, "local": local} {
		if _, err := r.Open(t.Context(), &Host{Name: "melon4", Link: link}); err != want {
			t.Errorf("%s: got %v", link, err)
		}
	}
	_, err := r.Open(t.Context(), &Host{Name: "melon4", Link: "carrier pigeon"})
	if ClassOf(err) != Misconfigured {
		t.Errorf("class %v of %v", ClassOf(err), err)
	}
	if got, want := err.Error(), `melon4: no link of the kind "carrier pigeon" (this program knows: local, ssh)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A command's end is told apart by code and signal.
func TestExitErrorText(t *testing.T) {
	for _, c := range []struct {
		err  ExitError
		want string
	}{{ExitError{Code: 3}, "exit code 3"}, {ExitError{Code: -1, Signal: "SIGKILL"}, "ended by SIGKILL"}} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
