package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// packages writes the Debian and RPM packages, by way of nfpm.
func (r *release) packages() error {
	nfpm := ""
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		if nfpm == "" {
			var err error
			if nfpm, err = r.tool("nfpm", "github.com/goreleaser/nfpm/v2/cmd/nfpm"); err != nil {
				return err
			}
		}
		if err := r.packagesFor(p, nfpm); err != nil {
			return err
		}
	}
	if nfpm == "" {
		r.say("packages: left out, because no Linux platform is built")
	}
	return nil
}

func (r *release) packagesFor(p platform, nfpm string) error {
	dir := filepath.Join(r.work, "packages", p.arch)
	var contents []object
	files, err := r.packageFiles(p)
	if err != nil {
		return err
	}
	for _, f := range files {
		from := filepath.Join(dir, "files", filepath.FromSlash(f.name))
		data, err := f.content()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(from, data, 0o644); err != nil {
			return err
		}
		contents = append(contents, object{"src": from, "dst": "/" + f.name, "file_info": object{"mode": int(f.mode), "mtime": r.date.Format(time.RFC3339), "owner": "root", "group": "root"}})
	}
	scripts := object{}
	for _, name := range []string{"postinstall", "preremove", "postremove"} {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, packaged(name+".sh"), 0o755); err != nil {
			return err
		}
		scripts[name] = at
	}
	version, prerelease, _ := strings.Cut(r.version, "-")
	config, err := indented(object{
		"name": "ken", "arch": p.arch, "platform": "linux", "version": version, "prerelease": prerelease, "release": "1", "version_schema": "none",
		"maintainer": "The Ken authors <ken@localhost>", "license": "Apache-2.0", "section": "utils", "priority": "optional", "mtime": r.date.Format(time.RFC3339),
		"description": "One catalog of what an AI agent can do: find, govern, run and record\nKen sits between an AI agent and its capabilities. The package has the program\nand a service that runs as a user of its own, behind a token.",
		"contents":    contents, "scripts": scripts,
		"rpm": object{"buildhost": "localhost", "summary": "One catalog of what an AI agent can do", "compression": "gzip"},
		"overrides": object{
			"deb": object{"recommends": []string{"ca-certificates"}},
			"rpm": object{"depends": []string{"shadow-utils"}, "recommends": []string{"ca-certificates"}},
		},
	})
	if err != nil {
		return err
	}
	about := filepath.Join(dir, "nfpm.yaml") // JSON is YAML
	if err := os.WriteFile(about, config, 0o644); err != nil {
		return err
	}
	for _, kind := range []string{"deb", "rpm"} {
		name := "ken_" + r.version + "_linux_" + p.arch + "." + kind
		if _, err := r.output(dir, nfpm, "package", "--config", about, "--packager", kind, "--target", filepath.Join(r.out, name)); err != nil {
			return err
		}
		_, size, err := digestOf(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		r.say("write %s (%.1f MB)", name, float64(size)/1e6)
	}
	return nil
}

// packageFiles returns what a package installs, by its place in the file system.
func (r *release) packageFiles(p platform) ([]file, error) {
	out := []file{
		{name: "usr/bin/ken", mode: 0o755, from: r.binaries[p]},
		{name: "usr/lib/systemd/system/ken.service", mode: 0o644, data: packaged("ken.service")},
	}
	completions := map[string]string{
		"ken.bash": "usr/share/bash-completion/completions/ken", "_ken": "usr/share/zsh/vendor-completions/_ken", "ken.fish": "usr/share/fish/vendor_completions.d/ken.fish",
	}
	for _, f := range r.shared {
		folder, name := path.Split(f.name)
		small := false
		switch {
		case folder == "man/":
			f.name, small = "usr/share/man/man1/"+name+".gz", true
		case folder == "completions/":
			f.name = completions[name]
		case name == "LICENSE":
			f.name = "usr/share/doc/ken/copyright" // where Debian looks for it
		case name == "CHANGELOG.md":
			f.name, small = "usr/share/doc/ken/CHANGELOG.md.gz", true
		default:
			f.name = "usr/share/doc/ken/" + name
		}
		if small {
			data, err := gzipped(f)
			if err != nil {
				return nil, err
			}
			f.data, f.from = data, ""
		}
		if f.name != "" { // Linux has no PowerShell of its own
			out = append(out, f)
		}
	}
	return out, nil
}

func gzipped(f file) ([]byte, error) {
	data, err := f.content()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
