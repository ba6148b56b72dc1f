package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A release is a release in the making.
type release struct {
	options
	ctx context.Context

	date   time.Time // of the commit
	work   string    // a folder for what is made on the way
	source string    // the exported commit
	module string    // its module path

	binaries map[platform]string
	shared   []file // what every archive and package holds beside the binary
}

func makeRelease(ctx context.Context, o options) (err error) {
	r := &release{options: o, ctx: ctx, binaries: map[platform]string{}}
	if err := r.find(); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "ken-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := r.export(); err != nil {
		return fmt.Errorf("export commit %s: %w", r.commit, err)
	}
	if err := empty(r.out); err != nil {
		return err
	}
	for _, p := range r.platforms {
		if r.binaries[p], err = r.build(p); err != nil {
			return fmt.Errorf("build for %s: %w", p, err)
		}
	}
	if err := r.gatherShared(); err != nil {
		return err
	}
	for _, step := range []struct {
		kind string
		make func() error
	}{
		{"archives", r.archives}, {"packages", r.packages}, {"npm", r.npmPackages}, {"image", r.image}, {"formula", r.formula}, {"sbom", r.sboms},
	} {
		if !slices.Contains(r.only, step.kind) {
			r.say("%s: left out by -only", step.kind)
			continue
		}
		if err := step.make(); err != nil {
			return fmt.Errorf("make %s: %w", step.kind, err)
		}
	}
	if err := r.provenance(); err != nil {
		return fmt.Errorf("make provenance: %w", err)
	}
	if err := r.checksums(); err != nil {
		return fmt.Errorf("make checksums: %w", err)
	}
	if err := r.sign(); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	r.say("%s: Ken %s from commit %s", r.out, r.version, r.commit)
	return nil
}

func (r *release) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// find looks up the commit and its date.
func (r *release) find() error {
	commit, err := r.output(r.root, "git", "rev-parse", "--verify", r.commit+"^{commit}")
	if err != nil {
		return fmt.Errorf("find commit %s in %s: %w; a release is built from a git checkout", r.commit, r.root, err)
	}
	r.commit = strings.TrimSpace(commit)
	seconds, err := r.output(r.root, "git", "log", "-1", "--format=%ct", r.commit)
	if err != nil {
		return fmt.Errorf("find the date of commit %s: %w", r.commit, err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
	if err != nil {
		return fmt.Errorf("find the date of commit %s: %w", r.commit, err)
	}
	r.date = time.Unix(n, 0).UTC()
	if changed, err := r.output(r.root, "git", "status", "--porcelain", "--untracked-files=no"); err == nil && changed != "" {
		r.say("note: the checkout has changes that are not committed; they are not part of the release")
	}
	return nil
}

// export writes the files of the commit to a folder.
func (r *release) export() error {
	r.source = filepath.Join(r.work, "source")
	data, err := r.output(r.root, "git", "archive", "--format=tar", r.commit)
	if err != nil {
		return err
	}
	if err := os.Mkdir(r.source, 0o755); err != nil {
		return err
	}
	into, err := os.OpenRoot(r.source)
	if err != nil {
		return err
	}
	defer into.Close()
	files := tar.NewReader(strings.NewReader(data))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = into.MkdirAll(filepath.Clean(h.Name), 0o755)
		case tar.TypeSymlink:
			err = into.Symlink(h.Linkname, h.Name)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = into.WriteFile(h.Name, content, h.FileInfo().Mode().Perm())
			}
		}
		if err != nil {
			return err
		}
	}
	module, err := r.output(r.source, "go", "list", "-m")
	if err != nil {
		return err
	}
	r.module = strings.TrimSpace(module)
	// The documentation becomes part of the binary, as with make build.
	_, err = r.output(r.source, "go", "run", "./scripts/site", "-brief", "web/docs/site.zip")
	return err
}

// build compiles Ken for a platform and returns the binary.
func (r *release) build(p platform) (string, error) {
	dir := filepath.Join(r.work, "bin", p.os+"_"+p.arch)
	program := filepath.Join(dir, p.program())
	r.say("build %s", p)
	set := " -X " + r.module + "/internal/app."
	ldflags := "-s -w -buildid=" + set + "releaseVersion=" + r.version + set + "releaseCommit=" + r.commit + set + "releaseDate=" + r.date.Format(time.RFC3339)
	if _, err := r.outputEnv(r.source, []string{"GOOS=" + p.os, "GOARCH=" + p.arch}, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", program, "./cmd/ken"); err != nil {
		return "", err
	}
	return program, nil
}

// tool builds a program of scripts/release/tools, a module of its own, for this
// machine.
func (r *release) tool(name, pkg string) (string, error) {
	program := filepath.Join(r.work, "tools", name)
	_, err := r.output(filepath.Join(r.source, "scripts", "release", "tools"), "go", "build", "-trimpath", "-buildvcs=false", "-o", program, pkg)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	return program, nil
}

// host returns a Ken that runs here, for its manual pages and completions. They
// are the same on every platform.
func (r *release) host() (string, error) {
	here := platform{runtime.GOOS, runtime.GOARCH}
	if program, ok := r.binaries[here]; ok {
		return program, nil
	}
	program, err := r.build(here)
	if err != nil {
		return "", fmt.Errorf("build for this machine: %w", err)
	}
	return program, nil
}

func (r *release) output(dir, name string, args ...string) (string, error) {
	return r.outputEnv(dir, nil, name, args...)
}

// outputEnv runs a program and returns what it prints. Variables that change what
// the go command builds are taken from it.
func (r *release) outputEnv(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.ctx, name, args...)
	var out, complaint bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaint
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		key, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GOFLAGS", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GODEBUG", "GOWORK", "CGO_ENABLED", "GIT_DIR", "GIT_INDEX_FILE"}, key)
	})
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOWORK=off", "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.date.Unix(), 10))
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, complaint.Bytes())
	}
	return out.String(), nil
}

// empty makes a folder without files. It refuses to empty one that is not of a
// release.
func empty(dir string) error {
	there, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(there) > 0 {
		if _, err := os.Stat(filepath.Join(dir, provenanceName)); err != nil {
			return fmt.Errorf("%s is not empty and holds no release; remove it or name another folder with -o", dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755)
}
