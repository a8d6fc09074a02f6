// Command hostprog is the program that a dcs-tui of a release copies to hosts: the helper, the
// supervisors, and the suspender, without the commands of users, which are three quarters of dcs-tui.
// dcs-tui itself has these entry points, too, for hosts of its own kind if it carries no programs.
// scripts/host-programs builds it, and limits its size.
package main

import (
	"os"

	"dcs-tui/hosts/helper/remote"
)

func main() { os.Exit(remote.Main(os.Args[1:])) }
