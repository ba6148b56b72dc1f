// Command site builds the documentation as static files.
//
//	go run ./scripts/site DIR         a folder to publish
//	go run ./scripts/site FILE.zip    an archive, as web/docs has it for ken serve
//
// With -brief it leaves out pictures, the changelog, and what is for contributors.
//
// It reads README.md, CHANGELOG.md, SECURITY.md, CONTRIBUTING.md and docs/, and
// writes one HTML page for each Markdown file, with a menu, a table of contents,
// and a search that runs in the browser. The pages need no server and load
// nothing from elsewhere. A link to a page or heading that does not exist is an
// error.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", ".", "folder of the repository")
	brief := flag.Bool("brief", false, "leave out pictures, the changelog and what is for contributors")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/site [-root FOLDER] [-brief] DIR|FILE.zip")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*root, flag.Arg(0), *brief); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(root, out string, brief bool) error {
	files, err := build(os.DirFS(root), brief)
	if err != nil {
		return err
	}
	if strings.HasSuffix(out, ".zip") {
		data, err := archive(files)
		if err != nil {
			return err
		}
		return write(out, data)
	}
	for name, data := range files {
		if err := write(filepath.Join(out, filepath.FromSlash(name)), data); err != nil {
			return err
		}
	}
	return nil
}

// archive returns the files as a zip archive. The same files give the same bytes.
func archive(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

func write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
