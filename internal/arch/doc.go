// Package arch tests the architecture: which package may import which, that the dispatcher and the
// screen never import ssh, and that every package has a doc comment. It has only tests.
package arch
