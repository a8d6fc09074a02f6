package hosts

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// gcloudStub knows only the calls of examples/gcloud, and refuses any other arguments. It keeps the
// machines as files in $DIR.
const gcloudStub = `#!/bin/sh
name=$4
case "$*" in
"compute instances create $name --zone=europe-west1-b --machine-type=e2-standard-8 "\
"--image-family=my-experiment --max-run-duration=12h --instance-termination-action=DELETE --quiet")
	[ ! -e "$DIR/$name" ] && echo 10.0.0.${name##*-} > "$DIR/$name" ;;
"compute instances list --filter=name~^dcs-run- --format=value(name,networkInterfaces[0].accessConfigs[0].natIP)")
	cd "$DIR" && for n in dcs-run-*; do [ ! -e "$n" ] || printf '%s\t%s\n' "$n" "$(cat "$n")"; done ;;
"compute instances list --filter=name="*" --format=value(name)")
	[ ! -e "$DIR/offline" ] || exit 1
	n=${4#--filter=name=}; [ ! -e "$DIR/$n" ] || echo "$n" ;;
"compute instances delete $name --zone=europe-west1-b --quiet")
	[ ! -e "$DIR/refuse" ] && [ -e "$DIR/$name" ] && rm "$DIR/$name" ;;
*) echo "ERROR: (gcloud) unrecognized arguments: $*" >&2; exit 2 ;;
esac
`

// TestGcloudExample checks the commands of examples/gcloud against a stub of gcloud that checks
// their arguments: machines are created, listed with their addresses, and deleted; one that does not
// exist is deleted without an error, and one that could not be deleted with one.
func TestGcloudExample(t *testing.T) {
	text, err := os.ReadFile("../examples/gcloud/hosts.toml")
	polltest.Must(t, err)
	inv, warnings, err := Parse(text, "hosts.toml")
	if err != nil || len(warnings) > 0 || len(inv.Providers) != 1 {
		t.Fatalf("got %+v, %v, %v", inv, warnings, err)
	}
	p, dir, bin := inv.Providers[0], filepath.Join(t.TempDir(), "machines"), t.TempDir()
	polltest.Must(t, os.Mkdir(dir, 0o700))
	polltest.Must(t, os.WriteFile(filepath.Join(bin, "gcloud"), []byte(gcloudStub), 0o700))
	t.Setenv("DIR", dir)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx := context.Background()
	listed := func(want string) {
		t.Helper()
		list, err := p.Instances(ctx, "dcs-run")
		polltest.Must(t, err)
		var got []string
		for _, in := range list {
			got = append(got, in.Name+"="+strings.Join(in.Hosts[0].Addresses, ","))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("machines: %q, want %q", text, want)
		}
	}
	for n := 1; n <= 2; n++ {
		polltest.Must(t, p.CreateInstance(ctx, "dcs-run", InstanceName("dcs-run", n)))
	}
	polltest.Must(t, os.WriteFile(filepath.Join(dir, "dcs-other-1"), nil, 0o600))
	listed("dcs-run-1=10.0.0.1 dcs-run-2=10.0.0.2")
	for range 2 { // the second time it does not exist
		polltest.Must(t, p.TerminateInstance(ctx, "dcs-run", "dcs-run-1"))
	}
	listed("dcs-run-2=10.0.0.2")
	polltest.Must(t, os.WriteFile(filepath.Join(dir, "refuse"), nil, 0o600))
	if err := p.TerminateInstance(ctx, "dcs-run", "dcs-run-2"); err == nil {
		t.Error("a machine that could not be deleted counts as deleted")
	}
	polltest.Must(t, os.WriteFile(filepath.Join(dir, "offline"), nil, 0o600))
	if err := p.TerminateInstance(ctx, "dcs-run", "dcs-run-1"); err == nil {
		t.Error("a machine of which nothing is known counts as deleted")
	}
}
