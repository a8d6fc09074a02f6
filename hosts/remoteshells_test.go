package hosts

import "testing"

// A program that joins its words is recognized by its name, wherever it stands in the
// command. A host of that name does not count.
func TestRemoteShells(t *testing.T) {
	for link, want := range map[string]int{
		`"ssh {name}"`: 1,
		`"/usr/bin/ssh -J gate -o BatchMode=yes {name}"`:     1,
		`"ssh -o 'ProxyCommand=ssh -W %h:%p gate' {name}"`:   1,
		`["env", "KRB5CCNAME=/tmp/k", "ssh", "{name}"]`:      1,
		`"ssh gate ssh {name}"`:                              2,
		`"ssh {name} docker exec -i box"`:                    1,
		`"gcloud compute ssh {name} --"`:                     1,
		`"docker exec -i {name}"`:                            0,
		`"kubectl exec -i {name} --"`:                        0,
		`"srun --jobid=7"`:                                   0,
		`"sshpass-like {name}"`:                              0,
		`["sh", "-c", "exec my-way-in {name} \"$3\"", "sh"]`: 0,
		`"ssh"`:   0,
		`"local"`: 0,
	} {
		inv, _, err := Parse([]byte("[[host]]\nname = \"ssh\"\nlink = "+link+"\n"), "f")
		if err != nil {
			t.Errorf("%s: %v", link, err)
			continue
		}
		if got := inv.Hosts[0].Shells; got != want {
			t.Errorf("%s: %d shells, want %d", link, got, want)
		}
	}
	inv, _, err := Parse([]byte("[defaults]\nlink = 'ssh {name}'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\nlink = 'docker exec -i b'\n"), "f")
	if err != nil || inv.Hosts[0].Shells != 1 || inv.Hosts[1].Shells != 0 {
		t.Errorf("%+v, %v", inv, err)
	}
}
