// Release builds everything that a release of Ken consists of, from one commit.
// `make release VERSION=1.2.3` runs it; docs/releasing.md describes the files.
//
// The commit is exported into a folder of its own and built there, so nothing that
// is not committed gets in. All times in the files are that of the commit, and no
// file depends on the folder, the user or the machine: the same commit, version and
// Go give the same bytes.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// kinds are the sorts of files that -only chooses from, in the order in which they
// are made.
var kinds = []string{"archives", "packages", "npm", "image", "formula", "sbom"}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	var o options
	flags.StringVar(&o.version, "version", "", "the version, as in 1.2.3 or 1.3.0-rc.1 (required)")
	flags.StringVar(&o.root, "root", ".", "the checkout")
	flags.StringVar(&o.commit, "commit", "HEAD", "the commit to build")
	flags.StringVar(&o.out, "o", "", "the folder for the files; emptied first (default dist in the checkout)")
	flags.StringVar(&o.npmName, "npm", "ken", "the name of the npm package, with its scope if it has one")
	flags.StringVar(&o.url, "url", "", "the address under which the files will be found; the Homebrew formula needs it")
	platformList := flags.String("platforms", strings.Join(allPlatforms, ","), "the platforms to build for")
	only := flags.String("only", strings.Join(kinds, ","), "what to make; checksums and provenance are always made")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if !versionForm.MatchString(o.version) {
		return fmt.Errorf("version %q: not of the form 1.2.3 or 1.2.3-rc.1; run make release VERSION=1.2.3", o.version)
	}
	if !npmForm.MatchString(o.npmName) {
		return fmt.Errorf("npm name %q: not the name of an npm package, such as ken or @example/ken", o.npmName)
	}
	for _, name := range strings.Split(*platformList, ",") {
		if !slices.Contains(allPlatforms, name) {
			return fmt.Errorf("platform %q: not one of %s", name, strings.Join(allPlatforms, ", "))
		}
		goos, goarch, _ := strings.Cut(name, "/")
		o.platforms = append(o.platforms, platform{goos, goarch})
	}
	for _, kind := range strings.Split(*only, ",") {
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf("-only %q: not one of %s", kind, strings.Join(kinds, ", "))
		}
		o.only = append(o.only, kind)
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	o.root = root
	if o.out, err = filepath.Abs(cmp.Or(o.out, filepath.Join(root, "dist"))); err != nil {
		return err
	}
	return makeRelease(ctx, o)
}

var (
	versionForm = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$`)
	npmForm     = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`)
)

// allPlatforms are those that a release is built for.
var allPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// A platform is what a binary runs on, in the words of Go.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// program returns the name of the binary.
func (p platform) program() string {
	if p.os == "windows" {
		return "ken.exe"
	}
	return "ken"
}

type options struct {
	version, root, commit, out, npmName, url string

	platforms []platform
	only      []string
}
