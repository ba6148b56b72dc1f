package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// formula writes the Homebrew formula, which installs the archives.
func (r *release) formula() error {
	if r.url == "" {
		r.say("formula: left out, because it names the address of the archives; give it with URL=https://…")
		return nil
	}
	if !slices.ContainsFunc(r.platforms, func(p platform) bool { return p.os == "darwin" || p.os == "linux" }) {
		r.say("formula: left out, because neither macOS nor Linux is built")
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, `class Ken < Formula
  desc "One catalog of what an AI agent can do: find, govern, run and record"
  homepage %q
  version %q
  license "Apache-2.0"
`, r.url, r.version)
	for _, system := range []struct{ goos, block string }{{"darwin", "on_macos"}, {"linux", "on_linux"}} {
		var urls strings.Builder
		for _, cpu := range []struct{ goarch, block string }{{"arm64", "on_arm"}, {"amd64", "on_intel"}} {
			p := platform{system.goos, cpu.goarch}
			if r.binaries[p] == "" {
				continue
			}
			name, _ := r.archiveName(p)
			digest, _, err := digestOf(filepath.Join(r.out, name))
			if err != nil {
				return fmt.Errorf("%w; the formula needs the archives", err)
			}
			fmt.Fprintf(&urls, "    %s do\n      url %q\n      sha256 %q\n    end\n", cpu.block, strings.TrimSuffix(r.url, "/")+"/"+name, digest)
		}
		if urls.Len() > 0 {
			fmt.Fprintf(&b, "\n  %s do\n%s  end\n", system.block, urls.String())
		}
	}
	b.WriteString(`
  def install
    bin.install "ken"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/ken.bash" => "ken"
    zsh_completion.install "completions/_ken"
    fish_completion.install "completions/ken.fish"
    doc.install "LICENSES.txt", "NOTICE"
  end

  service do
    run [opt_bin/"ken", "serve"]
    keep_alive true
    error_log_path var/"log/ken.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/ken --version")
  end
end
`)
	return r.put("ken.rb", []byte(b.String()))
}
