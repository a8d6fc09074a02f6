# Homebrew formula. scripts/dist replaces what stands between @ signs.
class DcsTui < Formula
  desc "Run thousands of shell commands on the cores of a lab's workstations"
  homepage "@homepage@"
  version "@version@".delete_prefix("v")
  license "MIT"

  on_macos do
    on_arm do
      url "@homepage@/releases/download/@version@/dcs-tui-@version@-darwin-arm64.tar.gz"
      sha256 "@sha256-darwin-arm64@"
    end
    on_intel do
      url "@homepage@/releases/download/@version@/dcs-tui-@version@-darwin-amd64.tar.gz"
      sha256 "@sha256-darwin-amd64@"
    end
  end

  on_linux do
    on_arm do
      url "@homepage@/releases/download/@version@/dcs-tui-@version@-linux-arm64.tar.gz"
      sha256 "@sha256-linux-arm64@"
    end
    on_intel do
      url "@homepage@/releases/download/@version@/dcs-tui-@version@-linux-amd64.tar.gz"
      sha256 "@sha256-linux-amd64@"
    end
  end

  def install
    bin.install "bin/dcs-tui"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/dcs-tui"
    zsh_completion.install "share/zsh/site-functions/_dcs-tui"
    fish_completion.install "share/fish/vendor_completions.d/dcs-tui.fish"
    doc.install Dir["share/doc/dcs-tui/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dcs-tui version")
  end
end
