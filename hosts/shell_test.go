package hosts

import "testing"

// TestIsBourneShell checks that shells that are started by another program are recognized, too.
func TestIsBourneShell(t *testing.T) {
	for shell, want := range map[string]bool{"": true, "bash -e": true, "/usr/bin/zsh": true, "fish": false,
		"apptainer exec --nv /shared/lab.sif /bin/sh": true, "krenew -t -- /bin/sh -e": true,
		"/bin/tcsh -f": false, "python3": false} {
		if got := IsBourneShell(shell); got != want {
			t.Errorf("%q: got %t, want %t", shell, got, want)
		}
	}
}
