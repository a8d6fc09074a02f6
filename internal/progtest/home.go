package progtest

// HomeEnv returns the environment variables that give a program a home directory of its own, with the
// user's settings and state in it. They come after those of the test.
func HomeEnv(dir string) []string {
	return []string{"HOME=" + dir, "XDG_CONFIG_HOME=", "XDG_STATE_HOME="}
}
