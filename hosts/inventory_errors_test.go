package hosts

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestErrorsNameFileAndLine checks that unknown keys, bad values, and duplicates are errors with
// file and line.
func TestErrorsNameFileAndLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "f: no [[host]]"},
		{"# nothing\n", "f: no [[host]]"},
		{"[[host]\nname='a'", "f:1: "},
		{"[[host]]\nname = \n", "f:2: "},
		{"[[host]]\nname = \"a\"\nslots\u00a0= 2 # “x”\n",
			"f:3: the character U+00A0 is a no-break space: write a plain space"},
		{"[[host]]\nname = “a” # mine\n", "f:2: the character U+201C is a typographic quote"},
		{"[[host]]\nname = ws01 # “mine”\n", `f:2: ws01 is not a value`},
		{"[[host]]\nname = 'a\u00a0'\n", "f:2: name: the character U+00A0"},
		{"[[host]]\nname = 'a'\ntags = ['b', 'c\u200b']\n", "f:3: tags: the character U+200B is invisible: remove it"},
		{"[[host]]\nname = 'a'\nuser = '“x”'\n", "f:3: user: \"“x”\" is not a user name: the character U+201C"},
		{"[[host]]\nname = ws01 # mine\n", `f:2: ws01 is not a value; a text needs quotes: name = "ws01"`},
		{"[[host]]\nname = '1'\nmin_mem_free = 8G\nuser = 'u'\n",
			`f:3: 8G is not a value; a text needs quotes: min_mem_free = "8G"`},
		{"[[host]]\nname = 'a'\nuser = \"bob\nport = 22\n", `f:3: the closing " is missing`},
		{"[[host]]\nname = 'a'\nuser = 'bob", "f:3: the closing ' is missing"},
		{"[[host]]\nname = 'a'\ntags = [gpu]\n", "f:3: gpu is not a value; a text needs quotes: tags = [\"gpu\"]"},
		{"[[host]]\nname = 'a'\nname = 'b'\n", "f:3: "},
		{"[[host]]\nport = 22\n", "f:1: a [[host]] without a name"},
		{"[[host]]\nname='a'\n\nprot = 22\n", `f:4: unknown key "prot"; did you mean "port"?`},
		{"[[host]]\nname='a'\nlost-after='60s'\n", `f:3: unknown key "lost-after"; did you mean "lost_after"?`},
		{"[[host]]\nname='a'\nmem_min_free='1G'\n", `f:3: unknown key "mem_min_free"; did you mean "min_mem_free"?`},
		{"[[host]]\nname='a'\nxyzzy = 22\n", `f:3: unknown key "xyzzy"`},
		{"[[host]]\nname='a'\n[host.more]\nx=1\n", `f:3: unknown key "more"`},
		{"[[host]]\nname='a'\n[[host]]\nname='b'\nmore.x=1\n", `f:5: unknown key "more"`},
		{"[[host]]\nname='a'\n[other]\nx=1\n", `f:3: unknown table or key "other"`},
		{"[[host]]\nname='a'\n[[hosts]]\nname='b'\n", `f:3: unknown table or key "hosts"`},
		{"port=22\n[[host]]\nname='a'\n", `f:1: "port" stands outside any table`},
		{"[[host]]\nname='a'\n\n[[provider]]\nname='cloud'\n",
			"f:4: a [[provider]] without a create, list, terminate, max"},
		{"[[provider]]\ncreate='a'\nlist='b'\nterminate='c'\nmax=1\n", "f:1: a [[provider]] without a name"},
		{"[[provider]]\nname='a'\ncreat='x'\n", `f:3: unknown key "creat"; did you mean "create"?`},
		{"[[provider]]\nname='a'\ncreate=3\n", "f:3: create: must be a text in quotes, not a whole number"},
		{"[[provider]]\nname='a'\ncreate=' '\n", "f:3: create: must not be empty"},
		{"[[provider]]\nname='a b'\ncreate='a'\nlist='b'\nterminate='c'\nmax=1\n",
			"f:2: the host name \"a b\" contains"},
		{"[[provider]]\nname='a'\nmax=0\n", "f:3: max: must be from 1 to 1000"},
		{
			"[[provider]]\nname='a'\ncreate='a'\nlist='b'\nterminate='c'\nmax=1\nmin=2\n",
			"f:7: min: must be at most max = 1, not 2",
		},
		{"[[provider]]\nname='a'\nrule='fast'\n", `f:3: rule: must be one of work, queue, eager, not "fast"`},
		{"[[provider]]\nname='a'\nrule=2\n", "f:3: rule: "},
		{"[[provider]]\nname='a'\nidle='0s'\n", "f:3: idle: "},
		{"[[provider]]\nname='a'\nstartup='soon'\n", "f:3: startup: "},
		{"[[provider]]\nname='a'\nprice=-1\n", "f:3: price: must be"},
		{"[[provider]]\nname='a'\ncreate='a'\nlist='b'\nterminate='c'\nmax=1\nlink='local'\n",
			"f:7: link: an instance is another machine"},
		{"[[provider]]\nname='a'\ncreate='a'\nlist='b'\nterminate='c'\nmax=1\naddress='a:22'\n", "f:7: address: "},
		{"[[host]]\nname='a'\nidle='5m'\n", "f:3: idle belongs in a [[provider]]"},
		{"[[host]]\nname='a'\ncreat=1\n", `f:3: unknown key "creat"`},
		{"[provider]\nname='a'\n", "f:1: write [[provider]] with double brackets"},
		{"[host]\nname='a'\n", "f:1: write [[host]] with double brackets"},
		{"host = [1]\n", "f:1: write [[host]] with double brackets"},
		{"[[defaults]]\nport=1\n[[host]]\nname='a'\n", "f:1: defaults must be a table"},
		{"[defaults]\nport=22\nname='a'\n[[host]]\nname='a'\n", "f:3: name belongs in a [[host]]"},
		{"[[host]]\nname='a'\nport='22'\n", "f:3: port: must be a whole number without quotes, not a text"},
		{"[[host]]\nname='a'\nport=0\n", "f:3: port: must be from 1 to 65535, not 0"},
		{"[[host]]\nname='a'\nport=9223372036854775807\n", "f:3: port: must be from 1 to 65535"},
		{"[[host]]\nname='a'\nport=2.5\n", "f:3: port: must be a whole number without quotes, not a decimal number"},
		{"[[host]]\nname='a'\ngpu_ids=[0, -1]\n", "f:3: gpu_ids: must be numbers of devices, such as [0, 2], not -1"},
		{"[[host]]\nname='a'\ngpu_ids='all'\n", "f:3: gpu_ids: must be numbers of devices, such as [0, 2], not all"},
		{"[[host]]\nname=1\n", "f:2: name: must be a text in quotes, not a whole number"},
		{"[[host]]\nname=''\n", "f:2: name: must not be empty"},
		{"[[host]]\nname='a b'\n", `f:2: the host name "a b" contains ' '`},
		{"[[host]]\nname='ä'\n", `f:2: the host name "ä" contains 'ä'`},
		{"[[host]]\nname='../x'\n", "f:2: the host name "},
		{"[[host]]\nname='a/b'\n", "f:2: the host name "},
		{"[[host]]\nname='-o'\n", "f:2: the host name "},
		{"[[host]]\nname='..'\n", "f:2: the host name "},
		{"[[host]]\nname=\"a\\u0000\"\n", "f:2: name: contains the control character"},
		{"[[host]]\nname='" + strings.Repeat("x", 64) + "'\n", "f:2: the host name xxxxxxxxxxxxxxxxxxxx… has 64"},
		{"[[host]]\nname='a[2-1]'\n", `f:2: name: "a[2-1]": the range [2-1] runs backwards`},
		{"[[host]]\nname='a[1-99999]'\n", "f:2: name: "},
		{"[[host]]\nname='a'\n[[host]]\nport=1\nname='a'\n", "f:5: the host a is given twice, first on line 2"},
		{"[[host]]\nname='n[1-3]'\n[[host]]\nname='n3'\n", "f:4: the host n3 is given twice, first on line 2"},
		{"[[host]]\nname='n[1,1]'\n", "f:2: the host n1 is given twice"},
		{"[[host]]\nname='n[1-3]'\naddress='x[1-2]'\n",
			"f:3: address: x[1-2] stands for 2 addresses, but the name n[1-3] for 3 hosts; " +
				"give one address for each host, or one for all"},
		{"[[host]]\nname='a'\naddress='b:22'\n", "f:3: address: \"b:22\": the port goes into `port`"},
		{"[[host]]\nname='a'\naddress='[fe80::1]:22'\n", "f:3: address: "},
		{"[[host]]\nname='a'\naddress='me@b'\n", "f:3: address: \"me@b\": the user goes into `user`"},
		{"[[host]]\nname='a'\naddress='-oProxyCommand=x'\n", "f:3: address: "},
		{"[[host]]\nname='a'\naddress=[]\n", "f:3: address: must not be an empty list"},
		{"[[host]]\nname='a'\nuser='-l'\n", "f:3: user: "},
		{"[[host]]\nname='a'\nidentity='id_rsa'\n", "f:3: identity: "},
		{"[[host]]\nname='a'\njump='-x'\n", "f:3: jump: "},
		{"[[host]]\nname='a'\nslots=0\n", "f:3: slots: must be at least 1"},
		{"[[host]]\nname='a'\nslots=-1\n", "f:3: slots: must be at least 1"},
		{"[[host]]\nname='a'\nslots=100000\n", "f:3: slots: must be at most 4096, not 100000"},
		{"[[host]]\nname='a'\nslots=4097\n", "f:3: slots: must be at most 4096, not 4097"},
		{"[[host]]\nname='a'\nslots='99999999999999999999'\n",
			"f:3: slots: must be at most 4096, not 99999999999999999999"},
		{"[[host]]\nname='a'\nslots='cores-5000'\n", "f:3: slots: must be at most 4096, not 5000"},
		{"[[host]]\nname='a'\nslots='cores--1'\n", "f:3: slots: must be a whole number"},
		{"[[host]]\nname='a'\nslots='core-1'\n", "f:3: slots: must be a whole number"},
		{"[[host]]\nname='a'\nslots=true\n", "f:3: slots: must be a whole number"},
		{"[[host]]\nname='a'\nslots='cores-1'\nreserve=2\n", "f:4: reserve = 2 contradicts"},
		{"[[host]]\nname='a'\nyield='no'\n", "f:3: yield: must be true or false"},
		{"[[host]]\nname='a'\nmax_load=-1\n", "f:3: max_load: must be"},
		{"[[host]]\nname='a'\nmax_load=nan\n", "f:3: max_load: must be"},
		{"[[host]]\nname='a'\nweight=0\n", "f:3: weight: must be"},
		{"[[host]]\nname='a'\nmin_mem_free='lots'\n", `f:3: min_mem_free: "lots" is not a size`},
		{"[[host]]\nname='a'\nquiet=['22-6']\n", "f:3: quiet: "},
		{"[[host]]\nname='a'\nquiet=[07:00:00]\n", "f:3: quiet: must be a text in quotes, not a date or time"},
		{"[[host]]\nname='a'\nnice=20\n", "f:3: nice: must be from 0 to 19"},
		{"[[host]]\nname='a'\ntags=['a b']\n", "f:3: tags: "},
		{"[[host]]\nname='a'\ngpus=-2\n", "f:3: gpus: must be from -1"},
		{"[[host]]\nname='a'\nwork_dir='scratch'\n", "f:3: work_dir: "},
		{"[[host]]\nname='a'\nsetup=[]\n", "f:3: setup: must be a text"},
		{"[[host]]\nname='a'\nlost_after='soon'\n", "f:3: lost_after: "},
		{"[[host]]\nname='a'\nlost_after=true\n",
			"f:3: lost_after: must be a duration such as \"60s\", not true or false"},
		{"[[host]]\nname='a'\nlost_after='-5s'\n", "f:3: lost_after: \"-5s\" is not a duration"},
		{"[[host]]\nname='a'\nlost_after='500ms'\n", "f:3: lost_after: must be at least 1s"},
		{"[[host]]\nname='a'\nheartbeat='500ms'\n", "f:3: heartbeat: must be at least 1s"},
		{"[[host]]\nname='a'\nheartbeat='31s'\n", "f:3: heartbeat: must be at most 30s"},
		{"[[host]]\nname='a'\nsuspect_after='5s'\n", "f:3: suspect_after: must be at least 6s"},
		{"[[host]]\nname='a'\nheartbeat='10s'\nsuspect_after='15s'\n",
			"f:3: suspect_after (15s) must be at least twice heartbeat (10s)"},
		{"[[host]]\nname='a'\nheartbeat='20s'\n",
			"f:3: lost_after (1m0s) must be at least five times heartbeat (20s), unless suspect_after says otherwise"},
		{"[defaults]\nsuspect_after='40s'\n[[host]]\nname='a'\nlost_after='30s'\n",
			"f:3: lost_after (30s) must be at least suspect_after (40s)"},
		{"[[host]]\nname='a'\nstraggler_factor=0.5\n", "f:3: straggler_factor: must be a number from 1 to 100"},
		{"[[host]]\nname='a'\nstraggler_factor='2'\n", "f:3: straggler_factor: must be a number"},
		{"[[host]]\nname='a'\nlink='shh'\n", `f:3: link: "shh" is neither "ssh" nor "local"`},
		{"[[host]]\nname='a'\nlink=[]\n", "f:3: link: "},
		{"[[host]]\nname='a'\nlink='a | b'\n", "f:3: link: "},
		{"[[host]]\nname='a'\nlink=3\n", "f:3: link: "},
		{"x\x00y", "f:1: a NUL byte"},
		{"\x7fELF\x01\x02\n", "f:1: "},
		{"\xff\xfe[\n", "f:"},
	} {
		t.Run(c.text, func(t *testing.T) {
			_, _, err := Parse([]byte(c.text), "f")
			var p Problems
			if !errors.As(err, &p) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
			}
		})
	}
}

// TestAllErrorsAtOnce checks that all errors are reported at once, in order of lines, each with the
// line of its key.
func TestAllErrorsAtOnce(t *testing.T) {
	_, _, err := Parse([]byte(`# "quotes' in a comment [[host]]
[defaults]
setup = """
[[host]]
port = "no"
"""
nice = 99
[[host]]
name = "a" # [[host]]
tags = [
  "x", # ]
  'y]', # not a tag
]
"port" = "22"
[[ host ]]
name = 'b'
setup = '''
weight = 0
''''
  weight = 0
[[host]]
name = 'c'
nice = -1
`), "f")
	want := []string{"f:7: nice", "f:10: tags", "f:14: port", "f:20: weight", "f:23: nice"}
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, w := range want {
		if i >= len(lines) || !strings.HasPrefix(lines[i], w) {
			t.Fatalf("got\n%v\nwant lines that start with %q", err, want)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("too many lines:\n%v", err)
	}
}

// TestManyErrorsAreBounded checks that only the first errors of a file are shown, and that the
// number of hosts is limited.
func TestManyErrorsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "[[host]]\nname = 'a%d'\nbad = 1\n", i)
	}
	_, _, err := Parse([]byte(b.String()), "f")
	if err == nil || !strings.HasSuffix(err.Error(), "\nf: and 80 more") {
		t.Errorf("got error %v, want one that ends with \"and 80 more\"", err)
	}
	_, _, err = Parse([]byte("[[host]]\nname='a[1-6000]'\n[[host]]\nname='b[1-6000]'\n[[host]]\nname='c[1-6000]'\n"),
		"f")
	if err == nil || err.Error() != "f:4: more than 10000 hosts in one inventory" {
		t.Errorf("got error %v, want one about more than 10000 hosts", err)
	}
}

// TestUnintendedSettingsAreWarnings checks that settings that are valid but surely unintended are
// warnings with file and line.
func TestUnintendedSettingsAreWarnings(t *testing.T) {
	for text, want := range map[string]string{
		"[[host]]\nname='a'\nslots=4\nreserve=2\n":           "f:4: reserve does nothing here",
		"[defaults]\nslots=4\nreserve=2\n[[host]]\nname='a'": "f:3: reserve does nothing here",
		"[[host]]\nname='a[1-2]'\naddress='b'\n":             "f:3: all 2 hosts of a[1-2] have the same address b",
		"[[host]]\nname='a'\nlink='local'\naddress='b'\n":    "f:4: address does nothing here: link is local",
		"[[host]]\nname='a'\nlink=['x']\n\nuser='b'\n": "f:5: user does nothing here: link is a command, " +
			"whose words must say how",
		"[[host]]\nname='a'\nsetup='b\u00a0c'\n": "f:3: setup: in a command, the character U+00A0",
		"[[host]]\nname='a'\nlost_after='5s'\n":  "f:3: lost_after is below 15s",
	} {
		t.Run(text, func(t *testing.T) {
			_, warnings, err := Parse([]byte(text), "f")
			if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], want) {
				t.Errorf("%q: %v, %v; want %s", text, warnings, err, want)
			}
		})
	}
}

// FuzzParse checks that each error of an inventory is at one of its lines, and that the hosts of a
// valid one are usable.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"[[host]]\nname='a'\n", "[defaults]\nslots='cores-1'\n[[host]]\nname='n[01-12]'\naddress='n[01-12].lab'\n",
		"host=[{name='a'},{name='b'}]",
		"[[host]]\nname=\"\"\"a\"\"\"\nbad=[[1],\n[2]]\n",
		"defaults.port=1\n[[host]]\nname='a'\nx.y.z=1",
		"[[host]]\nname='a'\nlink='docker exec -i {name}'\n",
		"[[host]]\nname='a'\nquiet='22:00-06:00'\nlost_after='5m'\nmin_mem_free='2G'\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		inv, _, err := Parse(data, "f")
		lines := 1 + strings.Count(string(data), "\n")
		if err != nil {
			var p Problems
			if !errors.As(err, &p) || len(p) == 0 {
				t.Fatalf("not Problems: %v", err)
			}
			for _, one := range p {
				if one.Line < 0 || one.Line > lines+1 || strings.ContainsRune(one.Text, '\n') {
					t.Fatalf("bad problem %+v of %d lines", one, lines)
				}
			}
			return
		}
		seen := map[string]bool{}
		for _, h := range inv.Hosts {
			if nameProblem(h.Name) != "" || seen[h.Name] || h.Line < 1 || h.Line > lines {
				t.Fatalf("host %+v", h)
			}
			seen[h.Name] = true
			if (h.Link == "ssh") != (len(h.Addresses) > 0) && h.Link == "ssh" ||
				(h.Link == "command") != (len(h.Command) > 0) {
				t.Fatalf("host %+v", h)
			}
		}
		if len(seen) == 0 || len(seen) > MaxHosts {
			t.Fatalf("%d hosts", len(seen))
		}
	})
}
